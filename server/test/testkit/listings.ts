import { applyToOffer, decideOnApplication } from '../../applications/applications.service.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import {
  createOffer,
  type OfferFields,
  type ShownOffer,
  setOfferStatus,
} from '../../offers/offers.service.ts'
import type { Actor, SessionActor } from '../../platform/api/procedure.ts'
import { updateRows } from '../../platform/database/protected-rows.ts'
import type { Platform } from '../../platform/platform.ts'
import { connectStore } from '../../stores/stores.service.ts'
import type { StoreAccess } from './orders.ts'
import { addUser } from './people.ts'
import { rowOf } from './rows.ts'

export const OFFER: OfferFields = {
  title: 'Lawn kurta',
  description: 'Three pieces, unstitched',
  product_url: 'https://kurta.pk/products/lawn?variant=7&ref=Caf%C3%A9#reviews',
  image_url: null,
  category: 'Fashion',
  niche: 'Lawn',
  commission_rate: 1250,
  attribution_window_days: 30,
  product_ids: null,
}

/** A merchant with a connected store, whose signed orders have shown the host of `OFFER`. */
export async function addMerchant(platform: Platform, name = 'merchant'): Promise<SessionActor> {
  const merchant = await addUser(platform, 'merchant', name)
  const { domain: shop_domain, secret: webhook_secret } = accessOf(merchant)
  const { id } = await connectStore(platform, merchant.userId, { shop_domain, webhook_secret })
  await addShownHost(platform, id)
  return merchant
}

/** Of the store of a merchant made by `addMerchant`. */
export function accessOf({ userId }: Actor): StoreAccess {
  return { domain: `s${userId}.myshopify.com`, secret: `secret-${userId}` }
}

/** Has the store's orders show the host of `OFFER`, as if a signed one had, so that it is not flagged. */
export async function addShownHost({ database }: Platform, storeId: string): Promise<void> {
  const own_hosts = JSON.stringify([new URL(OFFER.product_url).hostname])
  await database.transaction((tx) => updateRows(tx, 'stores', { id: storeId }, { own_hosts }))
}

/** The id of this merchant's one store. */
export async function storeIdOf(platform: Platform, merchantId: string): Promise<string> {
  const { id } = await rowOf(platform, 'stores', { merchant_id: merchantId })
  return id
}

/** A live offer of this merchant, who must have a store. */
export async function addLiveOffer(
  platform: Platform,
  merchant: Actor,
  fields: Partial<OfferFields> = {},
): Promise<ShownOffer> {
  const { id } = await createOffer(platform, merchant.userId, { ...OFFER, ...fields })
  return setOfferStatus(platform, merchant.userId, id, 'live')
}

/** An approved application of this creator, and the link that the approval made. */
export async function addLink(
  platform: Platform,
  merchant: Actor,
  creator: Actor,
  offerId: string,
): Promise<LinkRecord> {
  const { id } = await applyToOffer(platform, creator.userId, offerId, { message: null, promotion_url: null })
  const answer = { decision: 'approve', reason: null } as const
  const { link } = await decideOnApplication(platform, merchant.userId, id, answer)
  if (!link) throw new Error('the approval made no link')
  return link
}
