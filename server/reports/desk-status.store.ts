import { type SqlBool, sql } from 'kysely'
import { HOUR_MS } from '../../shared/durations.ts'
import type { Queries } from '../platform/database/database.ts'
import { firstIdAt } from '../platform/ids.ts'

/** Hour 0 begins at `from`. */
export interface HourCount {
  hour: number
  count: number
}

/** Tracked visits by hour from `from` (epoch ms) on; reads the clicks of that time only, by their key. */
export function visitsByHour(db: Queries, from: number): Promise<HourCount[]> {
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

export interface SalesHour extends HourCount {
  status: 'accepted' | 'rejected'
  /** Paisa. */
  commission: number
}

/** Sales by hour and outcome from `from` (epoch ms) on. */
export function salesByHour(db: Queries, from: number): Promise<SalesHour[]> {
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

/** Cycles that are not charged: what has come together, and what is due. */
export async function cycleSums(db: Queries, now: number, unpaidBefore: number): Promise<CycleSums> {
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

export async function payoutSums(db: Queries): Promise<PayoutSums> {
  const rows = await db
    .selectFrom('payouts')
    .select(['state', sql<number>`count(*)`.as('count'), sql<number>`sum(amount)`.as('amount')])
    .where('state', 'in', ['pending', 'submitted'])
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

export interface FlagCount {
  severity: 'low' | 'medium' | 'high'
  count: number
}

export function openFlagCounts(db: Queries): Promise<FlagCount[]> {
  return db
    .selectFrom('flags')
    .select(['severity', sql<number>`count(*)`.as('count')])
    .where('status', '=', 'open')
    .groupBy('severity')
    .execute()
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
