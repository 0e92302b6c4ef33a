import { recordAudit } from '../moderation/audit.service.ts'
import type { Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { applyChange } from './offers.service.ts'
import { liveOfferIds, lockOffer } from './offers.store.ts'

/** Pauses every live offer of a merchant, each with an audit entry, and answers how many there were. */
export async function pauseLiveOffers(
  platform: Platform,
  tx: Tx,
  merchantId: string,
  by: { actor: string; reason: string },
): Promise<number> {
  let paused = 0
  for (const id of await liveOfferIds(tx, merchantId)) {
    const offer = await lockOffer(tx, merchantId, id)
    if (offer?.status !== 'live') continue
    await applyChange(platform, tx, offer, { status: 'paused' })
    await recordAudit(platform, tx, {
      actor: by.actor,
      action: 'offer.pause',
      subjectType: 'offer',
      subjectId: id,
      reason: by.reason,
      before: { status: 'live' },
      after: { status: 'paused' },
    })
    paused += 1
  }
  return paused
}
