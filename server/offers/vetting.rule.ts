import type { BasisPoints } from '../../shared/rates.ts'

export const VETTING_STATES = ['not_required', 'pending', 'approved', 'rejected'] as const

export type VettingState = (typeof VETTING_STATES)[number]

/** Which rates a rejection holds for: the rejected one and higher ones, or all. */
export type RejectionScope = 'rate_and_above' | 'every_rate'

/** An admin's latest decision on an offer, with the rate that the offer had at that moment. */
export interface VettingDecision {
  verdict: 'approved' | 'rejected'
  commissionRate: BasisPoints
  /** `null` for approvals, and for rejections made before scopes were recorded, which count as `rate_and_above`. */
  rejectionScope: RejectionScope | null
}

/**
 * The scope of a rejection. Above the high-commission threshold it is the rate that an admin objects to; at or below
 * it, it can only be the offer itself.
 */
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
  /** The latest decision; `null` when no admin has decided yet. */
  decision: VettingDecision | null
}

/**
 * The vetting state of an offer at the given rate.
 *
 * An approval holds for its own rate and lower ones. A rejection holds for its own rate and higher ones, or, with the
 * scope `every_rate`, for all until an admin approves. Any other rate above the threshold is `pending`.
 */
export function vettingStateOf(facts: VettingFacts): VettingState {
  const { commissionRate, highCommissionRate, decision } = facts
  if (decision?.rejectionScope === 'every_rate') return 'rejected'
  if (commissionRate <= highCommissionRate) return 'not_required'
  if (decision === null) return 'pending'
  const reaches =
    decision.verdict === 'approved'
      ? commissionRate <= decision.commissionRate
      : commissionRate >= decision.commissionRate
  return reaches ? decision.verdict : 'pending'
}

/** Whether an offer in this vetting state may be live and may have applications approved. */
export function vettingPermits(state: VettingState): boolean {
  return state === 'not_required' || state === 'approved'
}

export interface LiveRateFacts extends VettingFacts {
  /** The rate that the live offer has now; `commissionRate` is the one asked for. */
  presentRate: BasisPoints
}

export type LiveRateDecision =
  | { kind: 'allowed' }
  | { kind: 'refused'; code: 'vetting_required'; detail: string }

/**
 * Whether a live offer's rate may change to `commissionRate`: a raise needs a rate that needs no vetting or has it.
 * Lowering is always allowed, also where an operator has moved the threshold below a rate that is live already.
 */
export function mayRaiseLiveOffer(facts: LiveRateFacts): LiveRateDecision {
  if (facts.commissionRate <= facts.presentRate || vettingPermits(vettingStateOf(facts))) {
    return { kind: 'allowed' }
  }
  return {
    kind: 'refused',
    code: 'vetting_required',
    detail:
      'This commission rate needs an approved vetting. Pause the offer to change it before an admin has decided.',
  }
}
