import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { CYCLE_STATES } from './close-cycle.rule.ts'
import { decidePaymentConfirmation } from './payment.rule.ts'

const paid = {
  state: 'closed',
  amountDue: 110_000,
  chargedReference: null,
  event: { amount: 110_000, currency: 'PKR', paymentReference: 'pay_1' },
} as const
const charged = { ...paid, state: 'charged', chargedReference: 'pay_1' } as const

test('the exact payment charges a closed cycle, once', () => {
  assert.equal(decidePaymentConfirmation(paid), { kind: 'charge' })
  assert.equal(decidePaymentConfirmation(charged), { kind: 'already' })
})

test('an event that arrives before the close is retried later', () => {
  assert.equal(decidePaymentConfirmation({ ...paid, state: 'open', amountDue: null }), {
    kind: 'retry_later',
  })
})

test('another amount or currency is flagged, for a closed and for a charged cycle', () => {
  for (const facts of [paid, charged]) {
    const confirm = (event: object) =>
      decidePaymentConfirmation({ ...facts, event: { ...facts.event, ...event } })
    assert.equal(confirm({ amount: 109_999 }), { kind: 'flag', why: 'amount_mismatch' })
    assert.equal(confirm({ amount: 110_001 }), { kind: 'flag', why: 'amount_mismatch' })
    assert.equal(confirm({ currency: 'USD' }), { kind: 'flag', why: 'currency_mismatch' })
  }
})

test('a second payment of a charged cycle is flagged, whatever its amount', () => {
  for (const amount of [110_000, 5]) {
    const event = { amount, currency: 'PKR', paymentReference: 'pay_2' }
    assert.equal(decidePaymentConfirmation({ ...charged, event }), { kind: 'flag', why: 'second_reference' })
  }
})

test('property: in any order of events a cycle is charged at most once and only by its exact amount in PKR', () => {
  const event = fc.record({
    amount: fc.constantFrom(500, 501),
    currency: fc.constantFrom('PKR', 'USD'),
    paymentReference: fc.constantFrom('a', 'b'),
  })
  fc.assert(
    fc.property(fc.constantFrom(...CYCLE_STATES), fc.array(event, { maxLength: 10 }), (first, events) => {
      let state = first
      let chargedReference: string | null = first === 'charged' ? 'a' : null
      let charges = 0
      for (const one of events) {
        const { kind } = decidePaymentConfirmation({ state, amountDue: 500, chargedReference, event: one })
        if (kind !== 'charge') continue
        assert.is(state, 'closed')
        assert.equal([one.amount, one.currency], [500, 'PKR'])
        state = 'charged'
        chargedReference = one.paymentReference
        charges += 1
      }
      assert.ok(charges <= (first === 'closed' ? 1 : 0))
    }),
    { numRuns: 500 },
  )
})

test.run()
