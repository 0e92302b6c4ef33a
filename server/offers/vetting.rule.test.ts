import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { vettingState } from '../../shared/schemas/offers.ts'
import { fc } from '../test/testkit/property.ts'
import {
  mayChangeLiveRate,
  rejectionScopeOf,
  type VettedOffer,
  vettingPermits,
  vettingStateOf,
} from './vetting.rule.ts'

const THRESHOLD = 3000
type Decision = Omit<VettedOffer, 'commission_rate'>
const UNDECIDED: Decision = { vetting_verdict: null, vetted_rate: null, rejection_scope: null }
const decided = (verdict: 'approved' | 'rejected', rate: number, threshold = THRESHOLD): Decision => ({
  vetting_verdict: verdict,
  vetted_rate: rate,
  rejection_scope: verdict === 'rejected' ? rejectionScopeOf(rate, threshold) : null,
})
const stateAt = (commission_rate: number, decision: Decision, threshold = THRESHOLD) =>
  vettingStateOf({ ...decision, commission_rate }, threshold)

test('the state at a rate follows from the threshold and the latest decision', () => {
  const [approved, rejected, low] = [
    decided('approved', 4000),
    decided('rejected', 4000),
    decided('rejected', 3000),
  ]
  assert.equal(
    [1, 3000, 3001, 3500, 4000, 4001, 9000].map((rate) =>
      [UNDECIDED, approved, rejected, low].map((decision) => stateAt(rate, decision)),
    ),
    [
      ['not_required', 'not_required', 'not_required', 'rejected'],
      ['not_required', 'not_required', 'not_required', 'rejected'],
      ['pending', 'approved', 'pending', 'rejected'],
      ['pending', 'approved', 'pending', 'rejected'],
      ['pending', 'approved', 'rejected', 'rejected'],
      ['pending', 'pending', 'rejected', 'rejected'],
      ['pending', 'pending', 'rejected', 'rejected'],
    ],
  )
})

test('only not_required and approved permit', () => {
  assert.equal(vettingState.options.filter(vettingPermits), ['not_required', 'approved'])
})

test('a live offer is raised above the threshold only with an approval that reaches the new rate', () => {
  const raise = (rate: number, decision: Decision) =>
    mayChangeLiveRate({ ...decision, commission_rate: 2000 }, rate, THRESHOLD)
  assert.ok(raise(3000, UNDECIDED) && raise(3500, decided('approved', 3500)))
  assert.not(raise(3001, UNDECIDED))
  assert.not(raise(3600, decided('approved', 3500)))
  assert.not(raise(3500, decided('rejected', 3500)))
})

test('lowering or keeping the rate is allowed even above a threshold that has moved', () => {
  const offer = { ...UNDECIDED, commission_rate: 4000 }
  assert.ok(mayChangeLiveRate(offer, 3900, THRESHOLD) && mayChangeLiveRate(offer, 4000, THRESHOLD))
})

const rate = fc.integer({ min: 1, max: 9000 })
const verdict = fc.constantFrom('approved' as const, 'rejected' as const)

test('property: if a rate is permitted, every lower rate is; if rejected, every higher one above the threshold is', () => {
  const decision = fc.oneof(
    fc.constant(UNDECIDED),
    fc.tuple(verdict, rate, rate).map((drawn) => decided(...drawn)),
  )
  fc.assert(
    fc.property(rate, rate, rate, decision, (one, other, threshold, made) => {
      const [low, high] = one < other ? [one, other] : [other, one]
      const [atLow, atHigh] = [stateAt(low, made, threshold), stateAt(high, made, threshold)]
      if (vettingPermits(atHigh)) assert.ok(vettingPermits(atLow))
      if (atLow === 'rejected') assert.is(atHigh, 'rejected')
    }),
    { numRuns: 500 },
  )
})

test('property: a decision always counts for the very rate it was made on', () => {
  fc.assert(
    fc.property(rate, rate, verdict, (at, threshold, made) => {
      const approved = at <= threshold ? 'not_required' : 'approved'
      const expected = made === 'rejected' ? 'rejected' : approved
      assert.is(stateAt(at, decided(made, at, threshold), threshold), expected)
    }),
    { numRuns: 300 },
  )
})

test.run()
