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

test('a string may have fewer than two places, and a zero has no sign', () => {
  assert.equal(['1250', '1250.5', '0007.10'].map(parseMoney), [125_000, 125_050, 710])
  assert.ok(Object.is(parseMoney('-0.00'), 0))
  assert.equal([formatMoney(-0), displayMoney(-0)], ['0.00', 'Rs 0.00'])
})

test('anything else is no amount', () => {
  const texts = '- .5 5. 1.234 1,250.00 +1.00 1e3 0x10 NaN Infinity --1 ١٢ 12345678901234'.split(' ')
  for (const text of ['', ' 1.00', '1.00\n', 'Rs 1.00', ...texts]) assert.is(parseMoney(text), null, text)
})

test('people read thousands in groups', () => {
  const texts = [0, 99_999, 1_250_000, -123_456_789].map(displayMoney)
  assert.equal(texts, ['Rs 0.00', 'Rs 999.99', 'Rs 12,500.00', '-Rs 1,234,567.89'])
})

test('no exact whole number of paisa is a bug', () => {
  for (const amount of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])
    for (const use of [assertPaisa, formatMoney, displayMoney])
      assert.throws(() => use(amount), /not an exact amount/)
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
