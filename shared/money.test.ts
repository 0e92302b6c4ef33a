import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../server/test/testkit/property.ts'
import { assertPaisa, CURRENCY, displayMoney, formatMoney, parseMoney } from './money.ts'

const WRITTEN: [number, string][] = [
  [0, '0.00'],
  [1, '0.01'],
  [-5, '-0.05'],
  [99, '0.99'],
  [100, '1.00'],
  [125_000, '1250.00'],
  [-125_050, '-1250.50'],
  [999_999_999_999_999, '9999999999999.99'],
]

test('paisa and their decimal string, both ways', () => {
  for (const [paisa, text] of WRITTEN) {
    assert.is(formatMoney(paisa), text)
    assert.is(parseMoney(text), paisa)
  }
  assert.is(CURRENCY, 'PKR')
})

test('a string may have fewer than two places', () => {
  assert.is(parseMoney('1250'), 125_000)
  assert.is(parseMoney('1250.5'), 125_050)
  assert.is(parseMoney('0007.10'), 710)
})

test('a zero has no sign', () => {
  assert.ok(Object.is(parseMoney('-0.00'), 0))
  assert.is(formatMoney(-0), '0.00')
  assert.is(displayMoney(-0), 'Rs 0.00')
})

test('anything else is no amount', () => {
  const texts = '- .5 5. 1.234 1,250.00 +1.00 1e3 0x10 NaN Infinity --1 ١٢ 12345678901234'.split(' ')
  for (const text of ['', ' 1.00', '1.00\n', 'Rs 1.00', ...texts]) assert.is(parseMoney(text), null, text)
})

test('people read thousands in groups', () => {
  assert.is(displayMoney(0), 'Rs 0.00')
  assert.is(displayMoney(99_999), 'Rs 999.99')
  assert.is(displayMoney(1_250_000), 'Rs 12,500.00')
  assert.is(displayMoney(-123_456_789), '-Rs 1,234,567.89')
})

test('no exact whole number of paisa is a bug', () => {
  for (const amount of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    assert.throws(() => assertPaisa(amount), /not an exact amount/)
    assert.throws(() => formatMoney(amount), /not an exact amount/)
    assert.throws(() => displayMoney(amount), /not an exact amount/)
  }
})

test('property: what is written is read back, and is what BigInt division says', () => {
  fc.assert(
    fc.property(fc.integer({ min: -999_999_999_999_999, max: 999_999_999_999_999 }), (paisa) => {
      const text = formatMoney(paisa)
      assert.is(parseMoney(text), paisa)
      assert.match(text, /^-?\d+\.\d\d$/)
      const [rupees = '', fraction = ''] = text.replace('-', '').split('.')
      assert.is(BigInt(rupees) * 100n + BigInt(fraction), BigInt(Math.abs(paisa)))
      assert.is(displayMoney(paisa).replace(/Rs |,/g, ''), text)
    }),
    { numRuns: 1000 },
  )
})

test('property: any text is an exact amount or none', () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789.-'), maxLength: 18 }))
  fc.assert(
    fc.property(text, (one) => {
      const paisa = parseMoney(one)
      if (paisa !== null) assert.ok(Number.isSafeInteger(paisa) && !Object.is(paisa, -0))
    }),
    { numRuns: 1000 },
  )
})

test.run()
