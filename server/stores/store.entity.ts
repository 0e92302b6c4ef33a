import { defineEntity } from '@mikro-orm/core'
import { epochMs, id, refersTo, text } from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'

export const Store = defineEntity({
  name: 'Store',
  tableName: 'stores',
  properties: {
    id: id().primary(),
    merchant_id: () => refersTo(User, 'merchant_id'),
    /** Lower case, without scheme or path: `shop.myshopify.com`. */
    shop_domain: text(),
    created_at: epochMs(),
    /** Set when the merchant removes the store or an operator frees its domain; the row stays for its sales. */
    removed_at: epochMs().strictNullable(),
    /** Set when an operator releases the claim: the merchant cannot connect the domain again until an operator allows it. */
    released_at: epochMs().strictNullable(),
    /** When its first validly signed event was applied, since it was last connected. */
    first_event_at: epochMs().strictNullable(),
  },
  indexes: [
    { name: 'stores_merchant', properties: ['merchant_id'] },
    { name: 'stores_domain', properties: ['shop_domain'] },
  ],
  // Several merchants may claim one domain: a delivery belongs to the claim whose secret verifies it.
  uniques: [
    { name: 'stores_claim_in_use', properties: ['merchant_id', 'shop_domain'], where: 'removed_at is null' },
  ],
})

/** Host names that the store's validly signed orders have shown, a few for each store. */
export const StoreHost = defineEntity({
  name: 'StoreHost',
  tableName: 'store_hosts',
  properties: {
    store_id: () => refersTo(Store, 'store_id').primary(),
    host: text().primary(),
    created_at: epochMs(),
  },
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
