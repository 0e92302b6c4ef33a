import { type SqlBool, sql } from 'kysely'
import { HOUR_MS } from '../../shared/durations.ts'
import type { Queries } from '../platform/database/database.ts'
import { firstIdAt } from '../platform/ids.ts'

/** Tracked visits by hour from `from` (epoch ms) on, hour 0; reads the clicks of that time only, by their key. */
export function visitsByHour(db: Queries, from: number) {
  return db
    .selectFrom('clicks')
    .select([
      sql<number>`(created_at - ${sql.lit(from)}) / ${sql.lit(HOUR_MS)}`.as('hour'),
      sql<number>`count(*)`.as('count'),
    ])
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
      .select([
        sql<number>`(created_at - ${sql.lit(from)}) / ${sql.lit(HOUR_MS)}`.as('hour'),
        'acceptance_status as status',
        sql<number>`count(*)`.as('count'),
        sql<number>`sum(commission)`.as('commission'),
      ])
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

export interface CycleSums {
  open: Sum
  /** Open although their period is over. */
  late: Sum
  closed: Sum
  /** Closed before the moment that was asked for. */
  unpaid: Sum
}

/** The cycles of one merchant, or with `null` of all, that are not charged: what has come together, and what is due. */
export async function cycleSums(
  db: Queries,
  merchantId: string | null,
  { now, unpaidBefore }: { now: number; unpaidBefore: number },
): Promise<CycleSums> {
  const [row] = await db
    .selectFrom('billing_cycles')
    .select([
      ...sumWhere('open', sql`state = 'open'`, 'commission_total + fee_total'),
      ...sumWhere(
        'late',
        sql`state = 'open' and period_end <= ${sql.lit(now)}`,
        'commission_total + fee_total',
      ),
      ...sumWhere('closed', sql`state = 'closed'`, 'amount_due'),
      ...sumWhere('unpaid', sql`state = 'closed' and closed_at <= ${sql.lit(unpaidBefore)}`, 'amount_due'),
    ])
    .where('state', 'in', ['open', 'closed'])
    .$if(merchantId !== null, (query) => query.where('merchant_id', '=', merchantId ?? ''))
    .execute()
  const of = (name: keyof CycleSums): Sum => ({
    count: row?.[`${name}_count`] ?? 0,
    amount: row?.[`${name}_amount`] ?? 0,
  })
  return { open: of('open'), late: of('late'), closed: of('closed'), unpaid: of('unpaid') }
}

function sumWhere<Name extends string>(name: Name, condition: ReturnType<typeof sql>, amount: string) {
  return [
    sql<number | null>`sum(case when ${condition} then 1 else 0 end)`.as(`${name}_count` as const),
    sql<number | null>`sum(case when ${condition} then ${sql.raw(amount)} else 0 end)`.as(
      `${name}_amount` as const,
    ),
  ] as const
}

export interface PayoutSums {
  pending: Sum
  submitted: Sum
}

/** The payouts of one creator, or with `null` of all, that have no outcome yet. */
export async function payoutSums(db: Queries, creatorId: string | null): Promise<PayoutSums> {
  const rows = await db
    .selectFrom('payouts')
    .select(['state', sql<number>`count(*)`.as('count'), sql<number>`sum(amount)`.as('amount')])
    .where('state', 'in', ['pending', 'submitted'])
    .$if(creatorId !== null, (query) => query.where('creator_id', '=', creatorId ?? ''))
    .groupBy('state')
    .execute()
  const of = (state: 'pending' | 'submitted'): Sum => {
    const row = rows.find((one) => one.state === state)
    return { count: row?.count ?? 0, amount: row?.amount ?? 0 }
  }
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

export interface AttemptCount {
  kind: 'invoice' | 'payout'
  waiting: number
  oldest: number | null
}

/** Calls to the processor whose outcome is not known yet. */
export function waitingAttempts(db: Queries): Promise<AttemptCount[]> {
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
    .select(['severity', sql<number>`count(*)`.as('count')])
    .where('status', '=', 'open')
    .groupBy('severity')
    .execute()
  return { high: 0, medium: 0, low: 0, ...Object.fromEntries(rows.map((row) => [row.severity, row.count])) }
}

/** What a suspension of one account reaches: sessions end, links earn nothing more or lead nowhere, the rest waits or leaves the catalogue. */
export async function reachOf(
  db: Queries,
  party: 'creator_id' | 'merchant_id',
  userId: string,
  now: number,
): Promise<Record<'sessions' | 'links' | 'applications' | 'offers' | 'stores', number>> {
  const own = sql`${sql.ref(party)} = ${userId}`
  const { rows } = await sql<Record<'sessions' | 'links' | 'applications' | 'offers' | 'stores', number>>`
    select
      (select count(*) from sessions where user_id = ${userId} and expires_at > ${now}) as sessions,
      (select count(*) from affiliate_links where ${own}) as links,
      (select count(*) from applications where ${own} and status = 'pending') as applications,
      (select count(*) from offers where merchant_id = ${userId} and status = 'live') as offers,
      (select count(*) from stores where merchant_id = ${userId} and removed_at is null) as stores`.execute(
    db,
  )
  return rows[0] as (typeof rows)[0]
}

/** How many events were set aside since `from` (epoch ms). */
export async function setAsideSince(db: Queries, from: number): Promise<number> {
  const row = await db
    .selectFrom('inbound_events')
    .select(sql<number>`count(*)`.as('count'))
    .where('id', '>=', firstIdAt(from))
    .where('state', '=', 'set_aside')
    .executeTakeFirstOrThrow()
  return row.count
}
