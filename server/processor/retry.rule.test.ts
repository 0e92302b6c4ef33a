// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { LookupItem, LookupOutcome } from './processor.ts'
import {
  decideRetry,
  isFinalRefusal,
  itemsThatCount,
  type RetryFacts,
  SHOWN_WITHIN_MS,
} from './retry.rule.ts'

const item: LookupItem = { id: 'inv_1', reference: 'r', amount: 125_000, currency: 'PKR', status: 'open' }
const found = (...items: LookupItem[]): LookupOutcome => ({ kind: 'found', items })
const decide = (changes: Partial<RetryFacts>) =>
  decideRetry({ attempts: ['refused'], amount: 125_000, lookup: found(), ...changes })

test('after a final refusal a new attempt may be made, when the processor holds nothing', () => {
  assert.equal(decide({}), { kind: 'allowed', adopts: null })
  assert.equal(decide({ attempts: ['refused', 'refused'] }), { kind: 'allowed', adopts: null })
  assert.equal(decide({ lookup: null }), { kind: 'allowed', adopts: null })
})

test('a record at the processor is adopted, and not requested again', () => {
  assert.equal(decide({ lookup: found(item) }), { kind: 'allowed', adopts: 'inv_1' })
})

test('a failed record is not adopted, because it has no further effect', () => {
  const allowed = { kind: 'allowed', adopts: null }
  for (const status of ['failed', 'rejected', 'void', 'cancelled', 'Canceled', 'expired']) {
    const dead = { ...item, id: 'inv_0', status }
    assert.equal(decide({ lookup: found(dead) }), allowed, status)
    assert.equal(decide({ lookup: found(dead, { ...dead, id: 'inv_00' }) }), allowed, status)
    assert.equal(decide({ lookup: found({ ...dead, amount: 1 }) }), allowed, status)
    assert.equal(decide({ lookup: found(dead, item) }), { ...allowed, adopts: 'inv_1' }, status)
    const twice = decide({ lookup: found(item, dead, { ...item, id: 'inv_2' }) })
    assert.match(twice.kind === 'refused' ? twice.detail : '', /holds 2 under/)
  }
})

test('a failed record is the outcome of a first attempt; after a refused one it does not count', () => {
  const dead = { ...item, id: 'inv_0', status: 'failed' }
  assert.equal(itemsThatCount([dead], ['waiting']), [dead])
  assert.equal(itemsThatCount([dead, item], ['waiting']), [dead, item])
  assert.equal(itemsThatCount([dead, item], ['refused', 'waiting']), [item])
})

test('any other state of the attempts cannot be retried by a person', () => {
  const cases: [RetryFacts['attempts'], RegExp][] = [
    [[], /has not been called yet/],
    [['created'], /has it already/],
    [['waiting'], /under way/],
    [['refused', 'waiting'], /under way/],
    [['refused', 'created'], /has it already/],
  ]
  for (const [attempts, detail] of cases) {
    // With any look-up.
    for (const lookup of [null, found(), found(item)]) {
      const decision = decide({ attempts, lookup })
      assert.ok(decision.kind === 'refused' && decision.code === 'conflict', String(attempts))
      assert.match(decision.detail, detail)
    }
  }
})

test('a processor that does not answer, or holds something else, is not called', () => {
  const cases: [LookupOutcome, string, RegExp][] = [
    [{ kind: 'unavailable', detail: 'answered 503' }, 'unavailable', /did not answer .*answered 503/],
    [found(item, { ...item, id: 'inv_2' }), 'conflict', /holds 2/],
    [found({ ...item, amount: 125_001 }), 'conflict', /Rs 1,250\.01 \(PKR\)/],
    [found({ ...item, currency: 'USD' }), 'conflict', /USD/],
  ]
  for (const [lookup, code, detail] of cases) {
    const decision = decide({ lookup })
    assert.ok(decision.kind === 'refused')
    assert.is(decision.code, code)
    assert.match(decision.detail, detail)
  }
})

const CALLED = Date.UTC(2026, 10, 1)

test('a refusal is final once no earlier call without an answer can still show its effect', () => {
  assert.ok(isFinalRefusal(null, CALLED), 'every earlier try is known to have done nothing')
  const later = (ms: number) => isFinalRefusal(CALLED, CALLED + ms)
  assert.equal([1, SHOWN_WITHIN_MS - 1, SHOWN_WITHIN_MS].map(later), [false, false, true])
  assert.not.ok(later(-86_400_000), 'the clock was set back: the time passed is unknown')
})

test.run()
