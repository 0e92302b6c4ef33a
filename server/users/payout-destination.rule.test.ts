import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import {
  DESTINATION_DELAY_MS,
  effectiveDestination,
  effectOf,
  whenEffective,
} from './payout-destination.rule.ts'

const HOUR = 3_600_000
const given = (name: string, created_at: number, first = false) => ({
  name,
  created_at,
  effective_at: whenEffective({ hasEarlier: !first, now: created_at }),
})

test('the first destination counts at once, a replacement after 24 hours', () => {
  assert.is(DESTINATION_DELAY_MS, 24 * HOUR)
  assert.is(whenEffective({ hasEarlier: false, now: 5 }), 5)
  assert.is(whenEffective({ hasEarlier: true, now: 5 }), 5 + 24 * HOUR)
})

test('nothing given, nothing in effect', () => {
  assert.is(effectiveDestination([], 0), null)
  assert.is(effectiveDestination([given('a', 10, true)], 9), null)
})

test('the former destination is paid until the very end of the delay', () => {
  const both = [given('b', 10 * HOUR), given('a', 0, true)]
  const nameAt = (now: number) => effectiveDestination(both, now)?.name
  assert.equal([0, 10 * HOUR, 34 * HOUR - 1, 34 * HOUR].map(nameAt), ['a', 'a', 'a', 'b'])
})

test('a replacement that was put back during its delay is never paid', () => {
  const all = [given('mine', 0, true), given('thief', 10 * HOUR), given('mine again', 11 * HOUR)]
  const nameAt = (now: number) => effectiveDestination(all, now)?.name
  assert.equal([12 * HOUR, 34.5 * HOUR, 35 * HOUR].map(nameAt), ['mine', 'mine', 'mine again'])
})

test('a replacement that had come into effect stays until the next one does', () => {
  const all = [given('a', 0, true), given('b', HOUR), given('c', 25 * HOUR)]
  const nameAt = (now: number) => effectiveDestination(all, now)?.name
  assert.equal([25 * HOUR - 1, 25 * HOUR, 49 * HOUR - 1, 49 * HOUR].map(nameAt), ['a', 'b', 'b', 'c'])
})

test('each destination has come into effect, waits for it, or never does', () => {
  const all = [given('mine', 0, true), given('thief', 10 * HOUR), given('mine again', 11 * HOUR)]
  const effectsAt = (now: number) => all.map((one) => effectOf(all, one, now))
  assert.equal(effectsAt(34.5 * HOUR), ['in_effect', 'never', 'waiting'])
  assert.equal(effectsAt(35 * HOUR), ['in_effect', 'never', 'in_effect'])
  assert.is(effectOf(all, given('foreign', 0), 0), 'never')
})

test('two in one millisecond keep the order of the list', () => {
  const all = [given('a', 0, true), given('b', 0)]
  assert.is(effectiveDestination(all, 0)?.name, 'a')
  assert.is(effectiveDestination(all, 24 * HOUR)?.name, 'b')
})

const history = fc
  .array(fc.integer({ min: 0, max: 200 * HOUR }), { minLength: 1, maxLength: 8 })
  .map((times) => times.sort((a, b) => a - b).map((time, index) => given(String(index), time, index === 0)))
const moment = fc.integer({ min: 0, max: 260 * HOUR })

test('property: from the first on there is always one; it has waited, and nothing replaced it while it waited', () => {
  fc.assert(
    fc.property(history, moment, (all, now) => {
      const [first] = all
      const effective = effectiveDestination(all, now)
      if (first === undefined || now < first.created_at) return assert.is(effective, null)
      assert.ok(effective !== null && effective.effective_at <= now)
      if (effective === first) return
      assert.ok(now - effective.created_at >= DESTINATION_DELAY_MS)
      const during = all.filter(
        (one) => one.created_at > effective.created_at && one.created_at < effective.effective_at,
      )
      assert.equal(during, [])
    }),
    { numRuns: 500 },
  )
})

test('property: no one can change where the next 24 hours of payouts go, and the order of the rows does not matter', () => {
  fc.assert(
    fc.property(history, moment, fc.nat(DESTINATION_DELAY_MS - 1), (all, now, later) => {
      const before = effectiveDestination(all, now)
      fc.pre(before !== null && all.every((one) => one.created_at < now))
      const changed = [given('new', now), ...all.toReversed()]
      const distinct = new Set(all.map((one) => one.created_at)).size === all.length
      const after = effectiveDestination(changed, now + later)
      assert.is.not(after?.name, 'new')
      if (distinct) assert.is(effectiveDestination(changed, now)?.name, before.name)
      assert.is(effectiveDestination([...all, given('new', now)], now + DESTINATION_DELAY_MS)?.name, 'new')
    }),
    { numRuns: 500 },
  )
})

test.run()
