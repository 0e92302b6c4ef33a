// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { application } from '../../shared/schemas/applications.ts'
import { billingCycle } from '../../shared/schemas/billing.ts'
import { exportedClick, exportResource } from '../../shared/schemas/jobs.ts'
import { payout } from '../../shared/schemas/payouts.ts'
import { pendingOrder } from '../../shared/schemas/pending-orders.ts'
import { sale } from '../../shared/schemas/sales.ts'
import { assertMapped } from '../test/testkit/pluck.ts'
import { fc } from '../test/testkit/property.ts'
import { csvCell, csvHeader, csvLine, csvRecords } from './csv.rule.ts'
import { exportColumns, mayExport } from './export-columns.rule.ts'

const WIRE = {
  sales: sale,
  payouts: payout,
  clicks: exportedClick,
  billing_cycles: billingCycle,
  applications: application,
  pending_orders: pendingOrder,
} satisfies Record<z.infer<typeof exportResource>, z.ZodObject>

/** The wire's fields, with dots into nested objects. */
function fieldsOf(schema: z.ZodObject, before = ''): string[] {
  return Object.entries(schema.shape).flatMap(([name, field]) => {
    let inner = field as z.ZodType
    while (inner instanceof z.ZodOptional || inner instanceof z.ZodNullable)
      inner = inner.unwrap() as z.ZodType
    return inner instanceof z.ZodObject ? fieldsOf(inner, `${before}${name}.`) : [before + name]
  })
}

for (const resource of exportResource.options) {
  test(`an admin's columns of ${resource} are the wire's fields, and whose it is`, () => {
    const columns = exportColumns(resource, 'admin').map(({ path }) => path)
    assert.equal(
      columns.filter((path) => path !== 'merchant_id').toSorted(),
      fieldsOf(WIRE[resource]).toSorted(),
    )
    assert.is(
      columns.includes('merchant_id'),
      ['sales', 'billing_cycles', 'pending_orders'].includes(resource),
    )
  })
}

test('merchants and creators see their own columns', () => {
  const paths = (...of: Parameters<typeof exportColumns>) => exportColumns(...of).map(({ path }) => path)
  assert.ok(paths('sales', 'merchant').includes('platform_fee'))
  assert.not(paths('sales', 'creator').includes('platform_fee'))
  assert.not(paths('payouts', 'merchant').includes('failure_reason'))
  assert.not(paths('payouts', 'merchant').includes('processor_payout_id'))
  assert.not(paths('payouts', 'creator').includes('creator.id'))
  const clicks = ['id', 'affiliate_link_slug', 'tracked', 'kind', 'created_at']
  assert.equal(paths('clicks', 'creator'), [...clicks, 'sub_id'])
  assert.equal(paths('clicks', 'merchant'), clicks)
  assert.ok(paths('pending_orders', 'merchant').includes('order_id'))
  for (const path of ['order_id', 'store.id', 'store.shop_domain', 'merchant_id'])
    assert.not(paths('pending_orders', 'creator').includes(path))
  assert.not(mayExport('creator', 'billing_cycles'))
  assert.ok(mayExport('creator', 'clicks') && mayExport('merchant', 'billing_cycles'))
})

test('columns of sales keep their positions: a new one is the last, for every role', () => {
  const later = ['decided_at', 'attributed_by']
  const ends = {
    creator: ['created_at', ...later, 'sub_id'],
    merchant: ['created_at', ...later],
    admin: ['created_at', 'merchant_id', ...later, 'sub_id'],
  }
  for (const [role, end] of Object.entries(ends)) {
    const paths = exportColumns('sales', role as keyof typeof ends).map(({ path }) => path)
    const expected = ['ordered_at', ...end]
    assert.equal(paths.slice(-expected.length), expected, role)
  }
})

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

test('for spreadsheets, a text that looks like a number is a constant, and nothing else is a formula', () => {
  const excel = { excel: true }
  const constants = [
    '820982911946154508',
    '0300',
    '3-4',
    '11/26',
    '12:30',
    '5e10',
    '1E+5',
    '۱۲۳',
    '٣',
    '1,000',
    '.5',
    '7 %',
  ]
  for (const text of [...constants, '+92 300 1234567', '-5', '019']) {
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
