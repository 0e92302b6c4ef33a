import { defineEntity, p } from '@mikro-orm/core'
import { BillingCycle } from '../billing/billing-cycle.entity.ts'
import { basisPoints, count, id, json, moment, oneOf, paisa, text, word } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { Store } from '../stores/store.entity.ts'
import { User } from '../users/user.entity.ts'

/**
 * One row for each order that a store reported, accepted or rejected. A trigger allows one update: a sale rejected as `not_paid` is
 * decided again when the order is reported as paid.
 */
export const Sale = defineEntity({
  name: 'Sale',
  tableName: 'sales',
  properties: {
    id: id().primary(),
    store: () => refersTo(Store),
    merchant: () => refersTo(User),
    /** The store's own id of the order, as text: it can exceed 2^53. */
    order_id: text(),
    order_name: text().nullable(),
    acceptance_status: word<'accepted' | 'rejected'>(),
    rejection_reason: text().nullable(),
    /** Known only when the tracking reference led to a link of this merchant's. */
    offer_id: id().nullable(),
    creator_id: id().nullable(),
    link_id: id().nullable(),
    click_id: id().nullable(),
    net_amount: paisa(),
    commission_rate: basisPoints().nullable(),
    commission: paisa(),
    platform_fee: paisa(),
    billing_cycle: () => refersTo(BillingCycle).nullable(),
    ordered_at: moment(),
    created_at: moment(),
    /** When it was decided the second time; `null`: decided once, at `created_at`. */
    decided_at: moment().nullable(),
    /** The inbound event that the decision rests on. */
    event_id: id(),
    /** JSON: the facts and the decision, each check with what it saw. */
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
  uniques: [{ name: 'sales_order', properties: ['store', 'order_id'] }],
  indexes: [
    { name: 'sales_merchant', properties: ['merchant', 'id'] },
    { name: 'sales_creator', properties: ['creator_id', 'id'] },
    { name: 'sales_cycle', properties: ['billing_cycle'] },
    { name: 'sales_link', properties: ['link_id', 'click_id'] },
    { name: 'sales_decided_again', properties: ['decided_at'], where: 'decided_at is not null' },
  ],
})

/** The former decision of a sale that was decided again. A sale has one at most; append-only. */
export const SaleDecision = defineEntity({
  name: 'SaleDecision',
  tableName: 'sale_decisions',
  properties: {
    sale: () => p.oneToOne(Sale).owner().primary().deleteRule('restrict').updateRule('no action'),
    /** The inbound event that the decision rested on. */
    event_id: id(),
    decided_at: moment(),
    /** JSON, as in `sales`. */
    receipt: json(),
  },
  uniques: [{ name: 'sale_decisions_event', properties: ['event_id'] }],
})
