// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertMapped } from '../test/testkit/pluck.ts'
import { fc } from '../test/testkit/property.ts'
import { csvCell, csvHeader, csvLine, csvRecords } from './csv.rule.ts'

test('nested fields become columns, and missing ones are empty', () => {
  const columns = [
    { path: 'creator.display_name', kind: 'text' as const },
    { path: 'affiliate_link.slug', kind: 'text' as const },
    { path: 'amount', kind: 'number' as const },
  ]
  assert.is(csvHeader(columns), 'creator.display_name,affiliate_link.slug,amount\r\n')
  const record = { creator: { display_name: '=A' }, affiliate_link: null, amount: '-1.00' }
  assert.is(csvRecords(columns)(record), "'=A,,-1.00\r\n")
})

test('a text that a spreadsheet would evaluate gets an apostrophe, also between semicolons or tabs', () => {
  for (const [text, cell] of [
    ['=1+1', "'=1+1"],
    ['+92 300', "'+92 300"],
    ['-2', "'-2"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t'=1"],
    ['\r=1', '"\'\r\'=1"'],
    ['=HYPERLINK("x","y")', '"\'=HYPERLINK(""x"",""y"")"'],
    ['a;=1+1', "a;'=1+1"],
    ['a;+1;-2;@x', "a;'+1;'-2;'@x"],
    ['a\t=1', "a\t'=1"],
    ['a\n=1', '"a\n\'=1"'],
    ['a;"=1', '"a;""\'=1"'],
    ['a;＝1', "a;'＝1"],
    ...[...'＝＋－＠﹢﹣﹦﹫'].map((sign) => [`${sign}1`, `'${sign}1`] as const),
    ...['a=1', 'a; b', 'a;b=1', "a;'b", 'cotton - blue', 'a;'].map((plain) => [plain, plain] as const),
  ] as const)
    assert.is(csvCell(text, 'text'), cell, text)
})

test('numbers are exempt', () => {
  for (const value of ['-5.00', -12.5, '+1;-2']) assert.is(csvCell(value, 'number'), String(value))
})

test('for spreadsheets, a text that looks like a number is a constant, and nothing else is a formula', () => {
  const excel = { excel: true }
  for (const text of [
    ...['820982911946154508', '0300', '3-4', '11/26', '12:30', '5e10', '1E+5', '۱۲۳', '٣'],
    ...['1,000', '.5', '7 %', '+92 300 1234567', '-5', '019'],
  ]) {
    assert.is(csvCell(text, 'text', excel), `"=""${text}"""`)
  }
  const texts = ['#1001', '2026-11-20T17:30:00.000Z', 'جمعۃ', 'e10', '12 suits', '-', '...', '5e10e']
  for (const text of texts) assert.is(csvCell(text, 'text', excel), csvCell(text, 'text'), text)
  assert.is(csvCell('=1+1', 'text', excel), "'=1+1")
  assert.is(csvCell('+1;=2', 'text', excel), "'+1;'=2")
  assert.is(csvCell('1'.repeat(101), 'text', excel), '1'.repeat(101))
  for (const amount of ['1250.00', '-5.00']) assert.is(csvCell(amount, 'number', excel), amount)
  assert.is(csvRecords([{ path: 'order_id', kind: 'text' }], excel)({ order_id: '82' }), '"=""82"""\r\n')
  const unit = fc.constantFrom(...'0819+-=@"\';,\t\r\n%/.: eE()A۳')
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 12 }), (text) => {
      const [[value = ''] = []] = readCsv(csvLine([csvCell(text, 'text', excel)]))
      if (value.startsWith('=')) assert.match(value, /^="[^"=@;A-D()]+"$/u)
      else assert.not.match(value, /^[+\-@\t\r]/)
    }),
    { numRuns: 2000 },
  )
})

test('a missing value, an empty text and a boolean differ', () => {
  assert.is(csvLine([csvCell(null, 'text'), csvCell('', 'text'), csvCell(false, 'text')]), ',"",false\r\n')
  assert.is(csvCell(undefined, 'number'), '')
})

test('an RFC 4180 reader reads what was written, except the apostrophe', () => {
  const cell = fc.string({
    unit: fc.constantFrom('a', '"', ',', ';', '\r', '\n', '=', '＝', '-', '\t', 'ع', '😀'),
  })
  fc.assert(
    fc.property(fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { maxLength: 5 }), (records) => {
      const file = records.map((cells) => csvLine(cells.map((value) => csvCell(value, 'text')))).join('')
      const found = readCsv(file)
      assertMapped(found, (cells) => cells.map(withoutApostrophes), records)
      for (const value of found.flat()) {
        assert.not.match(value, /^[=+\-@\t\r]/)
        for (const part of value.split(/[;\t\r\n]/)) assert.not.match(part, /^"*[=+\-@＝]/)
      }
    }),
    { numRuns: 500 },
  )
})

/** No test text has an apostrophe of its own. */
function withoutApostrophes(value: string): string {
  return value.replaceAll("'", '')
}

/** A reader that follows the RFC's grammar and nothing else. */
function readCsv(file: string): string[][] {
  const records: string[][] = []
  let record: string[] = []
  let rest = file
  while (rest !== '') {
    const found = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(rest)
    if (!found) throw new Error(`no CSV: ${rest}`)
    const [match, quoted, plain = '', end] = found
    record.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === '\r\n') {
      records.push(record)
      record = []
    }
    rest = rest.slice(match.length)
  }
  assert.equal(record, [])
  return records
}

test.run()
