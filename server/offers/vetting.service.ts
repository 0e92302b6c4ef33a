import type { BasisPoints } from '../../shared/rates.ts'
import { recordAudit } from '../moderation/audit.service.ts'
import { settleVetting } from '../moderation/vetting-queue.service.ts'
import { afterCommit } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { changedAt, noSuchOffer, PUBLIC_OFFERS, type ShownOffer, shownOffer } from './offers.service.ts'
import { changeOffer, lockOffer, type OfferRow } from './offers.store.ts'

export interface Vetting {
  offerId: string
  /** The admin's user id, or `OPERATOR`. */
  actor: string
  decision: 'approve' | 'reject'
  reason: string | null
  /** The rate that the admin saw (basis points): guards against deciding on another one. */
  commissionRate?: BasisPoints | undefined
}

/**
 * Records an admin's word on an offer at its present rate; the same word on the same rate again changes nothing. Links
 * and a live status stay as they are: a rejection holds for going live and for approvals from then on. Refuses with
 * `not_found`, and with `conflict` when the rate is another than `commissionRate` by now.
 */
export async function vetOffer(platform: Platform, vetting: Vetting): Promise<ShownOffer> {
  const verdict = vetting.decision === 'approve' ? 'approved' : 'rejected'
  const row = await platform.database.transaction(async (tx): Promise<OfferRow> => {
    const offer = await lockOffer(tx, null, vetting.offerId)
    if (!offer) throw noSuchOffer()
    const { commission_rate: rate } = offer
    if (vetting.commissionRate !== undefined && vetting.commissionRate !== rate) {
      throw new Refusal('conflict', `The offer's commission rate is ${rate / 100} % by now.`)
    }
    await settleVetting(platform, tx, offer.id, `The offer was ${verdict} at ${rate / 100} %.`)
    if (offer.vetting_verdict === verdict && offer.vetted_rate === rate) return offer
    const updated_at = changedAt(platform, offer)
    const change = { vetting_verdict: verdict, vetted_rate: rate, updated_at } as const
    await changeOffer(tx, offer, change)
    afterCommit(tx, () => platform.caches.clear(PUBLIC_OFFERS))
    await recordAudit(platform, tx, {
      actor: vetting.actor,
      action: 'offer.vet',
      subjectType: 'offer',
      subjectId: offer.id,
      reason: vetting.reason,
      before: { vetting: offer.vetting_verdict, vetted_rate: offer.vetted_rate },
      after: { vetting: verdict, vetted_rate: rate },
    })
    return { ...offer, ...change }
  })
  return shownOffer(platform, row)
}
