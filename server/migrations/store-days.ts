/* What the migration `00026-store-days` makes of the sales that there are. Never edited once that has landed. */

const countIf = (condition: string) =>
  `sum(case when ${condition} and coalesce(sale.rejection_reason, '') <> 'test_order' then 1 else 0 end)`

/** Receipts are compact JSON, in which a text's own quotes are escaped: this matches the field only. */
const hasSource = (source: string) => `sale.receipt like '%"tracking_source":"${source}"%'`

const ledBy = (source: string) => countIf(`sale.coupon_code is null and ${hasSource(source)}`)

/** The last 35 days of each store with sales. */
export const DAYS_OF_EARLIER_SALES = `
  insert into store_days (store_id, day, cart, landing, line, coupon, none, last_event_at)
  select sale.store_id, sale.created_at / 86400000, ${ledBy('note_attributes')}, ${ledBy('landing_site')},
    ${ledBy('line_item')}, ${countIf('sale.coupon_code is not null')},
    ${countIf(`sale.coupon_code is null and sale.receipt not like '%"tracking_source":"%'`)}, max(sale.created_at)
  from sales as sale
  join (select store_id, max(created_at) as sold_at from sales group by store_id) as latest
    on latest.store_id = sale.store_id
  where sale.created_at > latest.sold_at - ${35 * 86_400_000}
  group by sale.store_id, sale.created_at / 86400000`
