import type { BasisPoints } from '../../shared/rates.ts'
import type { Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { closeFlag } from './flag-queue.service.ts'
import { raiseFlag } from './flags.service.ts'

/** As much of an offer as an admin's queue shows. */
export interface OfferToVet {
  id: string
  merchant_id: string
  title: string
  commission_rate: BasisPoints
}

/** Puts an offer whose rate nobody has decided on into the admins' queue. */
export function askForVetting(platform: Platform, tx: Tx, offer: OfferToVet): Promise<void> {
  return raiseFlag(platform, tx, {
    kind: 'offer_vetting',
    subjectType: 'offer',
    subjectId: offer.id,
    summary: `An offer at ${offer.commission_rate / 100} % commission waits for vetting.`,
    evidence: {
      title: offer.title,
      merchant_id: offer.merchant_id,
      commission_rate: offer.commission_rate / 100,
      high_commission_rate: platform.config.HIGH_COMMISSION_RATE / 100,
    },
  })
}

/** Takes an offer out of the queue: decided on, or nothing to decide any more. */
export async function settleVetting(
  platform: Platform,
  tx: Tx,
  offerId: string,
  note: string,
): Promise<void> {
  await closeFlag(platform, tx, { kind: 'offer_vetting', subjectType: 'offer', subjectId: offerId }, note)
}
