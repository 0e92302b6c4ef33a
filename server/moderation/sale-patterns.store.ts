import { sql } from 'kysely'
import type { Queries, Tx } from '../platform/database.ts'
import { firstIdAt } from '../platform/ids.ts'
import type { LinkTally } from './sale-pattern.rule.ts'

export interface NewSale {
  id: string
  store_id: string
  merchant_id: string
  creator_id: string | null
  link_id: string | null
  acceptance_status: 'accepted' | 'rejected'
  rejection_reason: string | null
}

/** Sales after the id `after` and before `to`, oldest first. */
export function salesBetween(db: Queries, after: string, to: string, limit: number): Promise<NewSale[]> {
  return db
    .selectFrom('sales')
    .select([
      'id',
      'store_id',
      'merchant_id',
      'creator_id',
      'link_id',
      'acceptance_status',
      'rejection_reason',
    ])
    .where('id', '>', after)
    .where('id', '<', to)
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** How often each creator's own orders were rejected for that, since a moment (epoch ms). */
export async function countSelfPurchases(
  db: Queries,
  creatorIds: readonly string[],
  since: number,
): Promise<Map<string, number>> {
  if (creatorIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('sales')
    .select((eb) => ['creator_id', eb.fn.countAll<number>().as('count')])
    .where('creator_id', 'in', creatorIds)
    .where('id', '>=', firstIdAt(since))
    .where('rejection_reason', '=', 'self_purchase')
    .groupBy('creator_id')
    .execute()
  return new Map(rows.map((row) => [row.creator_id ?? '', row.count]))
}

export interface StoreOrders {
  store_id: string
  /** `null`: accepted. */
  rejection_reason: string | null
  /** 1 where the order led to a link of the merchant's. */
  linked: number
  orders: number
}

/** The orders of some merchants' stores since a moment (epoch ms), by store and outcome. */
export function countStoreOrders(
  db: Queries,
  merchantIds: readonly string[],
  since: number,
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
    .where('id', '>=', firstIdAt(since))
    .groupBy(['store_id', 'rejection_reason', linked])
    .execute()
}

export const DAY_MS = 86_400_000

/** Whole days since 1970, UTC. */
export function dayOf(moment: number): number {
  return Math.floor(moment / DAY_MS)
}

/**
 * Visits of these links since the beginning of a day, and the accepted sales that came of clicks since then.
 * Links without visits are missing.
 */
export async function tallyLinks(
  db: Queries,
  linkIds: readonly string[],
  sinceDay: number,
): Promise<Map<string, LinkTally>> {
  if (linkIds.length === 0) return new Map()
  const visits = await db
    .selectFrom('link_days')
    .select((eb) => ['link_id', eb.fn.sum<number>('visits').as('visits')])
    .where('link_id', 'in', linkIds)
    .where('day', '>=', sinceDay)
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
    visits.map((row) => [row.link_id, { visits: Number(row.visits), sales: sold.get(row.link_id) ?? 0 }]),
  )
}

/** The first click from the id `from` on, `null` when none has come. */
export async function firstClickFrom(db: Queries, from: string): Promise<string | null> {
  const row = await db
    .selectFrom('clicks')
    .select('id')
    .where('id', '>=', from)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return row?.id ?? null
}

/** Adds the tracked visits from the id `from` (inclusive) to `to` (exclusive) to the sums of their day. */
export async function addVisitsOfDay(tx: Tx, from: string, to: string, day: number): Promise<void> {
  await tx
    .insertInto('link_days')
    .columns(['link_id', 'day', 'visits'])
    .expression((eb) =>
      eb
        .selectFrom('clicks')
        .select((column) => [
          'link_id',
          sql<number>`cast(${day} as integer)`.as('day'),
          column.fn.countAll<number>().as('visits'),
        ])
        .where('id', '>=', from)
        .where('id', '<', to)
        .where('kind', '=', 'visit')
        .where('tracked', '=', 1)
        .groupBy('link_id'),
    )
    .onConflict((conflict) =>
      conflict.columns(['link_id', 'day']).doUpdateSet((eb) => ({
        visits: eb('link_days.visits', '+', eb.ref('excluded.visits')),
      })),
    )
    .execute()
}

/** Links visited on a day that have at least `visits` visits since `sinceDay`. */
export async function muchVisited(
  db: Queries,
  day: number,
  sinceDay: number,
  visits: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('link_days')
    .select('link_id')
    .where('day', '>=', sinceDay)
    .where('link_id', 'in', (eb) =>
      eb.selectFrom('link_days as today').select('today.link_id').where('today.day', '=', day),
    )
    .groupBy('link_id')
    .having((eb) => eb(eb.fn.sum<number>('visits'), '>=', visits))
    .execute()
  return rows.map((row) => row.link_id)
}

export async function forgetDaysBefore(tx: Tx, day: number): Promise<void> {
  await tx.deleteFrom('link_days').where('day', '<', day).execute()
}
