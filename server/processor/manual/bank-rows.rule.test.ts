import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  compareWithStatement,
  readBankAmount,
  readNumber,
  readResultRow,
  readStatementRow,
} from './bank-rows.rule.ts'

const NUMBER = 'PAYABCDEFGHIJKL'
const cells =
  (row: Record<string, string>) =>
  (column: string): string =>
    row[column] ?? ''

const amounts = suite('amounts as banks write them')
amounts('are read to the paisa, with their direction', () => {
  const table: [string, number, boolean | null][] = [
    ['1250', 125_000, null],
    ['1250.5', 125_050, null],
    ['1,250.50', 125_050, null],
    ['12,34,567.00', 123_456_700, null],
    ['Rs 1,250.00', 125_000, null],
    ['PKR1250.00', 125_000, null],
    ['-1,250.00', 125_000, true],
    ['+1250.00', 125_000, false],
    ['1,250.00 DR', 125_000, true],
    ['1,250.00 Cr.', 125_000, false],
    ['۱۲۵۰', 125_000, null],
    ['\u200e1250.00', 125_000, null],
  ]
  for (const [text, amount, isOut] of table) assert.equal(readBankAmount(text), { amount, isOut }, text)
})
amounts('are nothing else: decimal commas, three decimals, exponents and words are refused', () => {
  const numbers = ['0.00', '1250,00', '125,00', '1.250,00', '1250.505', '1.25E+3', '1 250', '1\ufffd250']
  for (const text of ['', '-', 'twelve', ...numbers]) assert.is(readBankAmount(text), null, text)
})
amounts.run()

const numbers = suite('numbers of transfers')
numbers('are read as people paste them', () => {
  for (const text of [NUMBER, ' pay abcd-efgh-ijkl ', '\u2066PAYABCDEFGHIJKL\u2069', "'PAYABCDEFGHIJKL"])
    assert.is(readNumber(text), NUMBER, text)
  for (const text of ['', 'PAYABCDEFGHIJK', 'PAYABCDEFGHIJKLM', 'PAY0BCDEFGHIJKL', 'BILABCDEFGHIJKL'])
    assert.is(readNumber(text), null, text)
})
numbers.run()

const results = suite("a row of the bank's result file")
const row = { reference: NUMBER, amount: '1,250.00', status: 'Paid', bank_reference: 'ft9' }
results('says that a payout was paid, failed, or is not decided', () => {
  const about = { number: NUMBER, amount: 125_000 }
  const closed = { status: 'REJECTED', reason: ' account\tclosed ' }
  const table: [changes: object, read: object][] = [
    [{}, { kind: 'paid', ...about, reference: 'FT9' }],
    [{ bank_reference: '' }, { kind: 'paid', ...about, reference: NUMBER }],
    [closed, { kind: 'failed', ...about, reason: 'account closed' }],
    [{ status: 'Returned' }, { kind: 'failed', ...about, reason: 'returned by the bank' }],
    [{ status: 'In Process' }, { kind: 'undecided', number: NUMBER }],
  ]
  for (const [changes, read] of table) assert.equal(readResultRow(cells({ ...row, ...changes })), read)
})
results('is unreadable without a number, an amount, a known status or a whole reference', () => {
  const table: [Record<string, string>, RegExp][] = [
    [{ reference: 'salary' }, /not the number/],
    [{ amount: '1.25E+3' }, /amount/],
    [{ status: '' }, /status/],
    [{ status: 'ok?' }, /status/],
    [{ bank_reference: '1.23457E+15' }, /spreadsheet/],
  ]
  for (const [change, why] of table) {
    const read = readResultRow(cells({ ...row, ...change }))
    assert.match(read.kind === 'unreadable' ? read.why : read.kind, why)
  }
})
results.run()

const statements = suite('a row of a bank statement')
statements('is about the numbers in it, its reference, its amount and its direction', () => {
  const read = (given: Record<string, string>) => readStatementRow(cells(given))
  assert.equal(read({ reference: 'ft1', credit: '10.00' }), {
    ...{ numbers: [], reference: 'FT1', amount: 1000, isOut: false },
  })
  assert.equal(read({ reference: 'FT1', debit: '10.00' }).isOut, true)
  assert.equal(read({ reference: 'FT1', amount: '-10.00' }).isOut, true)
  assert.equal(read({ reference: 'FT1', amount: '10.00' }).isOut, null)
  assert.equal(read({ reference: '', amount: 'none', description: '' }), {
    ...{ numbers: [], reference: null, amount: null, isOut: null },
  })
  // A word that begins as numbers do hides none.
  const payment = read({ reference: 'FT1', amount: '1', description: 'Payment ref INV2345ABCDEFGH ok' })
  assert.ok(payment.numbers.includes('INV2345ABCDEFGH'))
})
statements('differs from what was confirmed, or agrees', () => {
  const seen = (amount: number | null, isOut: boolean | null = null) => ({ amount, isOut })
  const facts = { kind: 'payout', amount: 1000 } as const
  const invoice = { ...facts, kind: 'invoice' } as const
  const table: [Parameters<typeof compareWithStatement>[0], string[]][] = [
    [{ ...facts, state: 'paid', rows: [seen(1000)] }, []],
    [{ ...facts, state: 'paid', rows: [seen(1000, true)] }, []],
    [{ ...invoice, state: 'paid', rows: [seen(1000, false)] }, []],
    [{ ...facts, state: 'open', rows: [] }, []],
    [{ ...facts, state: 'failed', rows: [] }, []],
    [{ ...facts, state: 'failed', rows: [seen(1000, true), seen(1000, false)] }, []],
    [{ ...facts, state: 'paid', rows: [] }, ['not_in_statement']],
    [{ ...facts, state: 'paid', rows: [seen(999)] }, ['amount_differs']],
    [{ ...facts, state: 'paid', rows: [seen(null)] }, ['amount_differs']],
    [{ ...facts, state: 'paid', rows: [seen(1000), seen(1000)] }, ['twice']],
    [{ ...facts, state: 'paid', rows: [seen(1000, true), seen(1000, false)] }, ['came_back']],
    [{ ...invoice, state: 'paid', rows: [seen(1000, true)] }, ['not_in_statement', 'came_back']],
    [{ ...facts, state: 'open', rows: [seen(1000)] }, ['not_confirmed']],
    [{ ...facts, state: 'failed', rows: [seen(1000)] }, ['failed_here']],
  ]
  for (const [given, differences] of table)
    assert.equal(compareWithStatement(given), differences, JSON.stringify(given))
})
statements.run()
