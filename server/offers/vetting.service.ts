import type { BasisPoints } from '../../shared/rates.ts'
import { recordAudit } from '../moderation/audit.service.ts'
import { settleVetting } from '../moderation/vetting-queue.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { afterCommit } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { changedAt, noSuchOffer, type ShownOffer, shownOffer } from './offers.service.ts'
import { changeOffer, lockOffer, type OfferRow } from './offers.store.ts'
import { clearPublicOffers } from './public-offers.service.ts'
import { type RejectionScope, rejectionScopeOf } from './vetting.rule.ts'

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
 * Records an admin's decision on an offer at its present rate. A rejection pauses a live offer; clicks made before
 * still earn. The same decision on the same rate again changes nothing. Refuses with `not_found`, and with `conflict`
 * when the offer's rate is no longer `commissionRate`.
 */
export async function vetOffer(platform: Platform, vetting: Vetting): Promise<ShownOffer> {
  const verdict = vetting.decision === 'approve' ? 'approved' : 'rejected'
  const row = await platform.database.transaction(async (tx): Promise<OfferRow> => {
    const offer = await lockOffer(tx, null, vetting.offerId)
    if (!offer) throw noSuchOffer()
    const { commission_rate: rate } = offer
    if (vetting.commissionRate !== undefined && vetting.commissionRate !== rate) {
      throw new Refusal('conflict', `The offer's commission rate is now ${rate / 100} %.`)
    }
    await settleVetting(platform, tx, offer.id, `The offer was ${verdict} at ${rate / 100} %.`)
    const scope = verdict === 'rejected' ? scopeAt(platform, rate) : null
    const status = verdict === 'rejected' && offer.status === 'live' ? 'paused' : offer.status
    const isRepeat =
      offer.vetting_verdict === verdict && offer.vetted_rate === rate && offer.rejection_scope === scope
    if (isRepeat && offer.status === status) return offer
    const change = {
      vetting_verdict: verdict,
      vetted_rate: rate,
      rejection_scope: scope,
      vetting_reason: vetting.reason,
      status,
      updated_at: changedAt(platform, offer),
    } as const
    if (!(await changeOffer(tx, offer, change))) throw new Error(`offer ${offer.id} changed under its lock`)
    if (offer.status === 'live') clearPublicOffers(platform, tx)
    if (status !== offer.status) afterCommit(tx, () => platform.caches.clear('slug'))
    await recordAudit(platform, tx, {
      actor: vetting.actor,
      action: 'offer.vet',
      subjectType: 'offer',
      subjectId: offer.id,
      reason: vetting.reason,
      before: { vetting: offer.vetting_verdict, vetted_rate: offer.vetted_rate, status: offer.status },
      after: { vetting: verdict, vetted_rate: rate, status },
    })
    return { ...offer, ...change }
  })
  return shownOffer(platform, row)
}

function scopeAt(platform: Platform, commissionRate: BasisPoints): RejectionScope {
  return rejectionScopeOf({ commissionRate, highCommissionRate: platform.config.HIGH_COMMISSION_RATE })
}
