import { type ExpressionBuilder, type RawBuilder, type Selectable, sql } from 'kysely'
import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import type { RejectionReason } from '../../shared/rejection-reasons.ts'
import type { Role } from '../../shared/schemas/common.ts'
import { inList, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { firstIdAt, timeOfId } from '../platform/ids.ts'
import { BEFORE_REFERENCE, type LinkCourse, type LinkTally, type OfferTraffic } from './patterns.rule.ts'

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

/** Ids after `after` and before `to`. */
interface IdRange {
  after: string
  to: string
}

/** Sales with these ids, oldest first. */
export function salesBetween(
  db: Queries,
  { after, to, limit }: IdRange & { limit: number },
): Promise<NewSale[]> {
  return db
    .selectFrom('sales')
    .select(NEW_SALE)
    .where('id', '>', after)
    .where('id', '<', to)
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** Sales decided a second time between the times of the ids `after` (inclusive) and `to` (exclusive). */
export function decidedAgainBetween(db: Queries, { after, to }: IdRange): Promise<NewSale[]> {
  return db
    .selectFrom('sales')
    .select(NEW_SALE)
    .where('decided_at', '>=', timeOfId(after))
    .where('decided_at', '<', timeOfId(to))
    .orderBy('id')
    .execute()
}

/**
 * Two conditions that together find each sale decided since `since` (epoch ms) once, by an index: sales recorded since, and earlier sales
 * decided again since.
 */
const decidedSince = (since: number) => [
  sql<boolean>`sales.id >= ${firstIdAt(since)}`,
  // A subquery, because SQLite would otherwise read all sales of a party.
  sql<boolean>`sales.id in (
    select again.id from sales as again where again.decided_at >= ${since} and again.id < ${firstIdAt(since)})`,
]

export interface OwnOrders {
  /** Rejected because the buyer's address was the creator's. */
  self_purchases: number
  /** Accepted from a buyer with the name of a payout account of the creator's. */
  name_matches: number
}

/** The orders since `since` (epoch ms) that each creator probably placed through their own links. */
export async function countOwnOrders(
  db: Queries,
  creatorIds: readonly string[],
  since: number,
): Promise<Map<string, OwnOrders>> {
  const counts = new Map<string, OwnOrders>()
  if (creatorIds.length === 0) return counts
  const rejected = sql<number>`case when rejection_reason is null then 0 else 1 end`
  for (const decided of decidedSince(since)) {
    const rows = await db
      .selectFrom('sales')
      .select((eb) => ['creator_id', rejected.as('rejected'), eb.fn.countAll<number>().as('count')])
      .where('creator_id', 'in', creatorIds)
      .where(decided)
      .where((where) =>
        where.or([
          where('rejection_reason', '=', 'self_purchase'),
          where.and([where('rejection_reason', 'is', null), where('buyer_name_matches', '=', 1)]),
        ]),
      )
      .groupBy(['creator_id', rejected])
      .execute()
    for (const row of rows) {
      const own = counts.get(row.creator_id ?? '') ?? { self_purchases: 0, name_matches: 0 }
      counts.set(row.creator_id ?? '', own)
      own[row.rejected === 1 ? 'self_purchases' : 'name_matches'] += row.count
    }
  }
  return counts
}

export interface StoreOrders {
  store_id: string
  /** `null`: accepted. */
  rejection_reason: RejectionReason | null
  /** 1 if the order led to a link of the merchant. */
  linked: number
  orders: number
}

/** The orders of these merchants' stores decided since `since` (epoch ms), by store and outcome. */
export async function countStoreOrders(
  db: Queries,
  merchantIds: readonly string[],
  since: number,
): Promise<StoreOrders[]> {
  const rows = []
  for (const decided of decidedSince(since)) rows.push(...(await storeOrders(db, merchantIds, decided)))
  return rows
}

/** Their orders recorded between `from` (inclusive) and `to` (exclusive), epoch ms. */
export function countStoreOrdersBetween(
  db: Queries,
  merchantIds: readonly string[],
  from: number,
  to: number,
): Promise<StoreOrders[]> {
  const recorded = sql<boolean>`sales.id >= ${firstIdAt(from)} and sales.id < ${firstIdAt(to)}`
  return storeOrders(db, merchantIds, recorded)
}

function storeOrders(
  db: Queries,
  merchantIds: readonly string[],
  condition: RawBuilder<boolean>,
): Promise<StoreOrders[]> {
  if (merchantIds.length === 0) return Promise.resolve([])
  const linked = sql<number>`case when link_id is null then 0 else 1 end`
  return db
    .selectFrom('sales')
    .select((eb) => [
      'store_id',
      'rejection_reason',
      linked.as('linked'),
      eb.fn.countAll<number>().as('orders'),
    ])
    .where('merchant_id', 'in', merchantIds)
    .where(condition)
    .groupBy(['store_id', 'rejection_reason', linked])
    .execute()
}

const SHORT_PAUSE_MS = HOUR_MS

/** These sales of these merchants with the short pauses of their offers, and the short gaps between two periods of a coupon code, that they lie in. */
function salesInPauses(db: Queries, merchantIds: readonly string[], saleIds: readonly string[]) {
  const dialect = dialectOf(db)
  const ofMerchants = (column: string) => sql`${sql.ref(column)} ${inList(dialect, 'uuid', merchantIds)}`
  const pauses = sql<{ offer_id: string; merchant_id: string; starts_at: number; ends_at: number }>`(
    select offer.id as offer_id, offer.merchant_id, paused.changed_at as starts_at, next.changed_at as ends_at
    from offers as offer
    join offer_status_changes as paused on paused.offer_id = offer.id and paused.status = 'paused'
    join offer_status_changes as next on next.offer_id = offer.id and next.sequence = paused.sequence + 1
    where ${ofMerchants('offer.merchant_id')} and next.changed_at - paused.changed_at <= ${SHORT_PAUSE_MS}
    union all
    select link.offer_id, former.merchant_id, former.ends_at, next.starts_at
    from link_coupons as former
    join link_coupons as next on next.merchant_id = former.merchant_id and next.code = former.code
      and next.starts_at > former.ends_at and next.starts_at <= former.ends_at + ${SHORT_PAUSE_MS}
    join affiliate_links as link on link.id = former.link_id
    where ${ofMerchants('former.merchant_id')})`
  return db
    .selectFrom('sales')
    .innerJoin(pauses.as('pause'), 'pause.merchant_id', 'sales.merchant_id')
    .where(sql<boolean>`sales.id ${inList(dialect, 'uuid', saleIds)}`)
    .whereRef('sales.ordered_at', '>=', 'pause.starts_at')
    .whereRef('sales.ordered_at', '<', 'pause.ends_at')
}

/** The offers, with their merchants, in whose short pauses any of these sales lie. */
export function offersOfPauses(
  db: Queries,
  merchantIds: readonly string[],
  saleIds: readonly string[],
): Promise<{ offer_id: string; merchant_id: string }[]> {
  if (saleIds.length === 0) return Promise.resolve([])
  return salesInPauses(db, merchantIds, saleIds)
    .select(['pause.offer_id', 'pause.merchant_id'])
    .distinct()
    .execute()
}

/** A pause costs as many comparisons. */
const MAX_IN_PAUSES = 1000

/** The receipts of an offer's orders that lie in short pauses, of the merchant's latest rejected orders that claim a commission since `since` (epoch ms). */
export async function receiptsInPauses(
  db: Queries,
  offer: { offer_id: string; merchant_id: string },
  since: number,
): Promise<Map<string, string>> {
  const ids = new Set<string>()
  for (const decided of decidedSince(since)) {
    const latest = await db
      .selectFrom('sales')
      .select('id')
      .where('merchant_id', '=', offer.merchant_id)
      .where('rejection_reason', 'not in', BEFORE_REFERENCE)
      .where(decided)
      .orderBy('id', 'desc')
      .limit(MAX_IN_PAUSES)
      .execute()
    for (const { id } of latest) ids.add(id)
  }
  const rows = await salesInPauses(db, [offer.merchant_id], [...ids])
    .where('pause.offer_id', '=', offer.offer_id)
    .select(['sales.id', 'sales.receipt'])
    .orderBy('sales.id', 'desc')
    .execute()
  return new Map(rows.map((row) => [row.id, row.receipt]))
}

export interface ClickOrders {
  link_id: string
  click_id: string
  orders: number
}

/** The number of accepted orders since `since` (epoch ms) for each of these clicks, by the index on link and click. */
export async function countOrdersByClick(
  db: Queries,
  linkIds: readonly string[],
  clickIds: readonly string[],
  since: number,
): Promise<ClickOrders[]> {
  if (linkIds.length === 0) return []
  const dialect = dialectOf(db)
  const rows = await db
    .selectFrom('sales')
    .select((eb) => ['link_id', 'click_id', eb.fn.countAll<number>().as('orders')])
    .where(sql<boolean>`link_id ${inList(dialect, 'uuid', linkIds)}`)
    .where(sql<boolean>`click_id ${inList(dialect, 'uuid', clickIds)}`)
    .where('acceptance_status', '=', 'accepted')
    .where(sql<boolean>`coalesce(decided_at, created_at) >= ${since}`)
    .groupBy(['link_id', 'click_id'])
    .execute()
  return rows.map((row) => ({ ...row, link_id: row.link_id ?? '', click_id: row.click_id ?? '' }))
}

/**
 * Clicks of these links from one day to another, both inclusive, and the accepted sales from clicks since the first. Links without clicks
 * are missing.
 */
export async function tallyLinks(
  db: Queries,
  linkIds: readonly string[],
  sinceDay: number,
  lastDay: number,
): Promise<Map<string, LinkTally>> {
  if (linkIds.length === 0) return new Map()
  const visits = await db
    .selectFrom('link_days')
    .select((eb) => [
      'link_id',
      eb.fn.sum<number>('visits').as('visits'),
      eb.fn.sum<number>('clicks').as('clicks'),
    ])
    .where('link_id', 'in', linkIds)
    .where('day', '>=', sinceDay)
    .where('day', '<=', lastDay)
    .groupBy('link_id')
    .execute()
  const sales = await db
    .selectFrom('sales')
    .select((eb) => ['link_id', eb.fn.countAll<number>().as('sales')])
    .where('link_id', 'in', linkIds)
    .where('acceptance_status', '=', 'accepted')
    .where('click_id', '>=', firstIdAt(sinceDay * DAY_MS))
    .groupBy('link_id')
    .execute()
  const sold = new Map(sales.map((row) => [row.link_id, row.sales]))
  return new Map(
    visits.map((row) => [
      row.link_id,
      { visits: Number(row.visits), clicks: Number(row.clicks), sales: sold.get(row.link_id) ?? 0 },
    ]),
  )
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

/** Adds clicks to the totals by link and day. Those of day 0 belong to no day. */
export async function addDailyVisits(tx: Tx, visits: readonly DailyVisits[]): Promise<void> {
  const days = visits.filter(({ day }) => day > 0)
  if (days.length === 0) return
  await sql`insert into link_days (link_id, day, visits, clicks, untracked_visits)
    select link_id, day, visits, clicks, untracked_visits from ${dailyVisits(dialectOf(tx), days)} where true
    on conflict (link_id, day) do update set visits = link_days.visits + excluded.visits,
      clicks = link_days.clicks + excluded.clicks,
      untracked_visits = link_days.untracked_visits + excluded.untracked_visits`.execute(tx)
}

/** Links visited on `day` that have at least `visits` visits from `sinceDay` to that day. */
export async function linksVisited(
  db: Queries,
  day: number,
  sinceDay: number,
  visits: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('link_days')
    .select('link_id')
    .where('day', '>=', sinceDay)
    .where('day', '<=', day)
    .where('link_id', 'in', (eb) =>
      eb.selectFrom('link_days as today').select('today.link_id').where('today.day', '=', day),
    )
    .groupBy('link_id')
    .having((eb) => eb(eb.fn.sum<number>('visits'), '>=', visits))
    .execute()
  return rows.map((row) => row.link_id)
}

export async function deleteDaysBefore(tx: Tx, day: number): Promise<void> {
  await tx.deleteFrom('link_days').where('day', '<', day).execute()
}

/** The first day with click totals; `null` if there is none. */
export async function firstDayWithVisits(db: Queries): Promise<number | null> {
  const row = await db
    .selectFrom('link_days')
    .select((eb) => eb.fn.min('day').as('day'))
    .executeTakeFirst()
  return row?.day ?? null
}

/**
 * Visits and the accepted sales from clicks of these links, from `pastDay` to before `sinceDay`, and from `sinceDay` to the end of `lastDay`. A sale counts
 * on the day of its acceptance, because an order may be paid weeks after its click.
 */
export async function linkCourses(
  db: Queries,
  linkIds: readonly string[],
  days: { pastDay: number; sinceDay: number; lastDay: number },
): Promise<Map<string, LinkCourse>> {
  if (linkIds.length === 0) return new Map()
  const { pastDay, sinceDay, lastDay } = days
  const sumIf = (column: 'visits', condition: RawBuilder<boolean>) =>
    sql<number>`sum(case when ${condition} then ${sql.ref(column)} else 0 end)`
  const visits = await db
    .selectFrom('link_days')
    .select([
      'link_id',
      sumIf('visits', sql`day >= ${sinceDay}`).as('visits'),
      sumIf('visits', sql`day < ${sinceDay}`).as('past'),
    ])
    .where('link_id', 'in', linkIds)
    .where('day', '>=', pastDay)
    .where('day', '<=', lastDay)
    .groupBy('link_id')
    .execute()
  const decided = sql<number>`coalesce(decided_at, created_at)`
  const count = (condition: RawBuilder<boolean>) => sql<number>`sum(case when ${condition} then 1 else 0 end)`
  const sales = await db
    .selectFrom('sales')
    .select([
      'link_id',
      count(sql`${decided} >= ${sinceDay * DAY_MS}`).as('sales'),
      count(sql`${decided} < ${sinceDay * DAY_MS}`).as('past'),
    ])
    .where('link_id', 'in', linkIds)
    .where('acceptance_status', '=', 'accepted')
    .where('coupon_code', 'is', null)
    .where(decided, '>=', pastDay * DAY_MS)
    .where(decided, '<', (lastDay + 1) * DAY_MS)
    .groupBy('link_id')
    .execute()
  const sold = new Map(sales.map((row) => [row.link_id, row]))
  return new Map(
    visits.map((row) => [
      row.link_id,
      {
        visits: Number(row.visits),
        sales: Number(sold.get(row.link_id)?.sales ?? 0),
        pastVisits: Number(row.past),
        pastSales: Number(sold.get(row.link_id)?.past ?? 0),
      },
    ]),
  )
}

/** The orders that a link's coupon codes earned, and the clicks on all links of its creator, in the same days. */
export interface CouponTally {
  orders: number
  clicks: number
  creator_id: string
  merchant_id: string
}

/** By link, for the days from `sinceDay` on. Links without such orders are missing. */
export async function tallyCoupons(
  db: Queries,
  linkIds: readonly string[],
  sinceDay: number,
): Promise<Map<string, CouponTally>> {
  if (linkIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('sales')
    .select((eb) => ['link_id', 'creator_id', 'merchant_id', eb.fn.countAll<number>().as('orders')])
    .where('link_id', 'in', linkIds)
    .where('id', '>=', firstIdAt(sinceDay * DAY_MS))
    .where('coupon_code', 'is not', null)
    .where('acceptance_status', '=', 'accepted')
    .groupBy(['link_id', 'creator_id', 'merchant_id'])
    .execute()
  const clicks = await clicksByCreator(
    db,
    [...new Set(rows.flatMap((row) => row.creator_id ?? []))],
    sinceDay,
  )
  return new Map(
    rows.map(({ link_id, creator_id, merchant_id, orders }) => [
      link_id ?? '',
      { orders, clicks: clicks.get(creator_id ?? '') ?? 0, creator_id: creator_id ?? '', merchant_id },
    ]),
  )
}

async function clicksByCreator(
  db: Queries,
  creatorIds: readonly string[],
  sinceDay: number,
): Promise<Map<string, number>> {
  if (creatorIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('affiliate_links as link')
    .innerJoin('link_days', 'link_days.link_id', 'link.id')
    .select((eb) => ['link.creator_id', eb.fn.sum<number>('link_days.clicks').as('clicks')])
    .where('link.creator_id', 'in', creatorIds)
    .where('link_days.day', '>=', sinceDay)
    .groupBy('link.creator_id')
    .execute()
  return new Map(rows.map((row) => [row.creator_id, Number(row.clicks)]))
}

export interface OfferTrafficRow extends OfferTraffic {
  offer_id: string
  merchant_id: string
  status: string
}

/**
 * Offers whose links had at least `least` untracked visits on a day, with the tracked visits of that day and the day before. Links of
 * suspended creators do not count, because the merchant did not pause them.
 */
export async function offersWithUntrackedVisits(
  db: Queries,
  day: number,
  least: number,
): Promise<OfferTrafficRow[]> {
  const untracked = sql<number>`sum(case when link_days.day = ${day} then link_days.untracked_visits else 0 end)`
  const rows = await db
    .selectFrom('link_days')
    .innerJoin('affiliate_links as link', 'link.id', 'link_days.link_id')
    .innerJoin('offers as offer', 'offer.id', 'link.offer_id')
    .innerJoin('users as creator', 'creator.id', 'link.creator_id')
    .select((eb) => [
      'link.offer_id',
      'offer.merchant_id',
      'offer.status',
      eb.fn.sum<number>('link_days.visits').as('tracked'),
      untracked.as('untracked'),
    ])
    .where('link_days.day', '>=', day - 1)
    .where('link_days.day', '<=', day)
    .where('creator.suspended_at', 'is', null)
    .groupBy(['link.offer_id', 'offer.merchant_id', 'offer.status'])
    .having(untracked, '>=', least)
    .execute()
  return rows.map((row) => ({ ...row, tracked: Number(row.tracked), untracked: Number(row.untracked) }))
}

export interface UnpaidCycle {
  id: string
  merchant_id: string
  /** Paisa. */
  amount_due: number
  processor_invoice_id: string | null
  /** Epoch ms. */
  closed_at: number | null
  /** When its flag of this kind was last resolved. */
  resolved_at: number | null
}

/**
 * Cycles in state `closed` since before `before` (epoch ms) that have no open flag of this kind, oldest first. `closed` is a literal,
 * because SQLite uses no partial index for a bound value.
 */
export function cyclesClosedBefore(db: Queries, before: number, kind: string): Promise<UnpaidCycle[]> {
  return db
    .selectFrom('billing_cycles')
    .select((eb) => [
      'id',
      'merchant_id',
      'amount_due',
      'processor_invoice_id',
      'closed_at',
      flagsAbout(eb, kind)
        .select((flag) => flag.fn.max('resolved_at').as('resolved_at'))
        .as('resolved_at'),
    ])
    .where('state', '=', sql.lit('closed'))
    .where('closed_at', '<=', before)
    .where((eb) =>
      eb.not(eb.exists(flagsAbout(eb, kind).select('flags.id').where('flags.status', '=', 'open'))),
    )
    .orderBy('closed_at')
    .execute()
}

function flagsAbout(eb: ExpressionBuilder<Schema, 'billing_cycles'>, kind: string) {
  return eb
    .selectFrom('flags')
    .where('flags.kind', '=', kind)
    .where('flags.subject_id', '=', sql<string>`cast(billing_cycles.id as text)`)
}

/** The charged ones of these cycles. */
export async function chargedCycles(db: Queries, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await db
    .selectFrom('billing_cycles')
    .select('id')
    .where('id', 'in', ids)
    .where('state', '=', 'charged')
    .execute()
  return rows.map((row) => row.id)
}

/** Accounts with these ids, oldest first. */
export function accountsBetween(
  db: Queries,
  { after, to, limit }: IdRange & { limit: number },
): Promise<{ id: string; email: string }[]> {
  return db
    .selectFrom('users')
    .select(['id', 'email'])
    .where('id', '>', after)
    .where('id', '<', to)
    .orderBy('id')
    .limit(limit)
    .execute()
}

export interface MailboxRow {
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
export function mailboxesAfter(
  db: Queries,
  after: string | null,
  limit: number,
): Promise<(MailboxRow & { email: string })[]> {
  return db
    .selectFrom('mailboxes')
    .innerJoin('users', 'users.id', 'mailboxes.user_id')
    .select(['mailboxes.user_id', 'mailboxes.fingerprint', 'users.email'])
    .$if(after !== null, (query) => query.where('mailboxes.user_id', '>', after ?? ''))
    .orderBy('mailboxes.user_id')
    .limit(limit)
    .execute()
}

export async function setMailboxFingerprint(tx: Tx, { user_id, fingerprint }: MailboxRow): Promise<void> {
  await tx.updateTable('mailboxes').set({ fingerprint }).where('user_id', '=', user_id).execute()
}

/** The users with these mailboxes. */
export function holdersOfMailboxes(
  db: Queries,
  fingerprints: readonly string[],
): Promise<(MailboxRow & { role: Role })[]> {
  if (fingerprints.length === 0) return Promise.resolve([])
  return db
    .selectFrom('mailboxes')
    .innerJoin('users', 'users.id', 'mailboxes.user_id')
    .select(['mailboxes.user_id', 'mailboxes.fingerprint', 'users.role'])
    .where('mailboxes.fingerprint', 'in', fingerprints)
    .orderBy('mailboxes.user_id')
    .execute()
}

export type IbanRow = Selectable<Schema['payout_destinations']>

/** Payout destinations with these ids, oldest first. */
export function destinationsBetween(
  db: Queries,
  { after, to, limit }: IdRange & { limit: number },
): Promise<IbanRow[]> {
  return db
    .selectFrom('payout_destinations')
    .selectAll()
    .where('id', '>', after)
    .where('id', '<', to)
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** All users' destinations with one of these IBANs, oldest first. */
export function destinationsWithIban(db: Queries, fingerprints: readonly string[]): Promise<IbanRow[]> {
  if (fingerprints.length === 0) return Promise.resolve([])
  return db
    .selectFrom('payout_destinations')
    .selectAll()
    .where('iban_fingerprint', 'in', fingerprints)
    .orderBy('id')
    .execute()
}
