import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../proof/testbed/property.ts'
import {
  decidePayout,
  decidePayoutEvent,
  MAX_FAILURES_IN_A_ROW,
  PAYOUT_STATES,
  type PayoutFacts,
  type PayoutState,
} from './payout-eligibility.rule.ts'

const ready: PayoutFacts = {
  released: 100_000,
  threshold: 100_000,
  suspended: false,
  hasDestination: true,
  destinationBroken: false,
  failedInRow: 0,
  lastFailure: 'confirmed',
  openFailureFlag: false,
}
const waits = (why: string, raiseFlag = false) => ({ kind: 'wait', why, raiseFlag })

test('the whole released balance is paid from the threshold on', () => {
  assert.equal(decidePayout(ready), { kind: 'pay', amount: 100_000 })
  assert.equal(decidePayout({ ...ready, released: 123_456 }), { kind: 'pay', amount: 123_456 })
  assert.equal(decidePayout({ ...ready, released: 99_999 }), waits('below_threshold'))
})

test('nothing is never paid, even with a threshold of nothing', () => {
  assert.equal(decidePayout({ ...ready, released: 0, threshold: 0 }), waits('below_threshold'))
  assert.equal(decidePayout({ ...ready, released: -1, threshold: -5 }), waits('below_threshold'))
  assert.equal(decidePayout({ ...ready, released: 1, threshold: 0 }), { kind: 'pay', amount: 1 })
  assert.throws(() => decidePayout({ ...ready, released: 100_000.5 }), /not an exact amount/)
})

test('suspended creators and creators without a destination wait', () => {
  assert.equal(decidePayout({ ...ready, suspended: true }), waits('suspended'))
  assert.equal(decidePayout({ ...ready, hasDestination: false }), waits('no_destination'))
})

test('a creator with a destination that was changed in the database waits for a person', () => {
  const broken = { ...ready, destinationBroken: true }
  assert.equal(decidePayout(broken), waits('destination_broken', true))
  assert.equal(decidePayout({ ...broken, failedInRow: 3 }), waits('destination_broken', true))
  assert.equal(decidePayout({ ...broken, hasDestination: false }), waits('no_destination'))
})

test('two failures are tried again, the third calls a person once', () => {
  assert.equal(decidePayout({ ...ready, failedInRow: 2 }), { kind: 'pay', amount: 100_000 })
  assert.equal(decidePayout({ ...ready, failedInRow: 3 }), waits('failed_three_times', true))
  assert.equal(decidePayout({ ...ready, failedInRow: 4, openFailureFlag: true }), waits('failed_three_times'))
})

test('a failed payout that the processor does not call failed is not replaced, even when the count began anew', () => {
  const doubtful = { ...ready, lastFailure: 'denied' } as const
  assert.equal(decidePayout(doubtful), waits('failure_not_confirmed', true))
  assert.equal(decidePayout({ ...doubtful, failedInRow: 1 }), waits('failure_not_confirmed', true))
  assert.equal(decidePayout({ ...doubtful, openFailureFlag: true }), waits('failure_not_confirmed'))
})

test('a processor that cannot be asked holds a payout back, and concerns no person', () => {
  const unasked = { ...ready, lastFailure: 'unknown' } as const
  assert.equal(decidePayout(unasked), waits('processor_unavailable'))
  assert.equal(decidePayout({ ...unasked, openFailureFlag: true }), waits('processor_unavailable'))
  assert.equal(decidePayout({ ...unasked, failedInRow: 3 }), waits('failed_three_times', true))
})

test('an open flag holds nothing back once the count began anew', () => {
  assert.equal(decidePayout({ ...ready, openFailureFlag: true }), { kind: 'pay', amount: 100_000 })
})

