import { type RawBuilder, type Selectable, type SelectQueryBuilder, sql } from 'kysely'
import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import type { RejectionReason } from '../../shared/rejection-reasons.ts'
import { inList, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { firstIdAt, NIL_ID, timeOfId } from '../platform/ids.ts'
import { BEFORE_REFERENCE, type LinkCourse, type LinkTally } from './patterns.rule.ts'

/** Ids after `after` and before `to`. */
export interface IdRange {
  after: string
  to: string
}

/** The first rows of a query with ids in a range, oldest first. */
export function rowsBetween<Table extends keyof Schema, Row>(
  query: SelectQueryBuilder<Schema, Table, Row>,
  { after, to }: IdRange,
  limit: number,
): Promise<Row[]> {
  return query
    .where(sql<boolean>`id > ${after} and id < ${to}`)
    .orderBy(sql`id`)
    .limit(limit)
    .execute() as Promise<Row[]>
}

const rowsOf =
  <Row>(db: Queries) =>
  async (...statement: Parameters<typeof sql>): Promise<Row[]> =>
    (await sql<Row>(...statement).execute(db)).rows

/** The rows of a statement by their column `id`. */
const byId =
  <Row>(db: Queries) =>
  async (...statement: Parameters<typeof sql>): Promise<Map<string, Row>> => {
    const rows = await rowsOf<Row & { id: string }>(db)(...statement)
    return new Map(rows.map(({ id, ...row }) => [id, row as Row]))
  }

const within = (db: Queries, ids: readonly string[]) => inList(dialectOf(db), 'uuid', ids)
const literals = (texts: readonly string[]) => sql.join(texts.map((text) => sql.lit(text)))

const NEW_SALE = [
  'id',
  'store_id',
  'merchant_id',
  'creator_id',
  'link_id',
  'click_id',
  'coupon_code',
  'acceptance_status',
  'rejection_reason',
  'buyer_name_matches',
] as const

export type NewSale = Pick<Selectable<Schema['sales']>, (typeof NEW_SALE)[number]>

export const decidedSales = (db: Queries) => db.selectFrom('sales').select(NEW_SALE)

/** Sales decided a second time between the times of the ids `after` (inclusive) and `to` (exclusive). */
export function decidedAgainBetween(db: Queries, { after, to }: IdRange): Promise<NewSale[]> {
  return decidedSales(db)
    .where('decided_at', '>=', timeOfId(after))
    .where('decided_at', '<', timeOfId(to))
    .orderBy('id')
    .execute()
}

/**
 * The sales of some parties decided since `since` (epoch ms): recorded since, or recorded earlier and decided again since. Two halves,
 * because each has an index.
 */
function decidedSince(ofParties: RawBuilder<unknown>, since: number): RawBuilder<unknown> {
  const first = firstIdAt(since)
  const columns = sql`id, store_id, merchant_id, creator_id, link_id, rejection_reason, buyer_name_matches`
  return sql`(
    select ${columns} from sales where ${ofParties} and id >= ${first}
    union all
    select ${columns} from sales where ${ofParties}
      and id in (select again.id from sales as again where again.decided_at >= ${since} and again.id < ${first})
  ) as decided`
}

export interface OwnOrders {
  /** Rejected because the buyer's address was the creator's. */
  self_purchases: number
  /** Accepted from a buyer with the name of a payout account of the creator's. */
  name_matches: number
}

/** The orders since `since` (epoch ms) that each creator probably placed through their own links. */
export function countOwnOrders(db: Queries, creatorIds: readonly string[], since: number) {
  return byId<OwnOrders>(db)`
    select creator_id as id, count(rejection_reason) as self_purchases,
      count(*) - count(rejection_reason) as name_matches
    from ${decidedSince(sql`creator_id ${within(db, creatorIds)}`, since)}
    where rejection_reason = 'self_purchase' or (rejection_reason is null and buyer_name_matches = 1)
    group by creator_id`
}

export interface StoreOrders {
  store_id: string
  merchant_id: string
  /** `null`: accepted. */
  rejection_reason: RejectionReason | null
  orders: number
}

/** These stores' orders that claim a commission, by outcome: decided since `from`, or recorded between `from` and `to`; epoch ms. */
export function countClaims(db: Queries, storeIds: readonly string[], from: number, to?: number) {
  const stores = within(db, storeIds)
  // Sales have no index by store.
  const ofStores = sql`merchant_id in (select merchant_id from stores where id ${stores}) and store_id ${stores}`
  const orders =
    to === undefined
      ? decidedSince(ofStores, from)
      : sql`sales where ${ofStores} and id >= ${firstIdAt(from)} and id < ${firstIdAt(to)}`
  return rowsOf<StoreOrders>(db)`
    select store_id, merchant_id, rejection_reason, count(*) as orders from (select * from ${orders}) as claimed
    where rejection_reason is null or link_id is not null or rejection_reason not in (${literals(BEFORE_REFERENCE)})
    group by store_id, merchant_id, rejection_reason`
}

const SHORT_PAUSE_MS = HOUR_MS

/** Sales with the short pauses of their merchants' offers, and the short gaps between two periods of a coupon code, that they lie in. */
function salesInPauses(saleIds: RawBuilder<unknown>, ofMerchants: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`sales join (
      select offer.id as offer_id, offer.merchant_id, paused.changed_at as starts_at, next.changed_at as ends_at
      from offers as offer
      join offer_status_changes as paused on paused.offer_id = offer.id and paused.status = 'paused'
      join offer_status_changes as next on next.offer_id = offer.id and next.sequence = paused.sequence + 1
      where offer.merchant_id ${ofMerchants} and next.changed_at - paused.changed_at <= ${SHORT_PAUSE_MS}
      union all
      select link.offer_id, former.merchant_id, former.ends_at, next.starts_at
      from link_coupons as former
      join link_coupons as next on next.merchant_id = former.merchant_id and next.code = former.code
        and next.starts_at > former.ends_at and next.starts_at <= former.ends_at + ${SHORT_PAUSE_MS}
      join affiliate_links as link on link.id = former.link_id
      where former.merchant_id ${ofMerchants}
    ) as pause on pause.merchant_id = sales.merchant_id
      and sales.ordered_at >= pause.starts_at and sales.ordered_at < pause.ends_at
    where sales.id ${saleIds}`
}

/** The offers, with their merchants, in whose short pauses any of these sales lie. */
export function offersOfPauses(db: Queries, sales: readonly NewSale[]) {
  const ids = sales.map((sale) => sale.id)
  const merchantIds = [...new Set(sales.map((sale) => sale.merchant_id))]
  return byId<{ merchant_id: string }>(db)`
    select distinct pause.offer_id as id, pause.merchant_id
    from ${salesInPauses(within(db, ids), within(db, merchantIds))}`
}

/** A pause costs as many comparisons. */
const MAX_IN_PAUSES = 1000

/** The receipts of an offer's orders that lie in short pauses, of the merchant's latest rejected orders that claim a commission since `since` (epoch ms). */
export function receiptsInPauses(db: Queries, offerId: string, merchantId: string, since: number) {
  const ofMerchant = within(db, [merchantId])
  const latest = sql`in (select id from ${decidedSince(sql`merchant_id ${ofMerchant}`, since)}
    where rejection_reason not in (${literals(BEFORE_REFERENCE)}) order by id desc limit ${sql.lit(MAX_IN_PAUSES)})`
  return byId<{ receipt: string }>(db)`
    select sales.id, sales.receipt from ${salesInPauses(latest, ofMerchant)} and pause.offer_id = ${offerId}
    order by sales.id desc`
}

export interface ClickOrders {
  link_id: string
  click_id: string
  merchant_id: string
  creator_id: string
  orders: number
}

/** Of these clicks those with more than `most` accepted orders since `since` (epoch ms), the most used first, by the index on link and click. */
export function overusedClicks(
  db: Queries,
  linkIds: readonly string[],
  clickIds: readonly string[],
  { most, since }: { most: number; since: number },
) {
  return rowsOf<ClickOrders>(db)`
    select link_id, click_id, merchant_id, creator_id, count(*) as orders from sales
    where link_id ${within(db, linkIds)} and click_id ${within(db, clickIds)}
      and acceptance_status = 'accepted' and coalesce(decided_at, created_at) >= ${since}
    group by link_id, click_id, merchant_id, creator_id having count(*) > ${most}
    order by count(*) desc`
}

/** A link, as evidence names it. */
interface AboutLink {
  affiliate_link_slug: string
  creator_id: string
  merchant_id: string
  offer_id: string
}

const ABOUT_LINK = sql`link.id, link.slug as affiliate_link_slug, link.creator_id, link.merchant_id, link.offer_id`

/** Days since 1970, UTC, both inclusive. */
export interface Days {
  firstDay: number
  lastDay: number
}

/** Clicks of these links in some days, and the accepted sales from clicks since the first. Links without clicks are missing. */
export function tallyLinks(db: Queries, linkIds: readonly string[], { firstDay, lastDay }: Days) {
  return byId<LinkTally & AboutLink>(db)`
    select ${ABOUT_LINK}, total.visits, total.clicks, (
      select count(*) from sales where sales.link_id = total.link_id
        and acceptance_status = 'accepted' and click_id >= ${firstIdAt(firstDay * DAY_MS)}) as sales
    from (
      select link_id, sum(visits) as visits, sum(clicks) as clicks from link_days
      where link_id ${within(db, linkIds)} and day between ${firstDay} and ${lastDay} group by link_id) as total
    join affiliate_links as link on link.id = total.link_id`
}

/**
 * Visits of these links and the accepted sales from clicks, from `pastDay` to before `firstDay`, and from `firstDay` to the end of `lastDay`.
 * A sale counts on the day of its acceptance, because an order may be paid weeks after its click.
 */
export function linkCourses(
  db: Queries,
  linkIds: readonly string[],
  { pastDay, firstDay, lastDay }: Days & { pastDay: number },
) {
  const links = within(db, linkIds)
  return byId<LinkCourse & AboutLink>(db)`
    select ${ABOUT_LINK}, visited.visits, visited.past_visits as "pastVisits",
      coalesce(sold.sales, 0) as sales, coalesce(sold.past_sales, 0) as "pastSales"
    from (
      select link_id, sum(case when day >= ${firstDay} then visits else 0 end) as visits,
        sum(case when day < ${firstDay} then visits else 0 end) as past_visits
      from link_days where link_id ${links} and day between ${pastDay} and ${lastDay} group by link_id) as visited
    join affiliate_links as link on link.id = visited.link_id
    left join (
      select link_id, sum(case when at >= ${firstDay * DAY_MS} then 1 else 0 end) as sales,
        sum(case when at < ${firstDay * DAY_MS} then 1 else 0 end) as past_sales
      from (
        select link_id, coalesce(decided_at, created_at) as at from sales
        where link_id ${links} and acceptance_status = 'accepted' and coupon_code is null) as accepted
      where at >= ${pastDay * DAY_MS} and at < ${(lastDay + 1) * DAY_MS} group by link_id
    ) as sold on sold.link_id = visited.link_id`
}

/** The clicks of a link on a day. */
export interface DailyVisits {
  link_id: string
  day: number
  visits: number
  clicks: number
  untracked_visits: number
}

const dailyVisits = valuesTable<DailyVisits>('daily', {
  link_id: 'uuid',
  day: 'int',
  visits: 'int',
  clicks: 'int',
  untracked_visits: 'int',
})

/** Adds clicks to the totals by link and day, in their order, so that two transactions lock them in the same order. */
export async function addDailyVisits(tx: Tx, visits: readonly DailyVisits[]): Promise<void> {
  await sql`insert into link_days (link_id, day, visits, clicks, untracked_visits)
    select link_id, day, sum(visits), sum(clicks), sum(untracked_visits)
    from ${dailyVisits(dialectOf(tx), visits)} where clicks > 0 or untracked_visits > 0 group by link_id, day order by link_id, day
    on conflict (link_id, day) do update set visits = link_days.visits + excluded.visits,
      clicks = link_days.clicks + excluded.clicks,
      untracked_visits = link_days.untracked_visits + excluded.untracked_visits`.execute(tx)
}

/** Links visited on the last of some days that have at least `visits` visits in them. */
export async function linksVisited(db: Queries, { firstDay, lastDay }: Days, visits: number) {
  const { rows } = await sql<{ link_id: string }>`
    select link_id from link_days where day between ${firstDay} and ${lastDay}
      and link_id in (select today.link_id from link_days as today where today.day = ${lastDay})
    group by link_id having sum(visits) >= ${visits}`.execute(db)
  return rows.map((row) => row.link_id)
}

export async function deleteDaysBefore(tx: Tx, day: number): Promise<void> {
  await tx.deleteFrom('link_days').where('day', '<', day).execute()
}

/** The first day with click totals; `null` if there is none. */
export async function firstDayWithVisits(db: Queries): Promise<number | null> {
  const { rows } = await sql<{ day: number | null }>`select min(day) as day from link_days`.execute(db)
  return rows[0]?.day ?? null
}

/** The orders that a link's coupon codes earned, and the clicks on all links of its creator, in the same days. */
export interface CouponTally {
  orders: number
  clicks: number
  creator_id: string
  merchant_id: string
}

/** By link, for the days from `firstDay` on. Links without such orders are missing. */
export function tallyCoupons(db: Queries, linkIds: readonly string[], firstDay: number) {
  return byId<CouponTally>(db)`
    select link_id as id, creator_id, merchant_id, count(*) as orders, (
      select coalesce(sum(link_days.clicks), 0) from affiliate_links as link
      join link_days on link_days.link_id = link.id
      where link.creator_id = sale.creator_id and link_days.day >= ${firstDay}) as clicks
    from sales as sale
    where link_id ${within(db, linkIds)} and id >= ${firstIdAt(firstDay * DAY_MS)}
      and coupon_code is not null and acceptance_status = 'accepted'
    group by link_id, creator_id, merchant_id`
}

/** Visits of an offer's links on a day, and the tracked ones of the day before too. */
interface OfferTraffic {
  merchant_id: string
  status: string
  tracked: number
  untracked: number
}

/**
 * Offers whose links had at least `least` visits untracked on a day, and as many tracked on that day and the day before. Links of suspended
 * creators do not count, because the merchant did not pause them.
 */
export function offersPausedInTraffic(db: Queries, day: number, least: number) {
  const untracked = sql`sum(case when link_days.day = ${day} then link_days.untracked_visits else 0 end)`
  return byId<OfferTraffic>(db)`
    select offer.id, offer.merchant_id, offer.status, sum(link_days.visits) as tracked, ${untracked} as untracked
    from link_days
    join affiliate_links as link on link.id = link_days.link_id
    join offers as offer on offer.id = link.offer_id
    join users as creator on creator.id = link.creator_id
    where link_days.day between ${day - 1} and ${day} and creator.suspended_at is null
    group by offer.id, offer.merchant_id, offer.status
    having ${untracked} >= ${least} and sum(link_days.visits) >= ${least}`
}

/**
 * Cycles in state `closed` since `time` (epoch ms) or earlier, oldest first, without a flag of this kind that is open or was resolved later.
 * `closed` is a literal, because SQLite uses no partial index for a bound value.
 */
export function unpaidCycles(db: Queries, time: number, kind: string) {
  return rowsOf<{ id: string }>(db)`
    select id from billing_cycles as cycle where state = 'closed' and closed_at <= ${time} and not exists (
      select 1 from flags where flags.kind = ${kind} and flags.subject_id = cast(cycle.id as text)
        and (flags.status = 'open' or flags.resolved_at > ${time}))
    order by closed_at`
}

/** The charged ones of these cycles. */
export function chargedCycles(db: Queries, ids: readonly string[]) {
  return rowsOf<{ id: string }>(db)`
    select id from billing_cycles where id ${within(db, ids)} and state = 'charged'`
}

export const accounts = (db: Queries) => db.selectFrom('users').select(['id', 'email'])

interface MailboxRow {
  user_id: string
  fingerprint: string
}

export async function insertMailboxes(tx: Tx, rows: readonly MailboxRow[]): Promise<void> {
  if (rows.length === 0) return
  await tx
    .insertInto('mailboxes')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Mailboxes by account id after the id `after`, with the accounts' addresses. */
export function mailboxesAfter(db: Queries, after: string | null, limit: number) {
  return db
    .selectFrom('mailboxes')
    .innerJoin('users', 'users.id', 'mailboxes.user_id')
    .select(['mailboxes.user_id', 'mailboxes.fingerprint', 'users.email'])
    .where('mailboxes.user_id', '>', after ?? NIL_ID)
    .orderBy('mailboxes.user_id')
    .limit(limit)
    .execute()
}

export async function setMailboxFingerprint(tx: Tx, { user_id, fingerprint }: MailboxRow): Promise<void> {
  await tx.updateTable('mailboxes').set({ fingerprint }).where('user_id', '=', user_id).execute()
}

/** The users with these mailboxes. */
export async function holdersOfMailboxes(db: Queries, fingerprints: readonly string[]) {
  if (fingerprints.length === 0) return []
  return db
    .selectFrom('mailboxes')
    .innerJoin('users', 'users.id', 'mailboxes.user_id')
    .select(['mailboxes.user_id', 'mailboxes.fingerprint', 'users.role'])
    .where('mailboxes.fingerprint', 'in', fingerprints)
    .orderBy('mailboxes.user_id')
    .execute()
}

export type IbanRow = Selectable<Schema['payout_destinations']>

export const destinations = (db: Queries) => db.selectFrom('payout_destinations').selectAll()

/** All users' destinations with one of these IBANs, oldest first. */
export async function destinationsWithIban(db: Queries, fingerprints: readonly string[]): Promise<IbanRow[]> {
  if (fingerprints.length === 0) return []
  return destinations(db).where('iban_fingerprint', 'in', fingerprints).orderBy('id').execute()
}
