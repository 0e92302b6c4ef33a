import type { BasisPoints } from '../../shared/rates.ts'

export const VETTING_STATES = ['not_required', 'pending', 'approved', 'rejected'] as const

export type VettingState = (typeof VETTING_STATES)[number]

/** An admin's latest word on an offer, with the rate that the offer had when it was spoken. */
export interface VettingDecision {
  verdict: 'approved' | 'rejected'
  commissionRate: BasisPoints
}

export interface VettingFacts {
  commissionRate: BasisPoints
  /** Rates up to and including this one need no vetting. */
  highCommissionRate: BasisPoints
  /** The latest decision; `null` when no admin has decided yet. */
  decision: VettingDecision | null
}

/**
 * Where an offer stands with the vetting of high commissions, at the rate given.
 *
 * A decision is about "is this rate too high to be believed", so it reaches in the direction in which its answer cannot
 * change: an approval holds for its own rate and lower ones, a rejection for its own rate and higher ones. On the other
 * side of the decided rate the question is open again (`pending`), so a merchant gets out of a rejection by
 * lowering the rate, never by raising it; an admin can decide anew at any rate.
 */
export function vettingStateOf(facts: VettingFacts): VettingState {
  const { commissionRate, highCommissionRate, decision } = facts
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
