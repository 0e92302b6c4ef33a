import type { Platform } from '../platform/platform.ts'
import { findEveryOffer } from './offer-desk.store.ts'
import type { OfferStatus } from './offer-status.rule.ts'
import { type ShownOffer, shownOffer } from './offers.service.ts'
import type { VettingState } from './vetting.rule.ts'

export interface DeskQuery {
  merchantId: string | null
  status: OfferStatus | null
  vetting: VettingState | null
  limit: number
}

const AT_ONCE = 500

/** Every merchant's offers in every status, newest first: for operators. */
export async function listEveryOffer(platform: Platform, query: DeskQuery): Promise<ShownOffer[]> {
  const { merchantId, status, vetting, limit } = query
  // The rule decides the vetting state row by row; only rates above the threshold can be pending or approved.
  const onlyHigh = vetting === 'pending' || vetting === 'approved'
  const above = onlyHigh ? platform.config.HIGH_COMMISSION_RATE : null
  const found: ShownOffer[] = []
  for (let before: string | null = null; ; ) {
    const rows = await findEveryOffer(platform.database.reader, {
      merchantId,
      status,
      above,
      before,
      limit: vetting === null ? limit : AT_ONCE,
    })
    for (const row of rows) {
      const offer = await shownOffer(platform, row)
      if (vetting !== null && offer.vetting !== vetting) continue
      found.push(offer)
      if (found.length === limit) return found
    }
    if (vetting === null || rows.length < AT_ONCE) return found
    before = rows.at(-1)?.id ?? null
  }
}
