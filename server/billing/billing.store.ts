import { type Selectable, sql } from 'kysely'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { inList, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx, WriteConflict } from '../platform/database/database.ts'
import { countRows, type ScanCount, type ScanPage } from '../platform/database/keyset-scan.ts'
import {
  authentic,
  insertRowsIfNew,
  type NewRow,
  transactionKeys,
  updateRows,
} from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { RecordFilter } from '../processor/attempts.service.ts'
import type { Period } from './billing-period.rule.ts'
import type { CycleState } from './close-cycle.rule.ts'

export type CycleRow = Selectable<Schema['billing_cycles']>
export type ShareRow = Selectable<Schema['billing_cycle_shares']>

/**
 * The open cycles of these merchants, locked in a fixed order until the transaction ends. Throws `TamperedRow` and
 * `UnknownKeyError`.
 */
export async function lockOpenCycles(tx: Tx, merchantIds: readonly string[]): Promise<readonly CycleRow[]> {
  const cycles = await tx
    .selectFrom('billing_cycles')
    .selectAll()
    .where('merchant_id', 'in', merchantIds)
    .where('state', '=', 'open')
    .orderBy('merchant_id')
    .$if(dialectOf(tx) === 'postgresql', (query) => query.forUpdate())
    .execute()
  return authentic(transactionKeys(), 'billing_cycles', cycles)
}

/** Throws `TamperedRow` and `UnknownKeyError`. */
export async function lockCycle(tx: Tx, cycleId: string): Promise<CycleRow | undefined> {
  return authentic(transactionKeys(), 'billing_cycles', await lockCycles(tx, [cycleId]))[0]
}

/** The end of each merchant's latest cycle (epoch ms). Merchants without a cycle are missing. */
export async function lastPeriodEnds(tx: Tx, merchantIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await tx
    .selectFrom('billing_cycles')
    .select((query) => ['merchant_id', query.fn.max('period_end').as('period_end')])
    .where('merchant_id', 'in', merchantIds)
    .groupBy('merchant_id')
    .execute()
  return new Map(rows.map((row) => [row.merchant_id, Number(row.period_end)]))
}

/** Opens cycles. Throws `WriteConflict` if another transaction has opened one of them. */
export async function insertCycles(tx: Tx, cycles: readonly NewRow<'billing_cycles'>[]): Promise<CycleRow[]> {
  const added = await insertRowsIfNew(tx, 'billing_cycles', cycles)
  if (added.length < cycles.length) throw new WriteConflict('a billing cycle was opened')
  return added
}

export interface CycleAddition {
  cycleId: string
  sales: number
  commission: number
  fee: number
}

const additions = valuesTable<CycleAddition>('added', {
  cycleId: 'uuid',
  sales: 'int',
  commission: 'bigint',
  fee: 'bigint',
})

/** Adds to the totals of open cycles, one addition per cycle. Returns how many of the cycles are open. */
export async function addToTotals(tx: Tx, added: readonly CycleAddition[]): Promise<number> {
  const { numAffectedRows } = await sql`
    update billing_cycles as cycle
    set sales_count = cycle.sales_count + added.sales, commission_total = cycle.commission_total + added.commission,
      fee_total = cycle.fee_total + added.fee
    from ${additions(dialectOf(tx), added)}
    where cycle.id = added."cycleId" and cycle.state = 'open'`.execute(tx)
  return Number(numAffectedRows)
}

/** An addition to a creator's share of a cycle. */
export type CycleShare = Pick<ShareRow, 'billing_cycle_id' | 'creator_id' | 'sales_count' | 'commission'>

export async function addToShares(tx: Tx, shares: readonly CycleShare[]): Promise<void> {
  await tx
    .insertInto('billing_cycle_shares')
    .values(shares.map((share) => ({ ...share, released_at: null, carried: 0 })))
    .onConflict((conflict) =>
      conflict.columns(['billing_cycle_id', 'creator_id']).doUpdateSet({
        sales_count: sql`billing_cycle_shares.sales_count + excluded.sales_count`,
        commission: sql`billing_cycle_shares.commission + excluded.commission`,
      }),
    )
    .execute()
}

/** Changes a cycle if its state is `from`, and returns it. Throws `TamperedRow` and `UnknownKeyError`. */
export async function moveCycle(
  tx: Tx,
  cycleId: string,
  from: CycleState,
  change: Partial<NewRow<'billing_cycles'>>,
): Promise<CycleRow | undefined> {
  return (await updateRows(tx, 'billing_cycles', { id: cycleId, state: from }, change))[0]
}

