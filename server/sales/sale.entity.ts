import { defineEntity, p } from '@mikro-orm/core'
import type { RejectionReason } from '../../shared/rejection-reasons.ts'
import { BillingCycle } from '../billing/billing.entity.ts'
import {
  basisPoints,
  count,
  enumText,
  epochMs,
  id,
  json,
  oneOf,
  paisa,
  refersTo,
  text,
} from '../platform/database/columns.ts'
import { Store } from '../stores/store.entity.ts'
import { User } from '../users/user.entity.ts'

/**
 * One row per reported order, accepted or rejected. A trigger allows one update: a sale rejected as `not_paid` is decided again when
 * the order is reported as paid.
 */
export const Sale = defineEntity({
  name: 'Sale',
  tableName: 'sales',
  properties: {
    id: id().primary(),
    store_id: () => refersTo(Store, 'store_id'),
    merchant_id: () => refersTo(User, 'merchant_id'),
    /** The store's order id, as text because it can exceed 2^53. */
    order_id: text(),
    order_name: text().strictNullable(),
    acceptance_status: enumText<'accepted' | 'rejected'>(),
    rejection_reason: enumText<RejectionReason>().strictNullable(),
    /** Set only when a coupon code or the tracking reference leads to a link of this merchant. */
    offer_id: id().strictNullable(),
    creator_id: id().strictNullable(),
    link_id: id().strictNullable(),
    /** The click that earned the commission; `null` when a coupon code did. */
    click_id: id().strictNullable(),
    /** The coupon code that earned the commission; `null` when a click did. */
    coupon_code: text().strictNullable(),
    net_amount: paisa(),
    commission_rate: basisPoints().strictNullable(),
    commission: paisa(),
    platform_fee: paisa(),
    billing_cycle_id: () => refersTo(BillingCycle, 'billing_cycle_id').strictNullable(),
    ordered_at: epochMs(),
    created_at: epochMs(),
    /** The time of the second decision; `null` when decided once, at `created_at`. */
    decided_at: epochMs().strictNullable(),
    /** The inbound event that the decision is based on. */
    event_id: id(),
    /** JSON: `SaleReceipt`. */
    receipt: json(),
    /** 1 when the buyer's name is the title of the creator's payout account. */
    buyer_name_matches: count().default(0),
  },
  checks: [
    oneOf('sales', 'acceptance_status', ['accepted', 'rejected']),
    {
      name: 'sales_accepted_check',
      expression:
        "(acceptance_status = 'accepted') = (billing_cycle_id is not null) and (acceptance_status = 'accepted') = (rejection_reason is null)",
    },
    { name: 'sales_amounts_check', expression: 'commission between 0 and net_amount and platform_fee >= 0' },
  ],
  uniques: [{ name: 'sales_order', properties: ['store_id', 'order_id'] }],
  indexes: [
    { name: 'sales_merchant', properties: ['merchant_id', 'id'] },
    { name: 'sales_creator', properties: ['creator_id', 'id'] },
    { name: 'sales_cycle', properties: ['billing_cycle_id', 'id'] },
    { name: 'sales_order_name', properties: ['store_id', 'order_name'] },
    { name: 'sales_link', properties: ['link_id', 'click_id'] },
    { name: 'sales_coupon', properties: ['link_id', 'id'], where: 'coupon_code is not null' },
    { name: 'sales_decided_again', properties: ['decided_at'], where: 'decided_at is not null' },
  ],
})

/** The former decision of a sale that was decided again, at most one per sale. Append-only. */
export const SaleDecision = defineEntity({
  name: 'SaleDecision',
  tableName: 'sale_decisions',
  properties: {
    sale: () => p.oneToOne(Sale).owner().primary().deleteRule('restrict').updateRule('no action'),
    /** The inbound event that it was based on. */
    event_id: id(),
    decided_at: epochMs(),
    /** JSON: `SaleReceipt`. */
    receipt: json(),
  },
  uniques: [{ name: 'sale_decisions_event', properties: ['event_id'] }],
})