test('property: a payout is the whole balance, and every condition is needed', () => {
  const facts = fc.record({
    released: fc.integer({ min: 0, max: 300 }),
    threshold: fc.integer({ min: 0, max: 200 }),
    suspended: fc.boolean(),
    hasDestination: fc.boolean(),
    destinationBroken: fc.boolean(),
    failedInRow: fc.nat(4),
    lastFailure: fc.constantFrom('confirmed', 'denied', 'unknown'),
    openFailureFlag: fc.boolean(),
  })
  fc.assert(
    fc.property(facts, (one) => {
      const decision = decidePayout(one)
      const due = one.released > 0 && one.released >= one.threshold
      const free = !one.suspended && one.hasDestination
      const tooMany = one.failedInRow >= MAX_FAILURES_IN_A_ROW
      const broken = one.destinationBroken
      const personal = tooMany || one.lastFailure === 'denied'
      assert.is(
        decision.kind === 'pay',
        due && free && !broken && !tooMany && one.lastFailure === 'confirmed',
      )
      if (decision.kind === 'pay') return assert.is(decision.amount, one.released)
      assert.is(decision.raiseFlag, due && free && (broken || (personal && !one.openFailureFlag)))
    }),
    { numRuns: 1000 },
  )
})

const event = { kind: 'confirmed', amount: 500, currency: 'PKR' } as const
const failure = { ...event, kind: 'failed' } as const

test('a submitted payout settles as the processor says', () => {
  assert.equal(decidePayoutEvent({ state: 'submitted', amount: 500, event }), {
    kind: 'settle',
    state: 'paid',
  })
  assert.equal(decidePayoutEvent({ state: 'submitted', amount: 500, event: failure }), {
    kind: 'settle',
    state: 'failed',
  })
})

test('the same word again changes nothing, the other one is a contradiction', () => {
  const decide = (state: PayoutState, kind: 'confirmed' | 'failed', amount = 500) =>
    decidePayoutEvent({ state, amount: 500, event: { ...event, kind, amount } })
  assert.equal(decide('paid', 'confirmed'), { kind: 'already' })
  assert.equal(decide('failed', 'failed'), { kind: 'already' })
  assert.equal(decide('paid', 'failed'), { kind: 'flag', why: 'contradiction' })
  assert.equal(decide('failed', 'confirmed'), { kind: 'flag', why: 'contradiction' })
  assert.equal(decide('failed', 'confirmed', 7), { kind: 'flag', why: 'contradiction' })
})

test('another amount or currency is flagged, also after settlement', () => {
  for (const state of ['submitted', 'paid'] as const) {
    const decide = (change: object) =>
      decidePayoutEvent({ state, amount: 500, event: { ...event, ...change } })
    assert.equal(decide({ amount: 50_000 }), { kind: 'flag', why: 'amount_mismatch' })
    assert.equal(decide({ currency: 'USD' }), { kind: 'flag', why: 'currency_mismatch' })
  }
})

test('an event that overtook the answer to our call is tried again', () => {
  for (const one of [event, failure, { ...event, amount: 7 }]) {
    assert.equal(decidePayoutEvent({ state: 'pending', amount: 500, event: one }), { kind: 'retry_later' })
  }
})

test('property: however events come, a payout settles at most once and only on its exact amount in PKR', () => {
  const events = fc.array(
    fc.record({
      kind: fc.constantFrom('confirmed', 'failed'),
      amount: fc.constantFrom(500, 501),
      currency: fc.constantFrom('PKR', 'USD'),
    }),
    { maxLength: 10 },
  )
  fc.assert(
    fc.property(fc.constantFrom(...PAYOUT_STATES), events, (first, many) => {
      let state = first
      for (const one of many) {
        const decision = decidePayoutEvent({ state, amount: 500, event: one })
        if (decision.kind !== 'settle') continue
        assert.is(state, 'submitted')
        assert.equal([one.amount, one.currency], [500, 'PKR'])
        state = decision.state
      }
      if (first !== 'submitted') assert.is(state, first)
    }),
    { numRuns: 500 },
  )
})

test.run()
