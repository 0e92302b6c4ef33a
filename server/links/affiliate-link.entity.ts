import { defineEntity, p } from '@mikro-orm/core'
import { Application } from '../applications/application.entity.ts'
import { Offer } from '../offers/offer.entity.ts'
import { basisPoints, count, epochMs, id, json, refersTo, text } from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'

/** Created by an approval, with the offer's terms at that time; never changed. */
export const AffiliateLink = defineEntity({
  name: 'AffiliateLink',
  tableName: 'affiliate_links',
  properties: {
    id: id().primary(),
    slug: text().unique(),
    application_id: () =>
      p
        .oneToOne(Application)
        .owner()
        .fieldName('application_id')
        .mapToPk()
        .deleteRule('restrict')
        .updateRule('no action'),
    offer_id: () => refersTo(Offer, 'offer_id'),
    merchant_id: () => refersTo(User, 'merchant_id'),
    creator_id: () => refersTo(User, 'creator_id'),
    commission_rate: basisPoints(),
    attribution_window_days: count(),
    /** JSON array of strings, or `null` for every product. */
    product_ids: json().strictNullable(),
    created_at: epochMs(),
  },
  indexes: [
    { name: 'affiliate_links_creator', properties: ['creator_id', 'id'] },
    { name: 'affiliate_links_offer', properties: ['offer_id'] },
  ],
})