/** Ids of the merchant's closed cycles without an invoice. */
export async function uninvoicedCycleIds(db: Queries, merchantId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('billing_cycles')
    .select('id')
    .where('merchant_id', '=', merchantId)
    .where('state', '=', 'closed')
    .where('processor_invoice_id', 'is', null)
    .execute()
  return rows.map(({ id }) => id)
}

/** Ids of open cycles whose period is over at `asOf` (epoch ms), oldest first. */
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
  /** `null`: all merchants. */
  merchantId: string | null
  state: CycleState | null
  limit: number
  /** Only cycles older than this id. */
  before: string | null
}

function cyclesOf(db: Queries, { merchantId, state, before, limit }: CycleFilter) {
  return db
    .selectFrom('billing_cycles')
    .$if(merchantId !== null, (query) => query.where('merchant_id', '=', merchantId ?? ''))
    .$if(state !== null, (query) => query.where('state', '=', state ?? 'open'))
    .$if(before !== null, (query) => query.where('id', '<', before ?? ''))
    .orderBy('id', 'desc')
    .limit(limit)
}

export function findCycles(db: Queries, filter: CycleFilter): Promise<CycleRow[]> {
  return cyclesOf(db, filter).selectAll().execute()
}

/** Cycles of one merchant, or of all (`null`). */
export function countCycles(db: Queries, merchantId: string | null, step: ScanPage): Promise<ScanCount> {
  const filter = { merchantId, state: null, before: step.below, limit: step.size }
  return countRows(db, step, cyclesOf(db, filter).select(['id', 'created_at']))
}

/** What each creator earned in a cycle. */
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

/** In the same order as `lockCycles`. Throws `TamperedRow` and `UnknownKeyError`. */
export async function findCyclesByIds(db: Queries, keys: AppKeys, cycleIds: readonly string[]) {
  return authentic(keys, 'billing_cycles', await cyclesByIds(db, cycleIds).execute())
}

/** These cycles in any state, locked in the order of their merchants until the transaction ends. They are not checked. */
export function lockCycles(tx: Tx, cycleIds: readonly string[]): Promise<CycleRow[]> {
  return cyclesByIds(tx, cycleIds)
    .$if(dialectOf(tx) === 'postgresql', (query) => query.forUpdate())
    .execute()
}

function cyclesByIds(db: Queries, cycleIds: readonly string[]) {
  return db
    .selectFrom('billing_cycles')
    .selectAll()
    .where(sql<boolean>`id ${inList(dialectOf(db), 'uuid', cycleIds)}`)
    .orderBy('merchant_id')
    .orderBy('id')
}

/** Closed and charged cycles to compare with the processor's invoices, by id, from the one after `after`. */
export function findCyclesToCompare(
  db: Queries,
  { since, quietSince, always }: RecordFilter,
  after: string,
  limit: number,
): Promise<CycleRow[]> {
  return db
    .selectFrom('billing_cycles')
    .selectAll()
    .where('id', '>', after)
    .where((where) =>
      where.or([
        where.and([where('state', '=', 'closed'), where('closed_at', '<=', quietSince)]),
        where.and([
          where('state', '=', 'charged'),
          where('charged_at', '>=', since),
          where('charged_at', '<=', quietSince),
        ]),
        ...(always.length > 0 ? [where('id', 'in', always)] : []),
      ]),
    )
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** By billing cycle id, for a few thousand ids at most. */
export async function cyclePeriodsOf(db: Queries, ids: readonly string[]): Promise<Map<string, Period>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('billing_cycles')
    .select(['id', 'period_start as start', 'period_end as end'])
    .where('id', 'in', [...new Set(ids)])
    .execute()
  return new Map(rows.map(({ id, ...period }) => [id, period]))
}

/** Commission and fee of all a merchant's cycles, paisa. */
export async function acceptedTotalOf(db: Queries, merchantId: string): Promise<number> {
  const row = await db
    .selectFrom('billing_cycles')
    .select(sql<number | null>`sum(commission_total + fee_total)`.as('accepted'))
    .where('merchant_id', '=', merchantId)
    .executeTakeFirst()
  return row?.accepted ?? 0
}
