import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { PAYOUT_STATES, type PayoutState } from './payout-eligibility.rule.ts'
import { decidePayoutEvent } from './payout-event.rule.ts'

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

test('the same outcome again changes nothing, the other one is a contradiction', () => {
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

test('an event that arrives before the answer to our call is tried again', () => {
  for (const one of [event, failure, { ...event, amount: 7 }]) {
    assert.equal(decidePayoutEvent({ state: 'pending', amount: 500, event: one }), { kind: 'retry_later' })
  }
})

test('property: in any order of events a payout settles at most once and only on its exact amount in PKR', () => {
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
