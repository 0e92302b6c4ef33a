import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import {
  cutShares,
  decidePayout,
  isSameTitle,
  MAX_FAILURES_IN_A_ROW,
  type PayoutFacts,
} from './payout-eligibility.rule.ts'

const ready: PayoutFacts = {
  released: 100_000,
  threshold: 100_000,
  unit: 1,
  suspended: false,
  hasDestination: true,
  destinationBroken: false,
  failedInRow: 0,
  failureVerdict: 'not_asked',
  openFailureFlag: false,
}
const waits = (why: string, raiseFlag = false) => ({ kind: 'wait', why, raiseFlag })

test('the whole released balance is paid from the threshold on', () => {
  assert.equal(decidePayout(ready), { kind: 'pay', amount: 100_000 })
  assert.equal(decidePayout({ ...ready, released: 123_456 }), { kind: 'pay', amount: 123_456 })
  assert.equal(decidePayout({ ...ready, released: 99_999 }), waits('below_threshold'))
})

test('a processor that pays whole rupees: the threshold is tested on the rounded amount', () => {
  const whole = { ...ready, unit: 100 }
  assert.equal(decidePayout({ ...whole, released: 100_099 }), { kind: 'pay', amount: 100_000 })
  assert.equal(decidePayout({ ...whole, threshold: 100_050, released: 100_099 }), waits('below_threshold'))
  assert.equal(decidePayout({ ...whole, threshold: 0, released: 99 }), waits('below_threshold'))
})

test('a payout takes shares in order, cuts the last one and leaves what follows it', () => {
  const shares = [{ free: 70_050 }, { free: 30_000 }, { free: 30 }]
  const amounts = (amount: number) => cutShares(shares, amount).map((part) => part.amount)
  assert.equal(amounts(100_080), [70_050, 30_000, 30])
  assert.equal(amounts(100_000), [70_050, 29_950])
  assert.equal(amounts(70_000), [70_000])
  assert.throws(() => amounts(100_100), /do not make up/)
})

test('zero is never paid, even with a threshold of zero', () => {
  assert.equal(decidePayout({ ...ready, released: 0, threshold: 0 }), waits('below_threshold'))
  assert.equal(decidePayout({ ...ready, released: -1, threshold: -5 }), waits('below_threshold'))
  assert.equal(decidePayout({ ...ready, released: 1, threshold: 0 }), { kind: 'pay', amount: 1 })
  assert.throws(() => decidePayout({ ...ready, released: 100_000.5 }), /not an exact amount/)
})

const broken = { ...ready, destinationBroken: true }
/** A failed payout that the processor does not call failed is not replaced, even after the count was reset. */
const doubtful = { ...ready, failureVerdict: 'denied' } as const
/** A processor that does not answer holds a payout back without a flag. */
const unasked = { ...ready, failureVerdict: 'unknown' } as const

for (const [who, facts, why, raisesFlag] of [
  ['a suspended creator', { ...ready, suspended: true }, 'suspended', false],
  ['a creator without a destination', { ...ready, hasDestination: false }, 'no_destination', false],
  ['a destination that was changed in the database', broken, 'destination_broken', true],
  ['that, after failures', { ...broken, failedInRow: 3 }, 'destination_broken', true],
  ['that, removed', { ...broken, hasDestination: false }, 'no_destination', false],
  ['a third failure', { ...ready, failedInRow: 3 }, 'failed_three_times', true],
  ['a fourth, with a flag', { ...ready, failedInRow: 4, openFailureFlag: true }, 'failed_three_times', false],
  ['a failure that is denied', doubtful, 'failure_not_confirmed', true],
  ['that, once more', { ...doubtful, failedInRow: 1 }, 'failure_not_confirmed', true],
  ['that, with a flag', { ...doubtful, openFailureFlag: true }, 'failure_not_confirmed', false],
  ['a failure that no one answers for', unasked, 'processor_unavailable', false],
  ['that, with a flag', { ...unasked, openFailureFlag: true }, 'processor_unavailable', false],
  ['that, for the third time', { ...unasked, failedInRow: 3 }, 'failed_three_times', true],
] as const) {
  test(`${who} waits: ${why}`, () => assert.equal(decidePayout(facts), waits(why, raisesFlag)))
}

test('two failures are retried, and an open flag holds nothing back after the count was reset', () => {
  for (const facts of [{ failedInRow: 2 }, { openFailureFlag: true }])
    assert.equal(decidePayout({ ...ready, ...facts }), { kind: 'pay', amount: 100_000 })
})

test('property: a payout is the whole balance, and every condition is needed', () => {
  const facts = fc.record({
    released: fc.integer({ min: 0, max: 300 }),
    threshold: fc.integer({ min: 0, max: 200 }),
    unit: fc.constantFrom(1, 7, 100),
    suspended: fc.boolean(),
    hasDestination: fc.boolean(),
    destinationBroken: fc.boolean(),
    failedInRow: fc.nat(4),
    failureVerdict: fc.constantFrom('not_asked', 'confirmed', 'denied', 'unknown'),
    openFailureFlag: fc.boolean(),
  })
  fc.assert(
    fc.property(facts, (one) => {
      const decision = decidePayout(one)
      const payable = Math.floor(one.released / one.unit) * one.unit
      const due = payable > 0 && payable >= one.threshold
      const free = !one.suspended && one.hasDestination
      const tooMany = one.failedInRow >= MAX_FAILURES_IN_A_ROW
      const broken = one.destinationBroken
      const needsOperator = tooMany || one.failureVerdict === 'denied'
      assert.is(
        decision.kind === 'pay',
        due && free && !broken && !tooMany && ['not_asked', 'confirmed'].includes(one.failureVerdict),
      )
      if (decision.kind === 'pay') return assert.is(decision.amount, payable)
      assert.is(decision.raiseFlag, due && free && (broken || (needsOperator && !one.openFailureFlag)))
    }),
    { numRuns: 1000 },
  )
})

test('case, accents, spaces and punctuation do not make another title of an account', () => {
  for (const title of ['SANA KHAN', 'Sana Khan', ' sana  khan.', 'Sana-Khan', 'Saná Khan', 'SANAKHAN']) {
    assert.ok(isSameTitle('Sana Khan', title), title)
  }
})

test('other letters or digits do, and an empty title is the same as none', () => {
  for (const title of ['Sana Kahn', 'Sana', 'Khan Sana', 'Sana Khan 2', '', '  ']) {
    assert.not.ok(isSameTitle('Sana Khan', title), title)
  }
  assert.not.ok(isSameTitle('...', '---'))
  assert.ok(isSameTitle('ثنا خان', 'ثنا  خان'))
})

test.run()
