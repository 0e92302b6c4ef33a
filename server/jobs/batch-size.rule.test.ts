import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { BATCH_MS, FIRST_BATCH, LEAST_BATCH, MOST_BATCH, nextBatchSize } from './batch-size.rule.ts'

/** The size after many full batches that take so many ms, and so many for each event. */
function settled(fixedMs: number, eventMs: number): number {
  let size = FIRST_BATCH
  for (let batch = 0; batch < 100; batch += 1)
    size = nextBatchSize(size, { claimed: size, ms: fixedMs + size * eventMs })
  return size
}

test('a full batch within its time grows, and one that takes longer shrinks', () => {
  assert.is(nextBatchSize(100, { claimed: 100, ms: 20 }), 100)
  assert.is(nextBatchSize(100, { claimed: 100, ms: 16 }), 125)
  assert.is(nextBatchSize(100, { claimed: 100, ms: 25 }), 80)
})

test('one batch changes the size by half at most', () => {
  assert.is(nextBatchSize(100, { claimed: 100, ms: 0 }), 150)
  assert.is(nextBatchSize(100, { claimed: 100, ms: 5000 }), 50)
})

test('a batch that was not full never makes the next one larger', () => {
  assert.is(nextBatchSize(100, { claimed: 0, ms: 0.1 }), 100)
  assert.is(nextBatchSize(100, { claimed: 99, ms: 1 }), 100)
  assert.is(nextBatchSize(100, { claimed: 80, ms: 25 }), 64)
})

test('the size stays between its bounds', () => {
  assert.is(nextBatchSize(60, { claimed: 60, ms: 200 }), LEAST_BATCH)
  assert.is(nextBatchSize(400, { claimed: 2, ms: 100 }), LEAST_BATCH)
  assert.is(nextBatchSize(900, { claimed: 900, ms: 1 }), MOST_BATCH)
})

test('property: whatever events cost, batches settle at their time, unless a bound holds them', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 15, noNaN: true }),
      fc.double({ min: 0.01, max: 5, noNaN: true }),
      (fixedMs, eventMs) => {
        const fitting = (BATCH_MS - fixedMs) / eventMs
        const wanted = Math.min(Math.max(fitting, LEAST_BATCH), MOST_BATCH)
        const size = settled(fixedMs, eventMs)
        assert.ok(Math.abs(size - wanted) <= 2 + wanted / 20, `${size} instead of ${wanted}`)
      },
    ),
    { numRuns: 300 },
  )
})

test.run()
