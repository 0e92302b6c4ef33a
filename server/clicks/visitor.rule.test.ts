// database: none

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { isRepeat, REPEAT_WITHIN_MS, subscriberOf } from './visitor.rule.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')

test('a visit repeats one that was counted within the hour', () => {
  assert.not.ok(isRepeat(undefined, NOON))
  assert.ok(isRepeat(NOON, NOON))
  assert.ok(isRepeat(NOON, NOON + REPEAT_WITHIN_MS - 1))
  assert.not.ok(isRepeat(NOON, NOON + REPEAT_WITHIN_MS))
  assert.is(REPEAT_WITHIN_MS, 60 * 60 * 1000)
})

test('a clock that goes back a little counts nobody twice, and one that goes back far blocks nobody', () => {
  assert.ok(isRepeat(NOON, NOON - 2000))
  assert.not.ok(isRepeat(NOON, NOON - REPEAT_WITHIN_MS))
  assert.not.ok(isRepeat(NOON, 0))
})

test('whoever keeps coming is counted once an hour, however often that is', () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 3 * REPEAT_WITHIN_MS }), { minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(gaps, (waits) => {
      const counted: number[] = []
      let at = NOON
      for (const wait of waits) {
        at += wait
        const last = counted.at(-1)
        if (!isRepeat(last, at)) counted.push(at)
        const mark = counted.at(-1) ?? Number.NaN
        assert.ok(mark <= at && at < mark + REPEAT_WITHIN_MS, 'every visit has its counted one')
      }
      counted.slice(1).forEach((time, index) => {
        assert.ok(time - (counted[index] ?? 0) >= REPEAT_WITHIN_MS)
      })
    }),
  )
})

test('takes a household for one subscriber', () => {
  assert.is(subscriberOf('203.0.113.7'), '203.0.113.7')
  assert.is(subscriberOf('::ffff:203.0.113.7'), '203.0.113.7')
  const household = ['2001:db8:1:2::1', '2001:DB8:1:2:3:4:5:6', '2001:db8:1:2:aaaa::%eth0']
  assert.equal(new Set(household.map(subscriberOf)), new Set(['2001:db8:1:2']))
  assert.is(subscriberOf('2001:db8::1'), '2001:db8:0:0')
  assert.is(subscriberOf('::1'), '0:0:0:0')
  assert.is.not(subscriberOf('2001:db8:1:2::1'), subscriberOf('2001:db8:1:3::1'))
})

test.run()
