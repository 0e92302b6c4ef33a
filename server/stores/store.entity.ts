import { defineEntity } from '@mikro-orm/core'
import { id, moment, text } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { User } from '../users/user.entity.ts'

export const Store = defineEntity({
  name: 'Store',
  tableName: 'stores',
  properties: {
    id: id().primary(),
    merchant: () => refersTo(User),
    /** Lower case, without scheme or path: `shop.myshopify.com`. */
    shop_domain: text(),
    created_at: moment(),
    /** Set when the merchant removes the store or an operator frees its domain; the row stays for its sales. */
    removed_at: moment().nullable(),
  },
  indexes: [{ name: 'stores_merchant', properties: ['merchant'] }],
  uniques: [{ name: 'stores_domain_in_use', properties: ['shop_domain'], where: 'removed_at is null' }],
})

/** A store's webhook secrets: the present one, and for a day after a rotation the former one. */
export const StoreSecret = defineEntity({
  name: 'StoreSecret',
  tableName: 'store_secrets',
  properties: {
    id: id().primary(),
    store: () => refersTo(Store),
    secret_encrypted: text(),
    /** Keyed hash: the shop's domain is not signed, so one secret must belong to one store only. */
    fingerprint: text().unique(),
    /** `null` for the present secret. */
    valid_until: moment().nullable(),
    created_at: moment(),
  },
  indexes: [{ name: 'store_secrets_store', properties: ['store'] }],
})
