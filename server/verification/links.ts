import { sql } from 'kysely'
import { NIL_ID } from '../platform/ids.ts'
import { type Invariant, sqlInvariant } from './invariant.ts'

/** What must hold of the histories that a sale by coupon code rests on, and of the counts of visits. */
export const LINK_INVARIANTS: Invariant[] = [
  sqlInvariant({
    name: 'offer-statuses',
    statement: 'The last status in the history of each offer is the one that it has.',
    table: 'offers',
    breaches: sql`
      select 'offer ' || offer.id as subject, 'it is ' || offer.status || ', its history ends with '
        || coalesce(change.status, 'nothing') as detail
      from offers as offer
      left join (select offer_id, max(sequence) as last from offer_status_changes group by offer_id) as history
        on history.offer_id = offer.id
      left join offer_status_changes as change
        on change.offer_id = history.offer_id and change.sequence = history.last
      where coalesce(change.status, '') <> offer.status`,
  }),
  sqlInvariant({
    name: 'coupons-of-links',
    statement:
      "A coupon code belongs to a link of its merchant, and never to two of the merchant's links at a time.",
    table: 'link_coupons',
    breaches: sql`
      select 'coupon ' || coupon.id as subject, case
          when link.id is null then 'its link is not of its merchant'
          else 'another row had the code ' || coupon.code || ' at the same time'
        end as detail
      from link_coupons as coupon
      left join affiliate_links as link on link.id = coupon.link_id and link.merchant_id = coupon.merchant_id
      where link.id is null or exists (
        select 1 from link_coupons as other
        where other.merchant_id = coupon.merchant_id and other.code = coupon.code and other.id > coupon.id
          and coupon.starts_at < coalesce(other.ends_at, 9007199254740991)
          and other.starts_at < coalesce(coupon.ends_at, 9007199254740991))`,
  }),
  sqlInvariant({
    name: 'visits-counted',
    statement:
      'The count of each link has every tracked visit on record, and no more unless old clicks were removed.',
    table: 'clicks',
    // Reads all clicks, so only a full verification does.
    breaches: (scope) => sql`
      select 'link ' || link_id as subject, 'counted ' || sum(counted) || ' of ' || sum(present)
        || ' visits, of them ' || sum(unique_counted) || ' unique' as detail
      from (
        select link_id, 0 as present, clicks as counted, unique_clicks as unique_counted from click_counts
        union all
        select link_id, 0, visits, unique_visits from uncounted_clicks
        union all
        select link_id, count(*), 0, 0 from clicks where kind = 'visit' and tracked = 1 group by link_id
      ) as visits
      where ${sql.lit(scope.covered === null)}
      group by link_id
      having sum(counted) < sum(present) or sum(unique_counted) > sum(counted)
        or (sum(counted) > sum(present) and not exists (
          select 1 from watermarks where name = 'clicks pruned' and value > ${NIL_ID}))`,
  }),
]
