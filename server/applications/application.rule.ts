import type { z } from 'zod'
import type { applicationStatus } from '../../shared/schemas/applications.ts'
import { type OfferStatus, type Refused, refused } from '../offers/offer-status.rule.ts'
import { type VettingState, vettingPermits } from '../offers/vetting.rule.ts'

export type ApplicationStatus = z.infer<typeof applicationStatus>

/** A part of a merchant's answer. */
export type AnswerPart = 'reason' | 'coupon code' | 'commission rate'

export interface ApplicationDecisionFacts {
  /** The application's status before the decision. */
  status: ApplicationStatus
  decision: 'approve' | 'reject'
  offerStatus: OfferStatus
  /** The vetting of the rate that an approval would lock. */
  vetting: VettingState
  /** Whether that rate is one for this creator only, in place of the offer's. */
  individualRate: boolean
  /** What of the answer is not as it was decided; `null` for a repeat of the whole answer. Counts for a decided application only. */
  differsIn?: AnswerPart | null
}

export type ApplicationDecision =
  | { kind: 'approve' | 'reject' | 'unchanged' }
  | Refused<'already_decided' | 'offer_not_live' | 'vetting_required'>

/**
 * Decides a merchant's answer to an application. Repeating a decision is `unchanged`; the opposite one, and one with another reason,
 * coupon code or rate, is `already_decided`, whatever the offer's status, and so is any answer to a withdrawn application. Rejecting is
 * always possible. Approving creates a link that earns, so it needs a live offer (`offer_not_live`), and a rate that needs no vetting or
 * is approved (`vetting_required`).
 */
export function decideApplication(facts: ApplicationDecisionFacts): ApplicationDecision {
  const { status, decision, offerStatus, differsIn } = facts
  if (status === 'withdrawn') return refused('already_decided', 'The creator has withdrawn this application.')
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
  return refused('vetting_required', facts.individualRate ? INDIVIDUAL_RATE_UNVETTED : OFFER_RATE_UNVETTED)
}

export const OFFER_RATE_UNVETTED =
  "The offer's commission rate needs an approved vetting before applications are approved."
const INDIVIDUAL_RATE_UNVETTED =
  'An individual rate above the high-commission threshold needs an approved vetting of the offer at that rate or a higher one.'

/** Whether its creator may withdraw an application: while it is pending. Again is `unchanged`; a decided one is `already_decided`. */
export function decideWithdrawal(
  status: ApplicationStatus,
): { kind: 'withdraw' | 'unchanged' } | Refused<'already_decided'> {
  if (status === 'pending') return { kind: 'withdraw' }
  if (status === 'withdrawn') return { kind: 'unchanged' }
  return refused('already_decided', `This application is already ${status}.`)
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
  const standing = facts.existing.find((status) => status === 'pending' || status === 'approved')
  if (standing === undefined) return { kind: 'allowed' }
  return refused('already_applied', `Your application to this offer is already ${standing}.`)
}
