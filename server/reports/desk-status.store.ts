import { type SqlBool, sql } from 'kysely'
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

interface Sum {
  count: number
  /** Paisa. */
  amount: number
}

function total(rows: readonly Sum[]): Sum {
  return rows.reduce(
    (sum, { count, amount }) => ({ count: sum.count + count, amount: sum.amount + amount }),
    { count: 0, amount: 0 },
  )
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
  const isDue = sql`case when state = 'open' then period_end <= ${sql.lit(now)} else closed_at <= ${sql.lit(unpaidBefore)} end`
  const amount = sql`case when state = 'open' then commission_total + fee_total else amount_due end`
  const rows = await db
    .selectFrom('billing_cycles')
    .select(['state', sql<number>`case when ${isDue} then 1 else 0 end`.as('due'), COUNT])
    .select(sql<number>`sum(${amount})`.as('amount'))
    .where('state', 'in', ['open', 'closed'])
    .$if(merchantId !== null, (query) => query.where('merchant_id', '=', merchantId ?? ''))
    .groupBy(['state', sql`2`])
    .execute()
  const open = rows.filter(({ state }) => state === 'open')
  const closed = rows.filter(({ state }) => state === 'closed')
  const due = ({ due }: { due: number }) => due === 1
  return {
    open: total(open),
    late: total(open.filter(due)),
    closed: total(closed),
    unpaid: total(closed.filter(due)),
  }
}

/** The payouts of one creator, or with `null` of all, that have no outcome yet. */
export async function payoutSums(db: Queries, creatorId: string | null) {
  const rows = await db
    .selectFrom('payouts')
    .select(['state', COUNT, sql<number>`sum(amount)`.as('amount')])
    .where('state', 'in', ['pending', 'submitted'])
    .$if(creatorId !== null, (query) => query.where('creator_id', '=', creatorId ?? ''))
    .groupBy('state')
    .execute()
  const of = (state: 'pending' | 'submitted') => total(rows.filter((row) => row.state === state))
  return { pending: of('pending'), submitted: of('submitted') }
}

/** Released commission that is in no payout. */
export async function releasedSum(db: Queries): Promise<Sum> {
  const row = await db
    .selectFrom('billing_cycle_shares')
    .select([
      sql<number>`count(distinct creator_id)`.as('count'),
      sql<number | null>`sum(commission - carried)`.as('amount'),
    ])
    .where('released_at', 'is not', null)
    .where(sql<SqlBool>`carried < commission`)
    .executeTakeFirstOrThrow()
  return { count: row.count, amount: row.amount ?? 0 }
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

/** What a suspension of one account reaches: how many of each. */
type Reach = Record<'sessions' | 'links' | 'applications' | 'offers' | 'stores', number>

export async function reachOf(
  db: Queries,
  party: 'creator_id' | 'merchant_id',
  userId: string,
  now: number,
): Promise<Reach> {
  const own = sql`${sql.ref(party)} = ${userId}`
  const { rows } = await sql<Reach>`
    select
      (select count(*) from sessions where user_id = ${userId} and expires_at > ${now}) as sessions,
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
