import { sql } from 'kysely'
import { type Invariant, sqlInvariant } from './invariant.ts'

/** What must hold of orders that wait for a payment. They move no money. */
export const PENDING_ORDER_INVARIANTS: Invariant[] = [
  sqlInvariant({
    name: 'pending-orders-no-money',
    statement: 'No journal entry comes from a pending order.',
    table: 'pending_orders',
    breaches: sql`
      select 'pending order ' || pending.id as subject, 'entry ' || entry.id || ' of kind ' || entry.kind as detail
      from pending_orders as pending
      join ledger_entries as entry on entry.subject_id = pending.id`,
  }),
  sqlInvariant({
    name: 'pending-orders-sales',
    statement:
      'A pending order names the sale of its own order, with its link and commission, and an order that was decided is pending no longer.',
    table: 'pending_orders',
    breaches: sql`
      select 'pending order ' || pending.id as subject, case
          when sale.id is null then 'its sale ' || pending.sale_id || ' is not the sale of its order'
          when pending.sale_id is null then 'it is ' || pending.state || ', and its order has sale ' || sale.id
          when pending.sale_id <> sale.id then 'its order has sale ' || sale.id || ', not ' || pending.sale_id
          when pending.merchant_id <> sale.merchant_id then 'its sale is of another merchant'
          else 'its link or commission is not that of its sale ' || sale.id
        end as detail
      from pending_orders as pending
      left join sales as sale on sale.store_id = pending.store_id and sale.order_id = pending.order_id
      where (sale.id is null and pending.sale_id is not null)
        or (sale.id is not null and pending.sale_id is null and coalesce(sale.rejection_reason, '') <> 'not_paid')
        or pending.sale_id <> sale.id or pending.merchant_id <> sale.merchant_id
        or (pending.sale_id is not null and sale.link_id is not null
          and (pending.link_id <> sale.link_id or pending.expected_commission <> sale.commission))`,
  }),
  sqlInvariant({
    name: 'pending-orders-match-links',
    statement: 'A pending order names the offer, creator and merchant of its link.',
    table: 'pending_orders',
    breaches: sql`
      select 'pending order ' || pending.id as subject, case
          when link.id is null then 'its link ' || pending.link_id || ' does not exist'
          else 'its offer, creator or merchant is not that of its link ' || link.id
        end as detail
      from pending_orders as pending
      left join affiliate_links as link on link.id = pending.link_id
      where link.id is null or pending.merchant_id <> link.merchant_id
        or pending.offer_id <> link.offer_id or pending.creator_id <> link.creator_id`,
  }),
]
