import type { Ddl } from './ddl.ts'

/** Orders that were placed and are not paid yet. */
export const up = ({ id, oneOf, unique, refuse, neverDeleted }: Ddl): string[] => [
  `create table "pending_orders" (
      "id" ${id} not null primary key,
      "store_id" ${id} not null constraint "pending_orders_store_id_foreign" references "stores" ("id") on delete restrict,
      "merchant_id" ${id} not null constraint "pending_orders_merchant_id_foreign" references "users" ("id") on delete restrict,
      "order_id" text not null,
      "order_name" text not null,
      "state" text not null,
      "offer_id" ${id} not null,
      "creator_id" ${id} not null,
      "link_id" ${id} not null,
      "coupon_code" text,
      "expected_commission" bigint not null,
      "sale_id" ${id} constraint "pending_orders_sale_id_foreign" references "sales" ("id") on delete restrict,
      "placed_at" bigint not null,
      "version" text not null,
      "created_at" bigint not null,
      "updated_at" bigint not null,
      "state_at" bigint not null,
      "row_digest" text not null,
      constraint "pending_orders_state_check" check (${oneOf('state', 'pending', 'expired', 'cancelled', 'became_sale')}),
      constraint "pending_orders_sale_check" check ((state = 'became_sale') = (sale_id is not null) and expected_commission >= 0)
    )`,
  unique('pending_orders', 'pending_orders_order', 'store_id, order_id'),
  'create index "pending_orders_merchant" on "pending_orders" ("merchant_id", "id")',
  'create index "pending_orders_creator" on "pending_orders" ("creator_id", "id")',
  'create index "pending_orders_offer" on "pending_orders" ("offer_id", "placed_at", "state")',
  `create index "pending_orders_due" on "pending_orders" ("placed_at", "id") where state = 'pending'`,
  `create index "pending_orders_open_merchant" on "pending_orders" ("merchant_id", "expected_commission") where state = 'pending'`,
  `create index "pending_orders_open_creator" on "pending_orders" ("creator_id", "expected_commission") where state = 'pending'`,
  ...neverDeleted('pending_orders'),
  refuse(
    'update',
    'pending_orders',
    'pending_orders_forward_only',
    `
    new.id <> old.id or new.store_id <> old.store_id or new.order_id <> old.order_id or new.merchant_id <> old.merchant_id
    or (old.state = 'became_sale' and new.state <> 'became_sale')
    or (old.sale_id is not null and new.sale_id <> old.sale_id)
    or (old.state = 'cancelled' and new.state in ('pending', 'expired'))
    or (old.state = 'expired' and new.state = 'pending')`,
  ),
]
