import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertMapped } from '../../test/testkit/pluck.ts'
import { fc } from '../../test/testkit/property.ts'
import { FIRST_RETRY_WITHIN_MS, retryDelay } from './backoff.rule.ts'

const policy = { firstMs: 1000, factor: 2, maxMs: 60_000 }
const LONGEST = 1 - 2 ** -53

test('the longest wait doubles up to the greatest', () => {
  const longest = [1, 2, 3, 6, 7, 8, 5000].map((attempt) => retryDelay(attempt, policy, LONGEST))
  assert.equal(longest, [1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000])
})

test('jitter spreads the wait evenly over the whole bound', () => {
  assertMapped([0, 0.25, 0.5, 0.75], (jitter) => retryDelay(3, policy, jitter), [1, 1001, 2001, 3001])
})

test('the first retry comes within two seconds under any policy', () => {
  assert.is(retryDelay(1, { firstMs: 30_000, factor: 1, maxMs: 30_000 }, LONGEST), FIRST_RETRY_WITHIN_MS)
  assert.is(retryDelay(2, { firstMs: 30_000, factor: 1, maxMs: 30_000 }, LONGEST), 30_000)
})

test('what cannot be throws', () => {
  for (const attempt of [0, -1, 1.5, Number.NaN])
    assert.throws(() => retryDelay(attempt, policy, 0), /no retry/)
  for (const jitter of [1, -0.1, Number.NaN]) assert.throws(() => retryDelay(1, policy, jitter), /jitter/)
  for (const wrong of [{ firstMs: 0 }, { factor: 0.5 }, { maxMs: 999 }, { maxMs: Number.NaN }]) {
    assert.throws(() => retryDelay(1, { ...policy, ...wrong }, 0), /cannot be/)
  }
})

const policies = fc
  .record({
    firstMs: fc.integer({ min: 1, max: 100_000 }),
    factor: fc.double({ min: 1, max: 10, noNaN: true }),
    more: fc.nat(10_000_000),
  })
  .map(({ firstMs, factor, more }) => ({ firstMs, factor, maxMs: firstMs + more }))
const jitters = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

test('property: a wait is a whole number of ms from 1 to the greatest, and the first within two seconds', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), policies, jitters, (attempt, one, jitter) => {
      const delay = retryDelay(attempt, one, jitter)
      assert.ok(Number.isInteger(delay) && delay >= 1 && delay <= one.maxMs)
      assert.ok(retryDelay(1, one, jitter) <= Math.min(one.firstMs, FIRST_RETRY_WITHIN_MS))
    }),
    { numRuns: 1000 },
  )
})

test('property: with the same jitter a later retry never waits less, and more jitter never waits less', () => {
  fc.assert(
    fc.property(fc.nat(50), policies, jitters, jitters, (attempt, one, a, b) => {
      assert.ok(retryDelay(attempt + 2, one, a) >= retryDelay(attempt + 1, one, a))
      assert.ok(retryDelay(attempt + 1, one, Math.max(a, b)) >= retryDelay(attempt + 1, one, Math.min(a, b)))
    }),
    { numRuns: 500 },
  )
})

test.run()
