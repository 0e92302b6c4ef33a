import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../server/test/testkit/property.ts'
import { basisPointsToPercent, percentToBasisPoints, rateOf } from './rates.ts'

test('percent and basis points, both ways', () => {
  for (const [percent, basisPoints] of [
    [0, 0],
    [0.01, 1],
    [0.07, 7],
    [12.5, 1250],
    [1.15, 115],
    [33.33, 3333],
    [90, 9000],
    [-2.5, -250],
  ] as const) {
    assert.is(percentToBasisPoints(percent), basisPoints)
    assert.is(basisPointsToPercent(basisPoints), percent)
  }
})

test('more than two decimals, however little more, and what is no ordinary number are no rate', () => {
  const infinite = [Number.NaN, 1 / 0, -1 / 0, 1e300, 1e308, 1e15]
  for (const percent of [12.345, 0.001, 12.5000000001, 0.005, 1e-12, ...infinite])
    assert.is(percentToBasisPoints(percent), null, `${percent}`)
  assert.ok(Object.is(percentToBasisPoints(-0), 0))
})

test('half a paisa is rounded up, less than half down', () => {
  for (const [amount, rate, result] of [
    [50, 100, 1],
    [49, 100, 0],
    [150, 100, 2],
    [1, 5000, 1],
    [1, 4999, 0],
    [100_05, 1000, 1001],
    [125_000, 1250, 15_625],
    [0, 9000, 0],
    [7, 0, 0],
    [7, 10_000, 7],
    [Number.MAX_SAFE_INTEGER, 10_000, Number.MAX_SAFE_INTEGER],
  ] as const)
    assert.is(rateOf(amount, rate), result, `${rate} of ${amount}`)
})

test('no rate of debts, fractions or into inexact numbers', () => {
  for (const [amount, rate] of [
    [-1, 100],
    [0.5, 100],
    [100, -1],
    [100, 12.5],
    [Number.MAX_SAFE_INTEGER, 20_000],
    [Number.NaN, 1],
  ] as const) {
    assert.throws(() => rateOf(amount, rate), /no rate|not an exact amount/)
  }
})

const paisa = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
const rate = fc.integer({ min: 0, max: 10_000 })

test('property: every rate of two decimals survives the wire, in text too', () => {
  fc.assert(
    fc.property(fc.integer({ min: -1_000_000, max: 1_000_000 }), (basisPoints) => {
      const percent = basisPointsToPercent(basisPoints)
      assert.is(percentToBasisPoints(percent), basisPoints)
      assert.is(percentToBasisPoints(JSON.parse(JSON.stringify(percent))), basisPoints)
      assert.is(percentToBasisPoints(Number(percent.toFixed(2))), basisPoints)
    }),
    { numRuns: 1000 },
  )
})

test('property: the result is the nearest paisa, the upper one of two, and never above the amount', () => {
  fc.assert(
    fc.property(paisa, rate, (amount, basisPoints) => {
      const result = rateOf(amount, basisPoints)
      const error = BigInt(result) * 10_000n - BigInt(amount) * BigInt(basisPoints)
      assert.ok(-5000n < error && error <= 5000n)
      assert.ok(result >= 0 && result <= amount)
    }),
    { numRuns: 1000 },
  )
})

test('property: a greater amount or a greater rate never gives less', () => {
  fc.assert(
    fc.property(paisa, paisa, rate, rate, (a, b, r, s) => {
      assert.ok(rateOf(Math.max(a, b), r) >= rateOf(Math.min(a, b), r))
      assert.ok(rateOf(a, Math.max(r, s)) >= rateOf(a, Math.min(r, s)))
    }),
    { numRuns: 500 },
  )
})

test.run()
