import { afterCommit, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { hasLiveOffer } from './offers.store.ts'

/** The cache of what everybody is shown of offers. */
export const PUBLIC_OFFERS = 'offers'

/** To be called only for a change that everybody can see: every reader's next list is then read from the database. */
export function clearPublicOffers(platform: Platform, tx: Tx): void {
  afterCommit(tx, () => platform.caches.clear(PUBLIC_OFFERS))
}

/** Public offers show their merchant's name; a merchant without live offers is not shown. */
export async function showRenamedMerchant(platform: Platform, tx: Tx, merchantId: string): Promise<void> {
  if (await hasLiveOffer(tx, merchantId)) clearPublicOffers(platform, tx)
}
