// database: none

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { csvCell, csvLine } from './csv.rule.ts'

test('a text that a spreadsheet would evaluate gets an apostrophe', () => {
  assert.is(csvCell('=1+1', 'text'), "'=1+1")
  assert.is(csvCell('+92 300', 'text'), "'+92 300")
  assert.is(csvCell('-2', 'text'), "'-2")
  assert.is(csvCell('@SUM(A1)', 'text'), "'@SUM(A1)")
  assert.is(csvCell('\t=1', 'text'), "'\t'=1")
  assert.is(csvCell('\r=1', 'text'), '"\'\r\'=1"')
  assert.is(csvCell('=HYPERLINK("x","y")', 'text'), '"\'=HYPERLINK(""x"",""y"")"')
  for (const text of ['a=1', 'a; b', 'a;b=1', "a;'b", 'cotton - blue', 'a;'])
    assert.is(csvCell(text, 'text'), text)
})

test('a text that becomes a formula when semicolons or tabs separate the cells gets an apostrophe', () => {
  assert.is(csvCell('a;=1+1', 'text'), "a;'=1+1")
  assert.is(csvCell('a;+1;-2;@x', 'text'), "a;'+1;'-2;'@x")
  assert.is(csvCell('a\t=1', 'text'), "a\t'=1")
  assert.is(csvCell('a\n=1', 'text'), '"a\n\'=1"')
  assert.is(csvCell('a;"=1', 'text'), '"a;""\'=1"')
  assert.is(csvCell('a;＝1', 'text'), "a;'＝1")
})

test('a formula in wide or small signs gets an apostrophe', () => {
  for (const sign of '＝＋－＠﹢﹣﹦﹫') assert.is(csvCell(`${sign}1`, 'text'), `'${sign}1`)
})

test('numbers are exempt', () => {
  assert.is(csvCell('-5.00', 'number'), '-5.00')
  assert.is(csvCell(-12.5, 'number'), '-12.5')
  assert.is(csvCell('+1;-2', 'number'), '+1;-2')
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
      assert.equal(
        found.map((cells) => cells.map(withoutApostrophes)),
        records,
      )
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
