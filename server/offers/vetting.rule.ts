import type { BasisPoints } from '../../shared/rates.ts'

export const VETTING_STATES = ['not_required', 'pending', 'approved', 'rejected'] as const

export type VettingState = (typeof VETTING_STATES)[number]

/** The rates that a rejection applies to: the rejected one and higher ones, or all. */
export type RejectionScope = 'rate_and_above' | 'every_rate'

/** An admin's latest decision on an offer, and the offer's rate at that time. */
export interface VettingDecision {
  verdict: 'approved' | 'rejected'
  commissionRate: BasisPoints
  /** `null` for approvals, and for rejections stored without a scope, which count as `rate_and_above`. */
  rejectionScope: RejectionScope | null
}

/** The scope of a rejection. Above the high-commission threshold the admin rejects the rate; at or below it, the offer itself. */
export function rejectionScopeOf(facts: {
  commissionRate: BasisPoints
  highCommissionRate: BasisPoints
}): RejectionScope {
  return facts.commissionRate > facts.highCommissionRate ? 'rate_and_above' : 'every_rate'
}

export interface VettingFacts {
  commissionRate: BasisPoints
  /** Rates up to and including this one need no vetting. */
  highCommissionRate: BasisPoints
  /** The latest decision; `null` without one. */
  decision: VettingDecision | null
}

/**
 * The vetting state of an offer at the given rate.
 *
 * An approval applies to its own rate and lower ones. A rejection applies to its own rate and higher ones, or with the scope
 * `every_rate` to all until an admin approves. Any other rate above the threshold is `pending`.
 */
export function vettingStateOf(facts: VettingFacts): VettingState {
  const { commissionRate, highCommissionRate, decision } = facts
  if (decision?.rejectionScope === 'every_rate') return 'rejected'
  if (commissionRate <= highCommissionRate) return 'not_required'
  if (decision === null) return 'pending'
  const applies =
    decision.verdict === 'approved'
      ? commissionRate <= decision.commissionRate
      : commissionRate >= decision.commissionRate
  return applies ? decision.verdict : 'pending'
}

/** Whether an offer in this vetting state may be live and may have applications approved. */
export function vettingPermits(state: VettingState): boolean {
  return state === 'not_required' || state === 'approved'
}

export interface LiveRateFacts extends VettingFacts {
  /** The live offer's present rate; `commissionRate` is the new one. */
  presentRate: BasisPoints
}

export type LiveRateDecision =
  | { kind: 'allowed' }
  | { kind: 'refused'; code: 'vetting_required'; detail: string }

/**
 * Whether a live offer's rate may change to `commissionRate`. Raising it requires a rate that needs no vetting or is approved;
 * lowering is always allowed, even from a live rate above a lowered threshold.
 */
export function mayRaiseLiveOffer(facts: LiveRateFacts): LiveRateDecision {
  if (facts.commissionRate <= facts.presentRate || vettingPermits(vettingStateOf(facts))) {
    return { kind: 'allowed' }
  }
  return {
    kind: 'refused',
    code: 'vetting_required',
    detail:
      'This commission rate needs an approved vetting. To change the rate before an admin decides, pause the offer.',
  }
}
