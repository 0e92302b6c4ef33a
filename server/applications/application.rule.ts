import type { z } from 'zod'
import type { applicationStatus } from '../../shared/schemas/applications.ts'
import type { OfferStatus } from '../offers/offer-status.rule.ts'
import { type VettingState, vettingPermits } from '../offers/vetting.rule.ts'

export type ApplicationStatus = z.infer<typeof applicationStatus>

export interface ApplicationDecisionFacts {
  /** The application's status before the decision. */
  status: ApplicationStatus
  decision: 'approve' | 'reject'
  offerStatus: OfferStatus
  /** The vetting of the rate that an approval would lock. */
  vetting: VettingState
  /** What of the answer is not as it was decided; `null` for a repeat of the whole answer. Counts for a decided application only. */
  differsIn?: 'reason' | 'coupon code' | null
}

export type ApplicationDecision =
  | { kind: 'approve' }
  | { kind: 'reject' }
  | { kind: 'unchanged' }
  | { kind: 'refused'; code: 'already_decided' | 'offer_not_live' | 'vetting_required'; detail: string }

/**
 * Decides a merchant's answer to an application. Repeating a decision is `unchanged`; the opposite one, and one with another reason or
 * coupon code, is `already_decided`, whatever the offer's status. Rejecting is always possible. Approving creates a link that earns, so it needs a live offer (`offer_not_live`) whose
 * present rate needs no vetting or is approved (`vetting_required`).
 */
export function decideApplication(facts: ApplicationDecisionFacts): ApplicationDecision {
  const { status, decision } = facts
  if (status !== 'pending') {
    const same = (status === 'approved') === (decision === 'approve')
    if (same && facts.differsIn) {
      const detail = `This application is already ${status}, with another ${facts.differsIn}.`
      return { kind: 'refused', code: 'already_decided', detail }
    }
    if (same) return { kind: 'unchanged' }
    return { kind: 'refused', code: 'already_decided', detail: `This application is already ${status}.` }
  }
  if (decision === 'reject') return { kind: 'reject' }
  if (facts.offerStatus !== 'live') {
    return {
      kind: 'refused',
      code: 'offer_not_live',
      detail: `The offer is ${facts.offerStatus}; applications can be approved only while it is live.`,
    }
  }
  if (!vettingPermits(facts.vetting)) {
    return {
      kind: 'refused',
      code: 'vetting_required',
      detail: "The offer's commission rate needs an approved vetting before applications are approved.",
    }
  }
  return { kind: 'approve' }
}

export interface ApplyFacts {
  offerStatus: OfferStatus
  /** The statuses of this creator's earlier applications to this offer. */
  existing: readonly ApplicationStatus[]
  merchantSuspended: boolean
}

export type ApplyDecision =
  | { kind: 'allowed' }
  /** The creator cannot see the offer. */
  | { kind: 'invisible' }
  | { kind: 'refused'; code: 'offer_not_live' | 'already_applied'; detail: string }

/**
 * Whether a creator may apply to an offer. A draft and a suspended merchant's offer are `invisible`. Refuses a paused or ended offer with
 * `offer_not_live`, and an offer with a pending or approved application of this creator with `already_applied`.
 */
export function mayApply(facts: ApplyFacts): ApplyDecision {
  if (facts.offerStatus === 'draft' || facts.merchantSuspended) return { kind: 'invisible' }
  if (facts.offerStatus !== 'live') {
    return {
      kind: 'refused',
      code: 'offer_not_live',
      detail: `The offer is ${facts.offerStatus} and takes no applications.`,
    }
  }
  const standing = facts.existing.find((status) => status !== 'rejected')
  if (standing === undefined) return { kind: 'allowed' }
  return {
    kind: 'refused',
    code: 'already_applied',
    detail: `Your application to this offer is already ${standing}.`,
  }
}
