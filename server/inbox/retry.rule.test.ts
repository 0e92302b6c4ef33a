import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { decideRetry, MAX_ATTEMPTS } from './retry.rule.ts'

const HALF_AN_HOUR = 30 * 60_000

test('the last try is the last', () => {
  assert.is(MAX_ATTEMPTS, 12)
  assert.is(decideRetry(11, 0).kind, 'retry')
  assert.equal(decideRetry(12, 0), { kind: 'set_aside' })
  assert.equal(decideRetry(13, 0.5), { kind: 'set_aside' })
})

test('the first retry comes within a second, and the longest waits double up to ten minutes', () => {
  const longest = Array.from({ length: 11 }, (_, index) => {
    const decision = decideRetry(index + 1, 0.999_999_999)
    return decision.kind === 'retry' ? decision.delayMs : null
  })
  assert.equal(
    longest,
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600].map((seconds) => seconds * 1000),
  )
})

test('property: every wait is a whole number of ms within its bound, and all of them within half an hour', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 11, maxLength: 11 }),
      (jitters) => {
        const waits = jitters.map((jitter, index) => {
          const decision = decideRetry(index + 1, jitter)
          if (decision.kind !== 'retry') throw new Error('set aside too early')
          assert.ok(Number.isInteger(decision.delayMs) && decision.delayMs >= 1)
          assert.ok(decision.delayMs <= 1000 * 2 ** index)
          return decision.delayMs
        })
        assert.ok(waits.reduce((sum, wait) => sum + wait, 0) <= HALF_AN_HOUR)
      },
    ),
    { numRuns: 300 },
  )
})

test.run()
