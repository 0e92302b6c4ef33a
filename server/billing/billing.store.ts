import { type Insertable, type Selectable, sql } from 'kysely'
import { dialectOf, LostRace, type Queries, type Tx } from '../platform/database.ts'
import { rowSet } from '../platform/row-set.ts'
import type { Schema } from '../platform/schema.ts'
import type { CycleState } from './close-cycle.rule.ts'

export type CycleRow = Selectable<Schema['billing_cycles']>
export type ShareRow = Selectable<Schema['billing_cycle_shares']>

/** The open cycles of these merchants, locked in a fixed order until the transaction ends. */
export function lockOpenCycles(
  tx: Tx,
  dialect: 'sqlite' | 'postgresql',
  merchantIds: readonly string[],
): Promise<CycleRow[]> {
  return tx
    .selectFrom('billing_cycles')
    .selectAll()
    .where('merchant_id', 'in', merchantIds)
    .where('state', '=', 'open')
    .orderBy('merchant_id')
    .$if(dialect === 'postgresql', (query) => query.forUpdate())
    .execute()
}

export function lockCycle(
  tx: Tx,
  dialect: 'sqlite' | 'postgresql',
  cycleId: string,
): Promise<CycleRow | undefined> {
  return tx
    .selectFrom('billing_cycles')
    .selectAll()
    .where('id', '=', cycleId)
    .$if(dialect === 'postgresql', (query) => query.forUpdate())
    .executeTakeFirst()
}

/** Where each merchant's latest cycle ended (epoch ms); merchants without one are missing. */
export async function lastPeriodEnds(tx: Tx, merchantIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await tx
    .selectFrom('billing_cycles')
    .select((query) => ['merchant_id', query.fn.max('period_end').as('period_end')])
    .where('merchant_id', 'in', merchantIds)
    .groupBy('merchant_id')
    .execute()
  return new Map(rows.map((row) => [row.merchant_id, Number(row.period_end)]))
}

/** Opens cycles. Throws `LostRace` when another transaction opened one of them meanwhile. */
export async function insertCycles(tx: Tx, cycles: Insertable<Schema['billing_cycles']>[]): Promise<void> {
  const added = await tx
    .insertInto('billing_cycles')
    .values(cycles)
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .execute()
  if (added.length < cycles.length) throw new LostRace('a billing cycle was opened')
}

export interface CycleAddition {
  cycleId: string
  sales: number
  commission: number
  fee: number
}

const additions = rowSet<CycleAddition>('added', {
  cycleId: 'uuid',
  sales: 'int',
  commission: 'bigint',
  fee: 'bigint',
})

/** Adds to the totals of open cycles, one addition a cycle; answers how many of the cycles are open. */
export async function addToTotals(tx: Tx, added: readonly CycleAddition[]): Promise<number> {
  const { numAffectedRows } = await sql`
    update billing_cycles as cycle
    set sales_count = cycle.sales_count + added.sales, commission_total = cycle.commission_total + added.commission,
      fee_total = cycle.fee_total + added.fee
    from ${additions(dialectOf(tx), added)}
    where cycle.id = added."cycleId" and cycle.state = 'open'`.execute(tx)
  return Number(numAffectedRows)
}

/** What is added to a creator's share of a cycle. */
export type CycleShare = Pick<ShareRow, 'billing_cycle_id' | 'creator_id' | 'sales_count' | 'commission'>

export async function addToShares(tx: Tx, shares: readonly CycleShare[]): Promise<void> {
  await tx
    .insertInto('billing_cycle_shares')
    .values(shares.map((share) => ({ ...share, released_at: null, payout_id: null })))
    .onConflict((conflict) =>
      conflict.columns(['billing_cycle_id', 'creator_id']).doUpdateSet({
        sales_count: sql`billing_cycle_shares.sales_count + excluded.sales_count`,
        commission: sql`billing_cycle_shares.commission + excluded.commission`,
      }),
    )
    .execute()
}

/** Compare-and-set of a cycle's state; false when it is not in `from` any more. */
export async function moveCycle(
  tx: Tx,
  cycleId: string,
  from: CycleState,
  change: Partial<CycleRow>,
): Promise<boolean> {
  const updated = await tx
    .updateTable('billing_cycles')
    .set(change)
    .where('id', '=', cycleId)
    .where('state', '=', from)
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

/** Ids of open cycles whose period is over at `asOf`, oldest first. */
export async function dueCycleIds(db: Queries, asOf: number, merchantId: string | null): Promise<string[]> {
  const rows = await db
    .selectFrom('billing_cycles')
    .select('id')
    .where('state', '=', 'open')
    .where('period_end', '<=', asOf)
    .$if(merchantId !== null, (query) => query.where('merchant_id', '=', merchantId ?? ''))
    .orderBy('period_end')
    .orderBy('id')
    .execute()
  return rows.map((row) => row.id)
}

export function findCycle(db: Queries, cycleId: string): Promise<CycleRow | undefined> {
  return db.selectFrom('billing_cycles').selectAll().where('id', '=', cycleId).executeTakeFirst()
}

export function findCycleByInvoice(db: Queries, invoiceId: string): Promise<CycleRow | undefined> {
  return db
    .selectFrom('billing_cycles')
    .selectAll()
    .where('processor_invoice_id', '=', invoiceId)
    .executeTakeFirst()
}

export interface CycleFilter {
  /** `null`: of every merchant, for the operator. */
  merchantId: string | null
  state: CycleState | null
  limit: number
  /** Only cycles older than this id. */
  before: string | null
}

export function findCycles(db: Queries, filter: CycleFilter): Promise<CycleRow[]> {
  return db
    .selectFrom('billing_cycles')
    .selectAll()
    .$if(filter.merchantId !== null, (query) => query.where('merchant_id', '=', filter.merchantId ?? ''))
    .$if(filter.state !== null, (query) => query.where('state', '=', filter.state ?? 'open'))
    .$if(filter.before !== null, (query) => query.where('id', '<', filter.before ?? ''))
    .orderBy('id', 'desc')
    .limit(filter.limit)
    .execute()
}

export function sharesOf(db: Queries, cycleId: string): Promise<ShareRow[]> {
  return db
    .selectFrom('billing_cycle_shares')
    .selectAll()
    .where('billing_cycle_id', '=', cycleId)
    .orderBy('creator_id')
    .execute()
}

export async function releaseShares(tx: Tx, cycleId: string, now: number): Promise<void> {
  await tx
    .updateTable('billing_cycle_shares')
    .set({ released_at: now })
    .where('billing_cycle_id', '=', cycleId)
    .execute()
}
