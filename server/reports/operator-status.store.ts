import { type RawBuilder, sql } from 'kysely'
import { HOUR_MS } from '../../shared/durations.ts'
import { countOf } from '../platform/database/bulk-values.ts'
import type { Queries } from '../platform/database/database.ts'
import { firstIdAt } from '../platform/ids.ts'

const hourSince = (from: number) =>
  sql<number>`(created_at - ${sql.lit(from)}) / ${sql.lit(HOUR_MS)}`.as('hour')
const COUNT = sql<number>`count(*)`.as('count')

/** Tracked visits by hour from `from` (epoch ms) on, hour 0; reads the clicks of that time only, by their key. */
export function visitsByHour(db: Queries, from: number) {
  return db
    .selectFrom('clicks')
    .select([hourSince(from), COUNT])
    .where('id', '>=', firstIdAt(from))
    .where('created_at', '>=', from)
    .where('kind', '=', 'visit')
    .where('tracked', '=', 1)
    .groupBy(sql`1`)
    .execute()
}

/** Sales and commission (paisa) by hour and outcome from `from` (epoch ms) on, hour 0. */
export function salesByHour(db: Queries, from: number) {
  return (
    db
      .selectFrom('sales')
      .select([hourSince(from), 'acceptance_status as status', COUNT])
      .select(sql<number>`sum(commission)`.as('commission'))
      // A sale's id is made a moment before or after it is dated.
      .where('id', '>=', firstIdAt(from - HOUR_MS))
      .where('created_at', '>=', from)
      .groupBy([sql`1`, 'acceptance_status'])
      .execute()
  )
}

export interface Sum {
  count: number
  /** Paisa. */
  amount: number
}

/** How many rows of a table meet a condition, and what they come to. */
async function sumOf(db: Queries, table: string, amount: RawBuilder<number>, condition: RawBuilder<boolean>) {
  const { rows } = await sql<Sum>`select count(*) as count, coalesce(sum(${amount}), 0) as amount
    from ${sql.table(table)} where ${condition}`.execute(db)
  return rows[0] as Sum
}

/**
 * The cycles of one merchant, or with `null` of all, that are not charged. Of the open ones those are `late` whose period is over; of the
 * closed ones those are `unpaid` that were closed at `unpaidBefore` (epoch ms) or earlier.
 */
export async function cycleSums(
  db: Queries,
  merchantId: string | null,
  { now, unpaidBefore }: { now: number; unpaidBefore: number },
) {
  const own = merchantId === null ? sql`true` : sql`merchant_id = ${merchantId}`
  const open = (also: RawBuilder<unknown>) =>
    sumOf(db, 'billing_cycles', sql`commission_total + fee_total`, sql`state = 'open' and ${own} and ${also}`)
  const closed = (also: RawBuilder<unknown>) =>
    sumOf(db, 'billing_cycles', sql`amount_due`, sql`state = 'closed' and ${own} and ${also}`)
  return {
    open: await open(sql`true`),
    late: await open(sql`period_end <= ${now}`),
    closed: await closed(sql`true`),
    unpaid: await closed(sql`closed_at <= ${unpaidBefore}`),
  }
}

/** The payouts of one creator, or with `null` of all, that have no outcome yet. */
export async function payoutSums(db: Queries, creatorId: string | null) {
  const own = creatorId === null ? sql`true` : sql`creator_id = ${creatorId}`
  const inState = (state: string) => sumOf(db, 'payouts', sql`amount`, sql`state = ${state} and ${own}`)
  return { pending: await inState('pending'), submitted: await inState('submitted') }
}

/** Released commission that is in no payout, and of how many creators. */
export async function releasedSum(db: Queries): Promise<Sum> {
  const { rows } = await sql<Sum>`
    select count(distinct creator_id) as count, coalesce(sum(commission - carried), 0) as amount
    from billing_cycle_shares where released_at is not null and carried < commission`.execute(db)
  return rows[0] as Sum
}

/** Calls to the processor whose outcome is not known yet. */
export function waitingAttempts(db: Queries) {
  return db
    .selectFrom('processor_attempts')
    .select(['kind', sql<number>`count(*)`.as('waiting'), sql<number | null>`min(created_at)`.as('oldest')])
    .where('state', '=', 'waiting')
    .groupBy('kind')
    .execute()
}

export async function openFlagCounts(db: Queries): Promise<Record<'high' | 'medium' | 'low', number>> {
  const rows = await db
    .selectFrom('flags')
    .select(['severity', COUNT])
    .where('status', '=', 'open')
    .groupBy('severity')
    .execute()
  return { high: 0, medium: 0, low: 0, ...Object.fromEntries(rows.map((row) => [row.severity, row.count])) }
}

type Reach = Record<'sessions' | 'apiKeys' | 'links' | 'applications' | 'offers' | 'stores', number>

/** What a suspension of one account reaches: how many of each. */
export async function reachOf(db: Queries, party: 'creator_id' | 'merchant_id', userId: string, now: number) {
  const own = sql`${sql.ref(party)} = ${userId}`
  const { rows } = await sql<Reach>`
    select
      (select count(*) from sessions where user_id = ${userId} and expires_at > ${now}) as sessions,
      (select count(*) from api_keys
        where user_id = ${userId} and (expires_at is null or expires_at > ${now})) as "apiKeys",
      (select count(*) from affiliate_links where ${own}) as links,
      (select count(*) from applications where ${own} and status = 'pending') as applications,
      (select count(*) from offers where merchant_id = ${userId} and status = 'live') as offers,
      (select count(*) from stores where merchant_id = ${userId} and removed_at is null) as stores`.execute(
    db,
  )
  return rows[0] as Reach
}

/** How many events were set aside since `from` (epoch ms). */
export function setAsideSince(db: Queries, from: number): Promise<number> {
  return countOf(
    db.selectFrom('inbound_events').where('id', '>=', firstIdAt(from)).where('state', '=', 'set_aside'),
  )
}
