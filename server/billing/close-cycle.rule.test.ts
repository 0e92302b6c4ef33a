import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../proof/testbed/property.ts'
import {
  CYCLE_STATES,
  checkCredit,
  cycleCharge,
  decideClose,
  decidePaymentConfirmation,
  MINIMUM_INVOICE,
} from './close-cycle.rule.ts'

const over = {
  state: 'open',
  periodEnd: 1000,
  asOf: 1000,
  commissionTotal: 100_000,
  feeTotal: 10_000,
  availableCredit: 0,
} as const

test('a cycle is due from the very end of its period, once', () => {
  assert.equal(decideClose({ ...over, asOf: 999 }), { kind: 'not_due' })
  assert.equal(decideClose(over), { kind: 'close', creditUsed: 0, amountDue: 110_000 })
  assert.equal(decideClose({ ...over, state: 'closed' }), { kind: 'not_due' })
  assert.equal(decideClose({ ...over, state: 'charged' }), { kind: 'not_due' })
})

test('credit is used up to the minimum invoice, the rest moves on', () => {
  const close = (availableCredit: number) => decideClose({ ...over, availableCredit })
  assert.equal(close(25_000), { kind: 'close', creditUsed: 25_000, amountDue: 85_000 })
  assert.equal(close(109_900), { kind: 'close', creditUsed: 109_900, amountDue: 100 })
  assert.equal(close(109_901), { kind: 'close', creditUsed: 109_900, amountDue: 100 })
  assert.equal(close(500_000), { kind: 'close', creditUsed: 109_900, amountDue: 100 })
})

test('below one rupee a cycle is extended, whatever the credit', () => {
  const close = (commissionTotal: number, feeTotal: number) =>
    decideClose({ ...over, commissionTotal, feeTotal, availableCredit: 50 })
  assert.equal(close(0, 0), { kind: 'extend' })
  assert.equal(close(90, 9), { kind: 'extend' })
  assert.equal(close(91, 9), { kind: 'close', creditUsed: 0, amountDue: 100 })
})

test('an open cycle shows at least the minimum, and nothing without sales', () => {
  const charge = (commissionTotal: number, feeTotal: number, availableCredit = 0) =>
    cycleCharge({ commissionTotal, feeTotal, availableCredit })
  assert.equal(charge(0, 0, 500), { creditUsed: 0, amountDue: 0 })
  assert.equal(charge(50, 5), { creditUsed: 0, amountDue: MINIMUM_INVOICE })
  assert.equal(charge(50, 5, 500), { creditUsed: 0, amountDue: MINIMUM_INVOICE })
  assert.equal(charge(100_000, 10_000, 25_000), { creditUsed: 25_000, amountDue: 85_000 })
})

test('the minimum can be another', () => {
  assert.equal(decideClose({ ...over, minimum: 110_001 }), { kind: 'extend' })
  assert.equal(decideClose({ ...over, minimum: 0, availableCredit: 200_000 }), {
    kind: 'close',
    creditUsed: 110_000,
    amountDue: 0,
  })
})

test('impossible amounts throw', () => {
  assert.throws(() => decideClose({ ...over, availableCredit: -1 }), /below zero/)
  assert.throws(() => decideClose({ ...over, feeTotal: 0.5 }), /not an exact amount/)
})

const paisa = fc.integer({ min: 0, max: 10_000_000_00 })

test('property: what is closed adds up, is at least the minimum and uses no credit that is not there', () => {
  fc.assert(
    fc.property(paisa, paisa, paisa, (commissionTotal, feeTotal, availableCredit) => {
      const decision = decideClose({ ...over, commissionTotal, feeTotal, availableCredit })
      const total = commissionTotal + feeTotal
      if (decision.kind !== 'close') return assert.ok(decision.kind === 'extend' && total < MINIMUM_INVOICE)
      assert.is(decision.amountDue + decision.creditUsed, total)
      assert.ok(decision.amountDue >= MINIMUM_INVOICE)
      assert.ok(decision.creditUsed >= 0 && decision.creditUsed <= availableCredit)
      if (decision.creditUsed < availableCredit) assert.is(decision.amountDue, MINIMUM_INVOICE)
    }),
    {
      numRuns: 500,
      examples: [
        [0, 99, 0],
        [60, 40, 100],
        [100, 1, 1],
      ],
    },
  )
})

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

test('an event that overtook the closing is tried again', () => {
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

test('property: however events come, a cycle is charged at most once and only by its exact amount in PKR', () => {
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

test('credits reach exactly to what was accepted', () => {
  const check = (amount: number) => checkCredit({ amount, acceptedTotal: 1000, earlierCredits: 400 })
  assert.equal(check(600), { kind: 'allowed', creditableAfter: 0 })
  assert.equal(check(1), { kind: 'allowed', creditableAfter: 599 })
  assert.equal(check(601), {
    kind: 'refused',
    code: 'conflict',
    detail: 'At most Rs 6.00 can be credited: accepted commission and fee less earlier credits.',
  })
})

test('a credit of nothing, less than nothing or half a paisa is refused', () => {
  for (const amount of [0, -5, 0.5, Number.NaN]) {
    const decision = checkCredit({ amount, acceptedTotal: 1000, earlierCredits: 0 })
    assert.is(decision.kind === 'refused' && decision.code, 'validation_failed')
  }
})

test('property: all credits together never exceed what was accepted', () => {
  fc.assert(
    fc.property(paisa, fc.array(paisa, { maxLength: 20 }), (acceptedTotal, asked) => {
      let earlierCredits = 0
      for (const amount of asked) {
        const decision = checkCredit({ amount, acceptedTotal, earlierCredits })
        if (decision.kind === 'refused') continue
        earlierCredits += amount
        assert.is(decision.creditableAfter, acceptedTotal - earlierCredits)
      }
      assert.ok(earlierCredits <= acceptedTotal)
    }),
    { numRuns: 300 },
  )
})

test.run()
