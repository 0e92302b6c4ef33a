import type { OfferSort } from '../../../shared/schemas/offers.ts'
import { addOffer, type OfferRow } from '../../offers/offers.store.ts'
import type { Platform } from '../../platform/platform.ts'
import { OFFER } from './listings.ts'

/** A row as the service would have made it, in any status. */
export function offerOf(platform: Platform, merchantId: string, fields: Partial<OfferRow>): OfferRow {
  const now = platform.clock.now()
  return {
    ...{ ...OFFER, product_ids: null, id: platform.ids.next(), merchant_id: merchantId },
    ...{ status: 'live', status_count: 1, created_at: now, updated_at: now },
    ...{ vetting_verdict: null, vetted_rate: null, rejection_scope: null, vetting_reason: null },
    ...fields,
  }
}

/** Adds many offers, few in each transaction, since each one's flush looks at all entities of its transaction. */
export async function addOffers({ database }: Platform, rows: readonly OfferRow[]): Promise<void> {
  const AT_ONCE = 20
  for (let from = 0; from < rows.length; from += AT_ONCE) {
    await database.transaction(async (tx) => {
      for (const row of rows.slice(from, from + AT_ONCE)) await addOffer(tx, row)
    })
  }
}

/** The order of a list, said without a database. */
export function inOrderOf(sort: OfferSort): (a: OfferRow, b: OfferRow) => number {
  const sign = { newest: 0, commission_desc: -1, commission_asc: 1 }[sort]
  return (a, b) => sign * (a.commission_rate - b.commission_rate) || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
}
