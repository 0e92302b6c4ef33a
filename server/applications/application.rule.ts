import type { z } from 'zod'
import type { applicationStatus } from '../../shared/schemas/applications.ts'
import { type OfferStatus, type Refused, refused } from '../offers/offer-status.rule.ts'
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
  | { kind: 'approve' | 'reject' | 'unchanged' }
  | Refused<'already_decided' | 'offer_not_live' | 'vetting_required'>

/**
 * Decides a merchant's answer to an application. Repeating a decision is `unchanged`; the opposite one, and one with another reason or
 * coupon code, is `already_decided`, whatever the offer's status. Rejecting is always possible. Approving creates a link that earns, so it needs a live offer (`offer_not_live`) whose
 * present rate needs no vetting or is approved (`vetting_required`).
 */
export function decideApplication(facts: ApplicationDecisionFacts): ApplicationDecision {
  const { status, decision, offerStatus, differsIn } = facts
  if (status !== 'pending') {
    const isSame = (status === 'approved') === (decision === 'approve')
    if (isSame && !differsIn) return { kind: 'unchanged' }
    const detail = `This application is already ${status}${isSame ? `, with another ${differsIn}` : ''}.`
    return refused('already_decided', detail)
  }
  if (decision === 'reject') return { kind: 'reject' }
  if (offerStatus !== 'live') {
    const detail = `The offer is ${offerStatus}; applications can be approved only while it is live.`
    return refused('offer_not_live', detail)
  }
  if (vettingPermits(facts.vetting)) return { kind: 'approve' }
  const detail = "The offer's commission rate needs an approved vetting before applications are approved."
  return refused('vetting_required', detail)
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
  | Refused<'offer_not_live' | 'already_applied'>

/**
 * Whether a creator may apply to an offer. A draft and a suspended merchant's offer are `invisible`. Refuses a paused or ended offer with
 * `offer_not_live`, and an offer with a pending or approved application of this creator with `already_applied`.
 */
export function mayApply(facts: ApplyFacts): ApplyDecision {
  const { offerStatus } = facts
  if (offerStatus === 'draft' || facts.merchantSuspended) return { kind: 'invisible' }
  if (offerStatus !== 'live')
    return refused('offer_not_live', `The offer is ${offerStatus} and takes no applications.`)
  const standing = facts.existing.find((status) => status !== 'rejected')
  if (standing === undefined) return { kind: 'allowed' }
  return refused('already_applied', `Your application to this offer is already ${standing}.`)
}
