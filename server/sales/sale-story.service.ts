import { offerRecords } from '../offers/offers.service.ts'
import type { Platform } from '../platform/platform.ts'
import { displayNamesOf } from '../users/users.service.ts'
import { outcomeOfSale, type SaleOutcome } from './sale-outcome.service.ts'
import {
  type FormerDecision,
  formerDecisionsOf,
  getSale,
  type SaleScope,
  type SaleWithSlug,
} from './sales.service.ts'

interface Party {
  id: string
  displayName: string
}

/** A sale with what its two parties may know: names, and nothing by which they could be reached or paid. */
export interface SaleStory {
  sale: SaleWithSlug
  merchant: Party
  /** `null`, like the offer, when the order led to no link of this merchant's. */
  creator: Party | null
  offer: { id: string; title: string } | null
  /** Oldest first. */
  formerDecisions: FormerDecision[]
  outcome: SaleOutcome
}

export async function getSaleStory(
  platform: Platform,
  scope: SaleScope,
  saleId: string,
): Promise<SaleStory | null> {
  const db = platform.database.reader
  const sale = await getSale(platform, scope, saleId)
  if (!sale) return null
  const { merchant_id, creator_id, offer_id } = sale
  const names = await displayNamesOf(db, creator_id === null ? [merchant_id] : [merchant_id, creator_id])
  const party = (id: string) => ({ id, displayName: names.get(id) ?? '' })
  const offers = await offerRecords(platform, db, offer_id === null ? [] : [offer_id])
  return {
    sale,
    merchant: party(merchant_id),
    creator: creator_id === null ? null : party(creator_id),
    offer: offer_id === null ? null : { id: offer_id, title: offers.get(offer_id)?.title ?? '' },
    formerDecisions: await formerDecisionsOf(db, sale),
    outcome: await outcomeOfSale(db, sale),
  }
}
