import { defineEntity } from '@mikro-orm/core'
import {
  count,
  enumText,
  epochMs,
  id,
  json,
  refersTo,
  rowDigest,
  text,
} from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'

/** Why a delivery in a known shop's name was refused. */
export const REFUSAL_REASONS = ['no_signature', 'wrong_signature'] as const
export type RefusalReason = (typeof REFUSAL_REASONS)[number]

export const Store = defineEntity({
  name: 'Store',
  tableName: 'stores',
  properties: {
    id: id().primary(),
    merchant_id: () => refersTo(User, 'merchant_id'),
    /** Lower case, without scheme or path: `shop.myshopify.com`. */
    shop_domain: text(),
    /** The name before the claim was moved to `shop_domain`: deliveries that still carry it reach the claim. */
    former_domain: text().strictNullable(),
    created_at: epochMs(),
    /** Set when the merchant removes the store or an operator frees its domain; the row stays for its sales. */
    removed_at: epochMs().strictNullable(),
    /** Set when an operator releases the claim: the merchant cannot connect the domain again until an operator allows it. */
    released_at: epochMs().strictNullable(),
    /** When its first validly signed event was applied, since it was last connected. */
    first_event_at: epochMs().strictNullable(),
    /** When it was connected, or connected again. */
    connected_at: epochMs(),
    /** When a delivery in this shop's name last failed verification, to the minute, and why. Anyone can send one. */
    last_refused_at: epochMs().strictNullable(),
    last_refusal: enumText<RefusalReason>().strictNullable(),
    /** The first of the refusals without a valid delivery among them, and how many. Counts of before a valid one may still stand here. */
    refused_since: epochMs().strictNullable(),
    refused_count: count().default(0),
    /** When the merchant was last notified of refusals. */
    rejecting_sent_at: epochMs().strictNullable(),
    /** JSON array of the host names that its validly signed orders have shown; `null` before the first. */
    own_hosts: json().strictNullable(),
    row_digest: rowDigest(),
  },
  indexes: [
    { name: 'stores_refused', properties: ['id'], where: 'refused_since is not null' },
    { name: 'stores_merchant', properties: ['merchant_id'] },
    { name: 'stores_domain', properties: ['shop_domain'] },
    {
      name: 'stores_former_domain',
      properties: ['former_domain'],
      where: 'former_domain is not null',
    },
  ],
  // Several merchants may claim one domain: a delivery belongs to the claim whose secret verifies it.
  uniques: [
    { name: 'stores_claim_in_use', properties: ['merchant_id', 'shop_domain'], where: 'removed_at is null' },
  ],
})

/** A store's webhook secrets: the present one, and for a day after a rotation the former one. */
export const StoreSecret = defineEntity({
  name: 'StoreSecret',
  tableName: 'store_secrets',
  properties: {
    id: id().primary(),
    store_id: () => refersTo(Store, 'store_id'),
    secret_encrypted: text(),
    /** Keyed hash: the shop's domain is not signed, so one secret must belong to one store only. */
    fingerprint: text().unique(),
    /** `null` for the present secret. */
    valid_until: epochMs().strictNullable(),
    created_at: epochMs(),
  },
  indexes: [{ name: 'store_secrets_store', properties: ['store_id'] }],
})

/** What a store sent by day (whole days since 1970, UTC). */
export const StoreDay = defineEntity({
  name: 'StoreDay',
  tableName: 'store_days',
  properties: {
    store_id: () => refersTo(Store, 'store_id').primary(),
    day: count().primary(),
    /** The orders first decided that day, without test orders, by what led to their link: `OrderSource`. */
    cart: count(),
    landing: count(),
    line: count(),
    coupon: count(),
    none: count(),
    /** Signed events that were applied that day: of paid orders, and of other topics. */
    paid_events: count().default(0),
    other_events: count().default(0),
    /** When the latest signed event that was applied that day was received. */
    last_event_at: epochMs(),
  },
})

/** Shop domains that deliveries name and no merchant claims. Anyone can send one, so only a few are kept. */
export const UnclaimedDomain = defineEntity({
  name: 'UnclaimedDomain',
  tableName: 'unclaimed_domains',
  properties: {
    shop_domain: text().primary(),
    deliveries: count(),
    first_at: epochMs(),
    last_at: epochMs(),
  },
})
