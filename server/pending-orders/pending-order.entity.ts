import { defineEntity } from '@mikro-orm/core'
import {
  enumText,
  epochMs,
  id,
  oneOf,
  paisa,
  refersTo,
  rowDigest,
  text,
} from '../platform/database/columns.ts'
import { Sale } from '../sales/sale.entity.ts'
import { Store } from '../stores/store.entity.ts'
import { User } from '../users/user.entity.ts'
import { PENDING_STATES, type PendingState } from './pending-order.rule.ts'

/** An order that was placed, leads to a link and was reported unpaid or canceled. It moves no money. Rows never go, states only forward. */
export const PendingOrder = defineEntity({
  name: 'PendingOrder',
  tableName: 'pending_orders',
  properties: {
    id: id().primary(),
    store_id: () => refersTo(Store, 'store_id'),
    merchant_id: () => refersTo(User, 'merchant_id'),
    /** The store's order id, as text because it can exceed 2^53. */
    order_id: text(),
    order_name: text(),
    state: enumText<PendingState>(),
    offer_id: id(),
    creator_id: id(),
    link_id: id(),
    /** `null` when a click leads to the link. */
    coupon_code: text().strictNullable(),
    /** What the rule of sales would pay if the order were paid unchanged; of an order with a sale, what it pays. */
    expected_commission: paisa(),
    sale_id: () => refersTo(Sale, 'sale_id').strictNullable(),
    /** When the order was placed in the store. */
    placed_at: epochMs(),
    /** Of the report that these values come from: `versionOf`. */
    version: text(),
    created_at: epochMs(),
    updated_at: epochMs(),
    /** When it got its state. */
    state_at: epochMs(),
    row_digest: rowDigest(),
  },
  checks: [
    oneOf('pending_orders', 'state', PENDING_STATES),
    {
      name: 'pending_orders_sale_check',
      expression: "(state = 'became_sale') = (sale_id is not null) and expected_commission >= 0",
    },
  ],
  uniques: [{ name: 'pending_orders_order', properties: ['store_id', 'order_id'] }],
  indexes: [
    { name: 'pending_orders_merchant', properties: ['merchant_id', 'id'] },
    { name: 'pending_orders_creator', properties: ['creator_id', 'id'] },
    { name: 'pending_orders_offer', properties: ['offer_id', 'placed_at', 'state'] },
    { name: 'pending_orders_order_name', properties: ['store_id', 'order_name'] },
    { name: 'pending_orders_due', properties: ['placed_at', 'id'], where: "state = 'pending'" },
    {
      name: 'pending_orders_open_merchant',
      properties: ['merchant_id', 'expected_commission'],
      where: "state = 'pending'",
    },
    {
      name: 'pending_orders_open_creator',
      properties: ['creator_id', 'expected_commission'],
      where: "state = 'pending'",
    },
  ],
})
