import { type SqlBool, sql } from 'kysely'
import type { CycleRow } from '../billing/billing.service.ts'
import type { PayoutRow } from '../payouts/payouts.service.ts'
import type { Queries } from '../platform/database/database.ts'
import { firstIdAt } from '../platform/ids.ts'
import type { SaleWithSlug } from '../sales/sales.service.ts'
import { decidedAgainIds, type OwnScope, ownedBy } from './summaries.store.ts'

/** Changes of a payout are sent for this long after it was created, ms; it is settled within days. */
const PAYOUT_LIFE_MS = 31 * 86_400_000

export async function hasAcceptedSale(db: Queries, scope: OwnScope): Promise<boolean> {
  const row = await db
    .selectFrom('sales')
    .select('id')
    .where(ownedBy(scope))
    .where('acceptance_status', '=', 'accepted')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** The statement behind `saleIdsAfter`. */
export function saleIdsQuery(db: Queries, scope: OwnScope, after: string, limit: number) {
  return db
    .selectFrom('sales')
    .select('id')
    .where(ownedBy(scope))
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
}

/** Ids of own sales after the id `after`, ascending. */
export async function saleIdsAfter(
  db: Queries,
  scope: OwnScope,
  after: string,
  limit: number,
): Promise<string[]> {
  const rows = await saleIdsQuery(db, scope, after, limit).execute()
  return rows.map((row) => row.id)
}

/** The statement behind `salesDecidedAgainSince`. */
export function decidedAgainQuery(db: Queries, scope: OwnScope, since: number) {
  return db
    .selectFrom('sales')
    .select(['id', sql<number>`decided_at`.as('decided_at')])
    .where(ownedBy(scope))
    .where('id', 'in', decidedAgainIds(db, since, null))
}

/** Own sales that were decided a second time since a moment (epoch ms), with that time. */
export function salesDecidedAgainSince(
  db: Queries,
  scope: OwnScope,
  since: number,
): Promise<{ id: string; decided_at: number }[]> {
  return decidedAgainQuery(db, scope, since).execute()
}

/** When a payout changed, epoch ms. */
export type PayoutMoments = Pick<PayoutRow, 'id' | 'created_at' | 'submitted_at' | 'settled_at'>

/** The statement behind `payoutsChangedSince`; a merchant's are the payouts that carry money of own cycles. */
export function payoutsQuery(db: Queries, scope: OwnScope, since: number) {
  const changed = db
    .selectFrom('payouts')
    .select(['payouts.id', 'payouts.created_at', 'payouts.submitted_at', 'payouts.settled_at'])
    .where((where) =>
      where.or([
        where('payouts.created_at', '>=', since),
        where('payouts.submitted_at', '>=', since),
        where('payouts.settled_at', '>=', since),
      ]),
    )
  const bound = firstIdAt(since - PAYOUT_LIFE_MS)
  if ('creatorId' in scope) {
    return changed.where('payouts.creator_id', '=', scope.creatorId).where('payouts.id', '>=', bound)
  }
  return changed
    .innerJoin('payout_lines as line', 'line.payout_id', 'payouts.id')
    .where('line.merchant_id', '=', scope.merchantId)
    .where('line.payout_id', '>=', bound)
    .distinct()
}

export function payoutsChangedSince(db: Queries, scope: OwnScope, since: number): Promise<PayoutMoments[]> {
  return payoutsQuery(db, scope, since).execute()
}

/** When a billing cycle changed, epoch ms. */
export interface CycleMoments extends Pick<CycleRow, 'id' | 'created_at' | 'closed_at' | 'charged_at'> {
  /** When the processor's invoice came. */
  invoiced_at: number | null
}

/** The statement behind `cyclesChangedSince`. */
export function cyclesQuery(db: Queries, merchantId: string, since: number) {
  return db
    .selectFrom('billing_cycles as cycle')
    .leftJoin('processor_attempts as attempt', (join) =>
      join
        .onRef('attempt.subject_id', '=', 'cycle.id')
        // In the very words of the index, which holds only these.
        .on(sql<SqlBool>`attempt.state in ('waiting', 'created') and attempt.failed_at is null`)
        .on('attempt.kind', '=', 'invoice'),
    )
    .select([
      'cycle.id',
      'cycle.created_at',
      'cycle.closed_at',
      'cycle.charged_at',
      'attempt.settled_at as invoiced_at',
    ])
    .where('cycle.merchant_id', '=', merchantId)
    .where((where) =>
      where.or([
        where('cycle.created_at', '>=', since),
        where('cycle.closed_at', '>=', since),
        where('cycle.charged_at', '>=', since),
        where('attempt.settled_at', '>=', since),
      ]),
    )
}

export function cyclesChangedSince(db: Queries, merchantId: string, since: number): Promise<CycleMoments[]> {
  return cyclesQuery(db, merchantId, since).execute()
}

export async function salesById(
  db: Queries,
  scope: OwnScope,
  ids: readonly string[],
): Promise<Map<string, SaleWithSlug>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('sales')
    .leftJoin('affiliate_links as link', 'link.id', 'sales.link_id')
    .selectAll('sales')
    .select('link.slug')
    .where(ownedBy(scope))
    .where('sales.id', 'in', ids)
    .execute()
  return new Map(rows.map((row) => [row.id, row]))
}

export async function cyclesById(
  db: Queries,
  merchantId: string,
  ids: readonly string[],
): Promise<CycleRow[]> {
  if (ids.length === 0) return []
  return db
    .selectFrom('billing_cycles')
    .selectAll()
    .where('merchant_id', '=', merchantId)
    .where('id', 'in', ids)
    .execute()
}

export async function payoutsById(
  db: Queries,
  creatorId: string,
  ids: readonly string[],
): Promise<Map<string, PayoutRow>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('payouts')
    .selectAll()
    .where('creator_id', '=', creatorId)
    .where('id', 'in', ids)
    .execute()
  return new Map(rows.map((row) => [row.id, row]))
}

/** Payouts with the part (paisa) that came from one merchant's cycles. */
export async function payoutPartsById(
  db: Queries,
  merchantId: string,
  ids: readonly string[],
): Promise<Map<string, PayoutRow & { part: number }>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('payouts as payout')
    .innerJoin('payout_lines as line', 'line.payout_id', 'payout.id')
    .selectAll('payout')
    .select(sql<number>`sum(line.amount)`.as('part'))
    .where('line.merchant_id', '=', merchantId)
    .where('payout.id', 'in', ids)
    .groupBy('payout.id')
    .execute()
  return new Map(rows.map((row) => [row.id, row]))
}
