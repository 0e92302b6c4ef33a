import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import {
  mayRaiseLiveOffer,
  rejectionScopeOf,
  type VettingDecision,
  vettingPermits,
  vettingStateOf,
} from './vetting.rule.ts'

const THRESHOLD = 3000
const approvedAt = (commissionRate: number): VettingDecision => ({
  verdict: 'approved',
  commissionRate,
  rejectionScope: null,
})
const rejectedAt = (commissionRate: number): VettingDecision => ({
  verdict: 'rejected',
  commissionRate,
  rejectionScope: rejectionScopeOf({ commissionRate, highCommissionRate: THRESHOLD }),
})
/** Made before scopes were recorded. */
const formerlyRejectedAt = (commissionRate: number): VettingDecision => ({
  verdict: 'rejected',
  commissionRate,
  rejectionScope: null,
})
const stateAt = (commissionRate: number, decision: VettingDecision | null) =>
  vettingStateOf({ commissionRate, highCommissionRate: THRESHOLD, decision })

test('a rate up to and including the threshold needs no vetting unless the offer itself was rejected', () => {
  for (const decision of [null, approvedAt(4000), rejectedAt(4000), formerlyRejectedAt(3000)]) {
    assert.is(stateAt(1, decision), 'not_required')
    assert.is(stateAt(3000, decision), 'not_required')
  }
  assert.is(stateAt(3001, null), 'pending')
})

test('an approval holds for its rate and lower ones', () => {
  assert.is(stateAt(4000, approvedAt(4000)), 'approved')
  assert.is(stateAt(3500, approvedAt(4000)), 'approved')
  assert.is(stateAt(4001, approvedAt(4000)), 'pending')
})

test('a rejection holds for its rate and higher ones', () => {
  assert.is(stateAt(4000, rejectedAt(4000)), 'rejected')
  assert.is(stateAt(4500, rejectedAt(4000)), 'rejected')
  assert.is(stateAt(3999, rejectedAt(4000)), 'pending')
})

test('a rejection at or below the threshold holds for every rate', () => {
  for (const rate of [1, 2000, 3000, 3001, 9000]) {
    assert.is(stateAt(rate, rejectedAt(2000)), 'rejected')
    assert.is(stateAt(rate, rejectedAt(3000)), 'rejected')
  }
})

test('a former rejection keeps its effect: none at or below the threshold', () => {
  assert.is(stateAt(2000, formerlyRejectedAt(2000)), 'not_required')
  assert.is(stateAt(4000, formerlyRejectedAt(4000)), 'rejected')
  assert.is(stateAt(3900, formerlyRejectedAt(4000)), 'pending')
})

test('only not_required and approved permit', () => {
  assert.equal((['not_required', 'pending', 'approved', 'rejected'] as const).map(vettingPermits), [
    true,
    false,
    true,
    false,
  ])
})

test('a live offer is raised above the threshold only with an approval that reaches the new rate', () => {
  const raise = (commissionRate: number, decision: VettingDecision | null) =>
    mayRaiseLiveOffer({ presentRate: 2000, commissionRate, highCommissionRate: THRESHOLD, decision })
  assert.equal(raise(3000, null), { kind: 'allowed' })
  assert.equal(raise(3500, approvedAt(3500)), { kind: 'allowed' })
  for (const refused of [raise(3001, null), raise(3600, approvedAt(3500)), raise(3500, rejectedAt(3500))]) {
    assert.is(refused.kind === 'refused' && refused.code, 'vetting_required')
  }
})

test('lowering or keeping the rate is allowed even above a threshold that has moved', () => {
  const lower = { presentRate: 4000, highCommissionRate: THRESHOLD, decision: null }
  assert.equal(mayRaiseLiveOffer({ ...lower, commissionRate: 3900 }), { kind: 'allowed' })
  assert.equal(mayRaiseLiveOffer({ ...lower, commissionRate: 4000 }), { kind: 'allowed' })
})

const rate = fc.integer({ min: 1, max: 9000 })
const decision = fc.option(
  fc.oneof(
    fc.record({
      verdict: fc.constant('approved' as const),
      commissionRate: rate,
      rejectionScope: fc.constant(null),
    }),
    fc.record({
      verdict: fc.constant('rejected' as const),
      commissionRate: rate,
      rejectionScope: fc.constantFrom('rate_and_above', 'every_rate', null),
    }),
  ),
)

test('property: if a rate is permitted, every lower rate is; if rejected, every higher one above the threshold is', () => {
  fc.assert(
    fc.property(rate, rate, rate, decision, (one, other, highCommissionRate, made) => {
      const [low, high] = one < other ? [one, other] : [other, one]
      const facts = { highCommissionRate, decision: made }
      const atLow = vettingStateOf({ ...facts, commissionRate: low })
      const atHigh = vettingStateOf({ ...facts, commissionRate: high })
      if (vettingPermits(atHigh)) assert.ok(vettingPermits(atLow))
      if (atLow === 'rejected') assert.is(atHigh, 'rejected')
    }),
    { numRuns: 500 },
  )
})

test('property: a decision always counts for the very rate it was made on', () => {
  fc.assert(
    fc.property(rate, rate, fc.constantFrom('approved', 'rejected'), (at, highCommissionRate, verdict) => {
      const facts = { commissionRate: at, highCommissionRate }
      const rejectionScope = verdict === 'rejected' ? rejectionScopeOf(facts) : null
      const state = vettingStateOf({ ...facts, decision: { verdict, commissionRate: at, rejectionScope } })
      const approved = at <= highCommissionRate ? 'not_required' : 'approved'
      assert.is(state, verdict === 'rejected' ? 'rejected' : approved)
    }),
    { numRuns: 300 },
  )
})

test.run()
