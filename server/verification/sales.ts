import { type RawBuilder, sql } from 'kysely'
import type { Account } from '../ledger/entries.rule.ts'
import { NIL_ID } from '../platform/ids.ts'
import { type Invariant, sqlInvariant } from './invariant.ts'

/** Stores write an order's time in whole seconds. */
const END_OF_SECOND = sql`sale.ordered_at - sale.ordered_at % 1000 + 999`

/** What must hold between sales, their links and the journal. */
export const SALE_INVARIANTS: Invariant[] = [
  sqlInvariant({
    name: 'one-sale-an-order',
    statement: 'A store reports each order once.',
    table: 'sales',
    breaches: (scope) => sql`
      select 'order ' || order_id || ' of store ' || store_id as subject, count(*) || ' sales' as detail
      from sales
      where ${scope.covered ? sql`order_id in (select order_id from sales where ${scope.isNew('sales.id')})` : sql`true`}
      group by store_id, order_id having count(*) > 1`,
  }),
  sqlInvariant({
    name: 'sale-amounts',
    statement:
      'Commission lies between zero and the net amount; a rejected sale pays nothing; the rate is the locked one.',
    table: 'sales',
    breaches: (scope) => sql`
      select 'sale ' || sale.id as subject,
        'net ' || sale.net_amount || ', commission ' || sale.commission || ', fee ' || sale.platform_fee
          || ', rate ' || coalesce(sale.commission_rate, -1) || ', locked rate ' || coalesce(link.commission_rate, -1) as detail
      from sales as sale
      left join affiliate_links as link on link.id = sale.link_id
      where ${scope.isNewSale('sale.id')} and (sale.commission < 0 or sale.commission > sale.net_amount
        or (sale.acceptance_status = 'rejected' and (sale.commission <> 0 or sale.platform_fee <> 0 or sale.billing_cycle_id is not null))
        or (sale.acceptance_status = 'accepted' and (
          link.id is null or sale.billing_cycle_id is null
          or sale.commission_rate <> link.commission_rate
          or link.merchant_id <> sale.merchant_id
          or link.creator_id <> sale.creator_id
          or sale.commission <> (sale.net_amount * sale.commission_rate + 5000) / 10000)))`,
  }),
  sqlInvariant({
    name: 'sales-match-links',
    statement:
      'A sale names the offer, creator and merchant of its link; without a link it names no offer, creator or click.',
    table: 'sales',
    breaches: (scope) => sql`
      select 'sale ' || sale.id as subject, case
          when sale.link_id is null then 'it has no link, and an offer, creator or click'
          when link.id is null then 'its link ' || sale.link_id || ' does not exist'
          else 'its offer, creator or merchant is not that of its link ' || link.id
        end as detail
      from sales as sale
      left join affiliate_links as link on link.id = sale.link_id
      where ${scope.isNewSale('sale.id')} and ((sale.link_id is null
          and (sale.offer_id is not null or sale.creator_id is not null or sale.click_id is not null))
        or (sale.link_id is not null and (link.id is null
          or sale.merchant_id <> link.merchant_id
          or sale.offer_id is null or sale.offer_id <> link.offer_id
          or sale.creator_id is null or sale.creator_id <> link.creator_id)))`,
  }),
  sqlInvariant({
    name: 'coupon-sales-in-force',
    statement:
      'A sale that a coupon code earned names a link that had the code, with a live offer, when the order was created, as far as was known when the sale was decided.',
    table: 'sales',
    breaches: (scope) => sql`
      select 'sale ' || sale.id as subject,
        'link ' || coalesce(cast(sale.link_id as text), '–') || ' did not have the code ' || sale.coupon_code
          || ' in force at ' || sale.ordered_at as detail
      from sales as sale
      where sale.coupon_code is not null and ${scope.isNewSale('sale.id')} and (
        not exists (
          select 1 from link_coupons as coupon
          where coupon.link_id = sale.link_id and coupon.code = sale.coupon_code
            and coupon.merchant_id = sale.merchant_id and coupon.starts_at <= ${END_OF_SECOND}
            and (coupon.ends_at is null or coupon.ends_at > sale.ordered_at
              or coupon.ends_at >= coalesce(sale.decided_at, sale.created_at)))
        or not exists (
          select 1 from offer_status_changes as change
          where change.offer_id = sale.offer_id and change.status = 'live' and change.changed_at <= ${END_OF_SECOND}
            and not exists (
              select 1 from offer_status_changes as later
              where later.offer_id = change.offer_id and later.sequence > change.sequence
                and later.changed_at <= sale.ordered_at
                and later.changed_at < coalesce(sale.decided_at, sale.created_at))))`,
  }),
  sqlInvariant({
    name: 'sales-after-events',
    statement: 'No decision about a sale is dated before the event that it rests on was received.',
    table: 'sales',
    breaches: (scope) => sql`
      select 'sale ' || sale.id as subject,
        'decided at ' || coalesce(sale.decided_at, sale.created_at) || ', its event ' || event.id
          || ' was received at ' || event.received_at as detail
      from sales as sale
      join inbound_events as event on event.id = sale.event_id
      where ${scope.isNewSale('sale.id')} and coalesce(sale.decided_at, sale.created_at) < event.received_at
      union all
      select 'sale ' || former.sale_id, 'first decided at ' || former.decided_at || ', the event ' || event.id
          || ' was received at ' || event.received_at
      from sale_decisions as former
      join inbound_events as event on event.id = former.event_id
      where ${scope.isNewSale('former.sale_id')} and former.decided_at < event.received_at`,
  }),
  sqlInvariant({
    name: 'decided-again-once',
    statement:
      'Only a sale that was decided again has a former decision, made when the sale was recorded, from another event of its store.',
    table: 'sale_decisions',
    breaches: (scope) => sql`
      select 'sale ' || coalesce(sale.id, former.sale_id) as subject, case
          when former.sale_id is null then 'it was decided again, and its former decision is missing'
          when sale.id is null then 'its former decision belongs to a sale that was decided once'
          else 'its former decision is not of the moment of the sale, or of the same event'
        end as detail
      from (select * from sales where decided_at is not null and ${scope.isNewSale('sales.id')}) as sale
      full join (select * from sale_decisions where ${scope.isNewSale('sale_decisions.sale_id')}) as former on former.sale_id = sale.id
      where sale.id is null or former.sale_id is null
        or former.decided_at <> sale.created_at or sale.decided_at < former.decided_at
        or former.event_id = sale.event_id or coalesce(sale.rejection_reason, '') = 'not_paid'`,
  }),
  sqlInvariant({
    name: 'sales-in-journal',
    statement:
      'Each accepted sale has one entry with its commission and fee, and only accepted sales have one.',
    table: 'sales',
    breaches: (scope) => sql`
      select 'sale ' || sale.id as subject, case
          when entry.id is null then 'it has no journal entry'
          when sale.acceptance_status = 'rejected' then 'it is rejected and has a journal entry'
          else 'commission ' || sale.commission || ' and fee ' || sale.platform_fee || ' are not what its entry says'
        end as detail
      from sales as sale
      left join ledger_entries as entry on entry.subject_id = sale.id and entry.kind = 'sale_accepted'
      left join ledger_postings as posting on posting.entry_id = entry.id
      where ${scope.isNewSale('sale.id')}
      group by sale.id, entry.id
      having (sale.acceptance_status = 'accepted') <> (entry.id is not null) or (entry.id is not null and (
        ${sumOf('merchant_unbilled', sql`sale.merchant_id`)} <> sale.commission + sale.platform_fee
        or ${sumOf('creator_pending', sql`sale.creator_id`)} <> -sale.commission
        or ${sumOf('platform_fees', sql.lit(NIL_ID))} <> -sale.platform_fee
        or sum(abs(posting.amount)) <> 2 * (sale.commission + sale.platform_fee)))`,
  }),
  sqlInvariant({
    name: 'sales-in-cycles',
    statement:
      "Each accepted sale is in a billing cycle of its own merchant, accepted before that cycle's end.",
    table: 'sales',
    breaches: (scope) => sql`
      select 'sale ' || sale.id as subject,
        'accepted at ' || coalesce(sale.decided_at, sale.created_at) || ' into cycle ' || cycle.id
          || ' of merchant ' || cycle.merchant_id || ', which ends at ' || cycle.period_end as detail
      from sales as sale
      join billing_cycles as cycle on cycle.id = sale.billing_cycle_id
      where ${scope.isNewSale('sale.id')}
        and (cycle.merchant_id <> sale.merchant_id or coalesce(sale.decided_at, sale.created_at) >= cycle.period_end)`,
  }),
]

/** What an entry of a sale moves in one account of one owner. */
function sumOf(account: Account, owner: RawBuilder<unknown>): RawBuilder<number> {
  return sql`sum(case when posting.account = ${sql.lit(account)} and posting.owner_id = ${owner} then posting.amount else 0 end)`
}
