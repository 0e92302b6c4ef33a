import { defineEntity } from '@mikro-orm/core'
import { BillingCycle } from '../billing/billing-cycle.entity.ts'
import { basisPoints, id, json, moment, oneOf, paisa, text, word } from '../platform/columns.ts'
import { refersTo } from '../platform/relations.ts'
import { Store } from '../stores/store.entity.ts'
import { User } from '../users/user.entity.ts'

/** One row an order that a store reported, accepted or rejected; never changed afterwards (a trigger sees to it). */
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
    /** The inbound event that reported it. */
    event_id: id(),
    /** JSON: the facts and the decision, each check with what it saw. */
    receipt: json(),
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
    { name: 'sales_link', properties: ['link_id'] },
  ],
})
