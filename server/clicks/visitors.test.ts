// database: none

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { CountedVisitors, REPEAT_WITHIN_MS } from './visitors.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')

/** Whether a visit at `at` repeats one that was counted at `countedAt`. */
function isRepeat(countedAt: number, at: number): boolean {
  const counted = new CountedVisitors()
  assert.not.ok(counted.repeats('link', 'visitor', countedAt), 'the first visit')
  assert.not.ok(counted.repeats('another link', 'visitor', at))
  return counted.repeats('link', 'visitor', at)
}

test('a visit repeats one that was counted within the hour', () => {
  assert.ok(isRepeat(NOON, NOON))
  assert.ok(isRepeat(NOON, NOON + REPEAT_WITHIN_MS - 1))
  assert.not.ok(isRepeat(NOON, NOON + REPEAT_WITHIN_MS))
  assert.is(REPEAT_WITHIN_MS, 60 * 60 * 1000)
})

test('a clock set back a little counts no visit twice, and one set back far blocks none', () => {
  assert.ok(isRepeat(NOON, NOON - 2000))
  assert.not.ok(isRepeat(NOON, NOON - REPEAT_WITHIN_MS))
  assert.not.ok(isRepeat(NOON, 0))
})

test('a frequent visitor counts once an hour', () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 3 * REPEAT_WITHIN_MS }), { minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(gaps, (waits) => {
      const visitors = new CountedVisitors()
      const counted: number[] = []
      let at = NOON
      for (const wait of waits) {
        at += wait
        if (!visitors.repeats('link', 'visitor', at)) counted.push(at)
        const mark = counted.at(-1) ?? Number.NaN
        assert.ok(mark <= at && at < mark + REPEAT_WITHIN_MS, 'every visit has its counted one')
      }
      counted.slice(1).forEach((time, index) => {
        assert.ok(time - (counted[index] ?? 0) >= REPEAT_WITHIN_MS)
      })
    }),
  )
})

test.run()
