import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { rejectionOf } from '../../test/testkit/rejection.ts'
import { type BankFileColumns, readBankFile, UnreadableBankFile } from './bank-file.ts'

const COLUMNS = { required: ['reference', 'amount'], optional: ['reason'], titles: new Map<string, string>() }

async function* inChunks(bytes: Uint8Array, size = 7): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function rowsOf(content: string | Uint8Array, columns: BankFileColumns = COLUMNS, size = 10_000) {
  const rows: string[][] = []
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  for await (const { line, cell } of readBankFile(inChunks(bytes, size), columns))
    rows.push([String(line), cell('reference'), cell('amount'), cell('reason')])
  return rows
}

async function refused(content: string | Uint8Array, why: RegExp, columns?: BankFileColumns): Promise<void> {
  const error = await rejectionOf(rowsOf(content, columns))
  assert.instance(error, UnreadableBankFile)
  assert.match((error as Error).message, why)
}

const it = suite('CSV files of banks')

const FILE = 'Reference,Amount,Reason\r\nA1,"1,250.00",\r\n\r\nA2,10,"gone, ""closed"""\r\n'
const ROWS = [
  ['2', 'A1', '1,250.00', ''],
  ['4', 'A2', '10', 'gone, "closed"'],
]

it('are read in every usual encoding, whole or in pieces', async () => {
  const utf16 = Buffer.from(`\ufeff${FILE}`, 'utf16le')
  const cells = (rows: string[][]) => rows.map((row) => row.slice(1))
  for (const size of [1, 3, 10_000]) assert.equal(cells(await rowsOf(FILE, COLUMNS, size)), cells(ROWS))
  assert.equal(await rowsOf(`\ufeff${FILE}`), ROWS)
  assert.equal(await rowsOf(utf16), ROWS)
  assert.equal(await rowsOf(Buffer.from(utf16).swap16()), ROWS)
  const windows = Buffer.concat([Buffer.from('Reference,Amount,Reason\nA1,5,caf'), Buffer.from([0xe9, 0x0a])])
  assert.equal(await rowsOf(windows), [['2', 'A1', '5', 'café']])
})

it('may have other delimiters, titles and order, lines before the head, and short rows', async () => {
  assert.equal(await rowsOf('Account;PK36\n\nAmount;Reason;REFERENCE \n"1,250.00";x;A1\n7;;A2;extra\n8\n'), [
    ['4', 'A1', '1,250.00', 'x'],
    ['5', 'A2', '7', ''],
    ['6', '', '8', ''],
  ])
  const titles = new Map([['reference', 'Narration']])
  assert.equal(await rowsOf('narration\tamount\nA1\t5\n', { ...COLUMNS, titles }), [['2', 'A1', '5', '']])
})

it('are refused with what to do', async () => {
  await refused('', /no line with the column titles reference, amount/)
  await refused('a,b\n1,2\n', /--columns/)
  const titles = new Map([['reference', 'Narration']])
  await refused('reference,amount\n', /the column titles Narration/, { ...COLUMNS, titles })
  await refused(Buffer.from('reference,amount', 'utf16le'), /no text/)
  await refused(Buffer.from([0x50, 0x4b, 3, 4, 0, 0, 0]), /no text/)
  await refused(`reference,amount\n"${'x'.repeat(200_000)}",1\n`, /Line \d+ is no CSV/)
})

it('are read no further than the rows that are taken', async () => {
  let sent = 0
  async function* endless() {
    yield Buffer.from('reference,amount\n')
    for (;;) {
      sent += 1
      yield Buffer.from(`A${sent},1\n`)
    }
  }
  let taken = 0
  for await (const _ of readBankFile(endless(), COLUMNS)) {
    taken += 1
    if (taken === 100_000) break
  }
  assert.ok(sent - taken < 10_000, `${sent - taken} rows were read ahead`)
})

it.run()
