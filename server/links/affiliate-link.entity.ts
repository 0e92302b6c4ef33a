import { defineEntity, p } from '@mikro-orm/core'
import { Application } from '../applications/application.entity.ts'
import { Offer } from '../offers/offer.entity.ts'
import { basisPoints, count, id, json, moment, text } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { User } from '../users/user.entity.ts'

/** Made by an approval, with the terms of that moment; nothing of it changes afterwards. */
export const AffiliateLink = defineEntity({
  name: 'AffiliateLink',
  tableName: 'affiliate_links',
  properties: {
    id: id().primary(),
    slug: text().unique(),
    application: () => p.oneToOne(Application).owner().deleteRule('restrict').updateRule('no action'),
    offer: () => refersTo(Offer),
    merchant: () => refersTo(User),
    creator: () => refersTo(User),
    commission_rate: basisPoints(),
    attribution_window_days: count(),
    /** JSON array of strings, or `null` for every product. */
    product_ids: json().nullable(),
    created_at: moment(),
  },
  indexes: [
    { name: 'affiliate_links_creator', properties: ['creator', 'id'] },
    { name: 'affiliate_links_offer', properties: ['offer'] },
  ],
})
