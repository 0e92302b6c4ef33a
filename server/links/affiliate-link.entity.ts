import { defineEntity, p } from '@mikro-orm/core'
import { Application } from '../applications/application.entity.ts'
import { Offer } from '../offers/offer.entity.ts'
import {
  basisPoints,
  count,
  epochMs,
  id,
  json,
  refersTo,
  rowDigest,
  text,
} from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'

/** Created by an approval, which locks its terms. The one later change is that it ends, once. */
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
    /** The offer's rate at the approval where the merchant gave this creator another one; `null` where the link has the offer's. */
    offer_rate: basisPoints().strictNullable(),
    attribution_window_days: count(),
    /** JSON array of strings, or `null` for every product. */
    product_ids: json().strictNullable(),
    created_at: epochMs(),
    ended_at: epochMs().strictNullable(),
    /** The merchant's, for the creator to read. */
    end_reason: text().strictNullable(),
    row_digest: rowDigest(),
  },
  indexes: [
    { name: 'affiliate_links_creator', properties: ['creator_id', 'id'] },
    { name: 'affiliate_links_offer', properties: ['offer_id'] },
    { name: 'affiliate_links_merchant', properties: ['merchant_id', 'id'] },
  ],
})

/**
 * When a link had which coupon code. Rows are only added; the one later change is that a row ends. At most one row of a link and one
 * of a merchant's code is in force.
 */
export const LinkCoupon = defineEntity({
  name: 'LinkCoupon',
  tableName: 'link_coupons',
  properties: {
    id: id().primary(),
    link_id: () => refersTo(AffiliateLink, 'link_id'),
    merchant_id: () => refersTo(User, 'merchant_id'),
    /** Upper case. */
    code: text(),
    starts_at: epochMs(),
    /** Exclusive; `null` while in force. */
    ends_at: epochMs().strictNullable(),
    row_digest: rowDigest(),
  },
  checks: [{ name: 'link_coupons_dates_check', expression: 'ends_at is null or ends_at >= starts_at' }],
  uniques: [
    { name: 'link_coupons_code_in_force', properties: ['merchant_id', 'code'], where: 'ends_at is null' },
    { name: 'link_coupons_link_in_force', properties: ['link_id'], where: 'ends_at is null' },
  ],
  indexes: [
    { name: 'link_coupons_code', properties: ['merchant_id', 'code', 'starts_at'] },
    { name: 'link_coupons_link', properties: ['link_id', 'starts_at'] },
  ],
})
