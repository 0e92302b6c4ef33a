import type { z } from 'zod'
import type { BasisPoints } from '../../shared/rates.ts'
import type { vettingState } from '../../shared/schemas/offers.ts'

export type VettingState = z.infer<typeof vettingState>

/** The rates that a rejection applies to: the rejected one and higher ones, or all. */
export type RejectionScope = 'rate_and_above' | 'every_rate'

/** An offer's rate with an admin's latest decision, all `null` without one. Rates in basis points. */
export interface VettedOffer {
  commission_rate: BasisPoints
  vetting_verdict: 'approved' | 'rejected' | null
  /** The rate at the decision. */
  vetted_rate: BasisPoints | null
  /** `null` for an approval. */
  rejection_scope: RejectionScope | null
}

/** The scope of a rejection. Above the high-commission threshold the admin rejects the rate; at or below it, the offer itself. */
export function rejectionScopeOf(rate: BasisPoints, highCommissionRate: BasisPoints): RejectionScope {
  return rate > highCommissionRate ? 'rate_and_above' : 'every_rate'
}

/**
 * The vetting state of an offer at its rate. Rates up to and including `highCommissionRate` need no vetting.
 *
 * An approval applies to its own rate and lower ones. A rejection applies to its own rate and higher ones, or with the scope
 * `every_rate` to all until an admin approves. Any other rate above the threshold is `pending`.
 */
export function vettingStateOf(offer: VettedOffer, highCommissionRate: BasisPoints): VettingState {
  const { commission_rate: rate, vetting_verdict: verdict, vetted_rate: vetted } = offer
  if (offer.rejection_scope === 'every_rate') return 'rejected'
  if (rate <= highCommissionRate) return 'not_required'
  if (verdict === null || vetted === null) return 'pending'
  const applies = verdict === 'approved' ? rate <= vetted : rate >= vetted
  return applies ? verdict : 'pending'
}

/** Whether an offer in this vetting state may be live and may have applications approved. */
export function vettingPermits(state: VettingState): boolean {
  return state === 'not_required' || state === 'approved'
}

/**
 * Whether a live offer's rate may change to `rate`. Raising it requires a rate that needs no vetting or is approved; lowering is always
 * allowed, even from a live rate above a lowered threshold.
 */
export function mayChangeLiveRate(
  offer: VettedOffer,
  rate: BasisPoints,
  highCommissionRate: BasisPoints,
): boolean {
  const changed = { ...offer, commission_rate: rate }
  return rate <= offer.commission_rate || vettingPermits(vettingStateOf(changed, highCommissionRate))
}
