import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { cycleCharge, decideClose, isRoomFor, LARGEST_CYCLE, MINIMUM_INVOICE } from './close-cycle.rule.ts'

const over = {
  state: 'open',
  periodEnd: 1000,
  asOf: 1000,
  commissionTotal: 100_000,
  feeTotal: 10_000,
  availableCredit: 0,
} as const

test('a cycle takes sales up to its largest total', () => {
  const cycle = { commission_total: LARGEST_CYCLE - 300, fee_total: 200 }
  assert.ok(isRoomFor(cycle, 100))
  assert.not.ok(isRoomFor(cycle, 101))
  // As a total beyond 2^53 is read.
  assert.not.ok(isRoomFor({ ...cycle, commission_total: (2n ** 60n) as unknown as number }, 1))
})

test('a cycle is due from the very end of its period, once', () => {
  assert.equal(decideClose({ ...over, asOf: 999 }), { kind: 'not_due' })
  assert.equal(decideClose(over), { kind: 'close', creditTotal: 0, amountDue: 110_000 })
  assert.equal(decideClose({ ...over, state: 'closed' }), { kind: 'not_due' })
  assert.equal(decideClose({ ...over, state: 'charged' }), { kind: 'not_due' })
})

test('credit is used up to the minimum invoice, the rest moves on', () => {
  const close = (availableCredit: number) => decideClose({ ...over, availableCredit })
  assert.equal(close(25_000), { kind: 'close', creditTotal: 25_000, amountDue: 85_000 })
  assert.equal(close(109_900), { kind: 'close', creditTotal: 109_900, amountDue: 100 })
  assert.equal(close(109_901), { kind: 'close', creditTotal: 109_900, amountDue: 100 })
  assert.equal(close(500_000), { kind: 'close', creditTotal: 109_900, amountDue: 100 })
})

test('below one rupee a cycle is extended, whatever the credit', () => {
  const close = (commissionTotal: number, feeTotal: number) =>
    decideClose({ ...over, commissionTotal, feeTotal, availableCredit: 50 })
  assert.equal(close(0, 0), { kind: 'extend' })
  assert.equal(close(90, 9), { kind: 'extend' })
  assert.equal(close(91, 9), { kind: 'close', creditTotal: 0, amountDue: 100 })
})

test('an open cycle shows at least the minimum, and nothing without sales', () => {
  const charge = (commissionTotal: number, feeTotal: number, availableCredit = 0) =>
    cycleCharge({ commissionTotal, feeTotal, availableCredit })
  assert.equal(charge(0, 0, 500), { creditTotal: 0, amountDue: 0 })
  assert.equal(charge(50, 5), { creditTotal: 0, amountDue: MINIMUM_INVOICE })
  assert.equal(charge(50, 5, 500), { creditTotal: 0, amountDue: MINIMUM_INVOICE })
  assert.equal(charge(100_000, 10_000, 25_000), { creditTotal: 25_000, amountDue: 85_000 })
})

test('impossible amounts throw', () => {
  assert.throws(() => decideClose({ ...over, availableCredit: -1 }), /negative amount/)
  assert.throws(() => decideClose({ ...over, feeTotal: 0.5 }), /not an exact amount/)
})

const paisa = fc.integer({ min: 0, max: 10_000_000_00 })

test('property: what is closed adds up, is at least the minimum and uses no credit that is not there', () => {
  fc.assert(
    fc.property(paisa, paisa, paisa, (commissionTotal, feeTotal, availableCredit) => {
      const decision = decideClose({ ...over, commissionTotal, feeTotal, availableCredit })
      const total = commissionTotal + feeTotal
      if (decision.kind !== 'close') return assert.ok(decision.kind === 'extend' && total < MINIMUM_INVOICE)
      assert.is(decision.amountDue + decision.creditTotal, total)
      assert.ok(decision.amountDue >= MINIMUM_INVOICE)
      assert.ok(decision.creditTotal >= 0 && decision.creditTotal <= availableCredit)
      if (decision.creditTotal < availableCredit) assert.is(decision.amountDue, MINIMUM_INVOICE)
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

test.run()
