import { type Selectable, type SqlBool, sql } from 'kysely'
import type { Paisa } from '../../shared/money.ts'
import { newestFirst } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { countRows, type ScanCount, type ScanPage, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { RecordFilter } from '../processor/attempts.service.ts'
import type { PayoutState } from './payout-eligibility.rule.ts'

export type PayoutRow = Selectable<Schema['payouts']>
type PayoutLine = Selectable<Schema['payout_lines']>

/** A payout as a merchant sees it. */
export interface PayoutPart extends PayoutRow {
  /** The amount that came from the merchant's cycles, paisa. */
  part: Paisa
  creatorName: string
}

export async function insertPayout(
  tx: Tx,
  payout: Pick<PayoutRow, 'id' | 'creator_id' | 'amount' | 'created_at'>,
  lines: readonly Omit<PayoutLine, 'payout_id'>[],
): Promise<void> {
  await tx
    .insertInto('payouts')
    .values({ ...payout, state: 'pending' })
    .execute()
  const rows = lines.map(({ billing_cycle_id, merchant_id, amount }) => {
    return { payout_id: payout.id, billing_cycle_id, merchant_id, amount }
  })
  await tx.insertInto('payout_lines').values(rows).execute()
}

/** The parts of shares that a payout carries. */
export function linesOf(db: Queries, payoutId: string) {
  return db
    .selectFrom('payout_lines')
    .select(['billing_cycle_id', 'merchant_id', 'amount'])
    .where('payout_id', '=', payoutId)
    .orderBy('billing_cycle_id', 'desc')
    .execute()
}

/** The payouts that carried a creator's share of a cycle, oldest first, including failed ones, each with its part of it (paisa). */
export function payoutsOfShare(db: Queries, cycleId: string, creatorId: string) {
  return db
    .selectFrom('payouts as payout')
    .innerJoin('payout_lines as line', 'line.payout_id', 'payout.id')
    .selectAll('payout')
    .select('line.amount as part')
    .where('line.billing_cycle_id', '=', cycleId)
    .where('payout.creator_id', '=', creatorId)
    .orderBy('payout.id')
    .execute()
}

/** Changes a payout if its state is `from`. Returns false otherwise. */
export async function movePayout(tx: Tx, payoutId: string, from: PayoutState, change: Partial<PayoutRow>) {
  const updated = await tx
    .updateTable('payouts')
    .set(change)
    .where('id', '=', payoutId)
    .where('state', '=', from)
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

const payoutById = (db: Queries, id: string) => db.selectFrom('payouts').selectAll().where('id', '=', id)

export function lockPayout(tx: Tx, payoutId: string): Promise<PayoutRow | undefined> {
  return payoutById(tx, payoutId)
    .$if(dialectOf(tx) === 'postgresql', (query) => query.forUpdate())
    .executeTakeFirst()
}

export function findPayout(db: Queries, payoutId: string): Promise<PayoutRow | undefined> {
  return payoutById(db, payoutId).executeTakeFirst()
}

const RECENT = 1000

/** A creator's latest paid payouts. */
export async function paidPayoutIds(db: Queries, creatorId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('payouts')
    .select('id')
    .where('creator_id', '=', creatorId)
    .where('state', '=', 'paid')
    .orderBy('id', 'desc')
    .limit(RECENT)
    .execute()
  return rows.map(({ id }) => id)
}

/** The sum of the payouts that have not been sent yet, paisa. */
export async function unsentAmount(db: Queries): Promise<Paisa> {
  const row = await db
    .selectFrom('payouts')
    .select((query) => query.fn.sum<number | null>('amount').as('amount'))
    .where('state', '=', 'pending')
    .executeTakeFirstOrThrow()
  return row.amount ?? 0
}

export function findPayoutByProcessorId(db: Queries, processorId: string): Promise<PayoutRow | undefined> {
  return db
    .selectFrom('payouts')
    .selectAll()
    .where('processor_payout_id', '=', processorId)
    .executeTakeFirst()
}

/** A creator's payouts that failed since the last paid one, newest first. */
export function failuresSinceLastPaid(db: Queries, creatorId: string): Promise<PayoutRow[]> {
  const paid = db
    .selectFrom('payouts as paid')
    .select((query) => query.fn.max('paid.settled_at').as('at'))
    .where('paid.creator_id', '=', creatorId)
    .where('paid.state', '=', 'paid')
  return db
    .selectFrom('payouts')
    .selectAll()
    .where('creator_id', '=', creatorId)
    .where('state', '=', 'failed')
    .where((where) => where('settled_at', '>', where.fn.coalesce(paid, where.lit(0))))
    .orderBy('settled_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
}

/**
 * The failed payouts that a new one would replace: those that carried a share which is free again, unless a later payout of that share
 * has replaced them. There can be several, because a payout may be created while an earlier one is in transit.
 */
export async function failedBehindPayableShares(db: Queries, creatorId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('billing_cycle_shares as share')
    .innerJoin('payout_lines as line', 'line.billing_cycle_id', 'share.billing_cycle_id')
    .innerJoin('payouts as payout', 'payout.id', 'line.payout_id')
    .select(['share.billing_cycle_id as cycle', 'payout.id', 'payout.state'])
    .select(['payout.created_at', 'payout.settled_at'])
    .where('share.creator_id', '=', creatorId)
    .where('share.released_at', 'is not', null)
    .where(sql<SqlBool>`share.carried < share.commission`)
    .where('payout.creator_id', '=', creatorId)
    .orderBy('payout.id')
    .execute()
  const replaced = rows.filter(
    (failed) =>
      failed.state === 'failed' &&
      !rows.some(
        (later) =>
          later.cycle === failed.cycle &&
          later.id > failed.id &&
          later.created_at > (failed.settled_at ?? Number.POSITIVE_INFINITY),
      ),
  )
  return [...new Set(replaced.map((row) => row.id))]
}

export interface PayoutFilter {
  state: PayoutState | null
  limit: number
  /** Only payouts older than this id. */
  before: string | null
}

/** A creator's payouts, or all (`creatorId` null), newest first. */
export function findPayouts(db: Queries, creatorId: string | null, filter: PayoutFilter) {
  let query = db.selectFrom('payouts').selectAll()
  if (creatorId !== null) query = query.where('creator_id', '=', creatorId)
  if (filter.state !== null) query = query.where('state', '=', filter.state)
  return newestFirst(query, filter)
}

/** The payouts with money from one merchant's cycles; `part` is that merchant's amount, paisa. */
export function findPayoutParts(db: Queries, merchantId: string, filter: PayoutFilter) {
  const query = db
    .selectFrom('payouts as payout')
    .innerJoin('payout_lines as line', 'line.payout_id', 'payout.id')
    .selectAll('payout')
    .select(sql<number>`sum(line.amount)`.as('part'))
    .where('line.merchant_id', '=', merchantId)
    .$if(filter.state !== null, (rows) => rows.where('payout.state', '=', filter.state ?? 'pending'))
    .groupBy('payout.id')
  return newestFirst(query, filter, sql.ref('payout.id'))
}

/** Payouts to compare with the processor's records, by id, from the one after `after`. */
export function findPayoutsToCompare(
  db: Queries,
  { since, quietSince, always }: RecordFilter,
  after: string,
  limit: number,
): Promise<PayoutRow[]> {
  return db
    .selectFrom('payouts')
    .selectAll()
    .where('id', '>', after)
    .where((where) =>
      where.or([
        where.and([
          where('settled_at', 'is', null),
          where(where.fn.coalesce('submitted_at', 'created_at'), '<=', quietSince),
        ]),
        where.and([where('settled_at', '>=', since), where('settled_at', '<=', quietSince)]),
        ...(always.length > 0 ? [where('id', 'in', always)] : []),
      ]),
    )
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** Payouts of a creator, or all; for a merchant those with money from own billing cycles. */
export function countPayouts(db: Queries, scope: ScanScope, step: ScanPage): Promise<ScanCount> {
  let query = db
    .selectFrom('payouts')
    .select(['payouts.id', 'payouts.created_at'])
    .where('payouts.id', '<', step.below)
    .orderBy('payouts.id', 'desc')
    .limit(step.size)
  if (scope !== 'all' && 'creatorId' in scope) query = query.where('creator_id', '=', scope.creatorId)
  if (scope !== 'all' && 'merchantId' in scope) {
    query = query.where((eb) =>
      eb.exists(
        eb
          .selectFrom('payout_lines as line')
          .select('line.payout_id')
          .whereRef('line.payout_id', '=', 'payouts.id')
          .where('line.merchant_id', '=', scope.merchantId),
      ),
    )
  }
  return countRows(db, step, query)
}
