import { defineEntity } from '@mikro-orm/core'
import { offerStatus } from '../../shared/schemas/offers.ts'
import {
  basisPoints,
  count,
  enumText,
  epochMs,
  id,
  json,
  oneOf,
  refersTo,
  rowDigest,
  text,
} from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'
import type { OfferStatus } from './offer-status.rule.ts'
import type { RejectionScope } from './vetting.rule.ts'

export const Offer = defineEntity({
  name: 'Offer',
  tableName: 'offers',
  properties: {
    id: id().primary(),
    merchant_id: () => refersTo(User, 'merchant_id'),
    title: text(),
    description: text().strictNullable(),
    product_url: text(),
    image_url: text().strictNullable(),
    category: text(),
    niche: text(),
    commission_rate: basisPoints(),
    status: enumText<OfferStatus>(),
    /** The sequence of its last row in `offer_status_changes`. */
    status_count: count(),
    attribution_window_days: count(),
    /** JSON array of the store's product ids as strings; `null` means every product. */
    product_ids: json().strictNullable(),
    /** The last vetting, and the rate that it was made on. */
    vetting_verdict: enumText<'approved' | 'rejected'>().strictNullable(),
    vetted_rate: basisPoints().strictNullable(),
    /** Which rates the last vetting, a rejection, holds for; see vetting.rule.ts. */
    rejection_scope: enumText<RejectionScope>().strictNullable(),
    vetting_reason: text().strictNullable(),
    /** `category`, `niche` and the words of title and description as they are compared: see folded-text.ts. */
    category_key: text().default(''),
    niche_key: text().default(''),
    search_words: text().default(''),
    created_at: epochMs(),
    updated_at: epochMs(),
    row_digest: rowDigest(),
  },
  checks: [
    oneOf('offers', 'status', offerStatus.options),
    { name: 'offers_rate_check', expression: 'commission_rate between 1 and 9000' },
  ],
  indexes: [
    ...listIndexes('live', []),
    ...listIndexes('category', ['category_key']),
    ...listIndexes('niche', ['niche_key']),
    ...listIndexes('category_niche', ['category_key', 'niche_key']),
    ...listIndexes('merchant', ['merchant_id']),
  ],
})

/** Every status that an offer has had, from its creation on. Rows are only ever added. */
export const OfferStatusChange = defineEntity({
  name: 'OfferStatusChange',
  tableName: 'offer_status_changes',
  properties: {
    offer_id: () => refersTo(Offer, 'offer_id').primary(),
    /** From 1 for each offer. */
    sequence: count().primary(),
    status: enumText<OfferStatus>(),
    changed_at: epochMs(),
    row_digest: rowDigest(),
  },
  checks: [oneOf('offer_status_changes', 'status', offerStatus.options)],
})

/** One index for each order of the list; a merchant sees own offers in every status, all others only live ones. */
function listIndexes(prefix: string, equal: string[]) {
  const orders = {
    newest: ['id', 'commission_rate'],
    high: ['commission_rate', 'id'],
    low: ['commission_rate', 'id desc'],
  }
  return Object.entries(orders).map(([order, sorted]) => ({
    name: `offers_${prefix}_${order}`,
    columns: [...equal, ...sorted].map((column) => {
      const [name = column, direction] = column.split(' ')
      return { name, ...(direction ? { sort: 'DESC' as const } : {}) }
    }),
    ...(prefix === 'merchant' ? {} : { where: "status = 'live'" }),
  }))
}
