import { type SqlBool, sql } from 'kysely'
import type { CycleRow } from '../billing/billing.service.ts'
import type { PayoutPart, PayoutRow } from '../payouts/payouts.service.ts'
import type { Queries } from '../platform/database/database.ts'
import { firstIdAt } from '../platform/ids.ts'
import type { SaleWithSlug } from '../sales/sales.service.ts'
import { decidedAgainIds, type OwnScope, ownedBy } from './summaries.store.ts'

/** Changes of a payout are sent for this long after it was created, ms; it is settled within days. */
const PAYOUT_LIFE_MS = 31 * 86_400_000

/** Ids of own sales after the id `after`, ascending. */
export async function saleIdsAfter(
  db: Queries,
  scope: OwnScope,
  after: string,
  limit: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('sales')
    .select('id')
    .where(ownedBy(scope))
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map((row) => row.id)
}

/** Own sales that were decided a second time since a moment (epoch ms), with that time. */
export function salesDecidedAgainSince(db: Queries, scope: OwnScope, since: number) {
  return db
    .selectFrom('sales')
    .select(['id', sql<number>`decided_at`.as('decided_at')])
    .where(ownedBy(scope))
    .where('id', 'in', decidedAgainIds(db, since, null))
    .execute()
}

/** Own payouts that changed since a moment (epoch ms), with the times; a merchant's are those that carry money of own cycles. */
export function payoutsChangedSince(db: Queries, scope: OwnScope, since: number) {
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
    return changed
      .where('payouts.creator_id', '=', scope.creatorId)
      .where('payouts.id', '>=', bound)
      .execute()
  }
  return changed
    .innerJoin('payout_lines as line', 'line.payout_id', 'payouts.id')
    .where('line.merchant_id', '=', scope.merchantId)
    .where('line.payout_id', '>=', bound)
    .distinct()
    .execute()
}

/** A merchant's billing cycles that changed since a moment (epoch ms), with the times; `invoiced_at`: when the processor's invoice came. */
export function cyclesChangedSince(db: Queries, merchantId: string, since: number) {
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
    .execute()
}

export async function ownSales(
  db: Queries,
  scope: OwnScope,
  ids: readonly string[],
): Promise<SaleWithSlug[]> {
  if (ids.length === 0) return []
  return db
    .selectFrom('sales')
    .leftJoin('affiliate_links as link', 'link.id', 'sales.link_id')
    .selectAll('sales')
    .select('link.slug')
    .where(ownedBy(scope))
    .where('sales.id', 'in', ids)
    .execute()
}

export async function ownCycles(
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

/** A creator's payouts, or the parts of payouts that came from a merchant's cycles. */
export async function ownPayouts(
  db: Queries,
  scope: OwnScope,
  ids: readonly string[],
): Promise<(PayoutRow | PayoutPart)[]> {
  if (ids.length === 0) return []
  const payouts = db.selectFrom('payouts').selectAll('payouts').where('payouts.id', 'in', ids)
  if ('creatorId' in scope) return payouts.where('creator_id', '=', scope.creatorId).execute()
  return payouts
    .innerJoin('payout_lines as line', 'line.payout_id', 'payouts.id')
    .innerJoin('users as creator', 'creator.id', 'payouts.creator_id')
    .select([sql<number>`sum(line.amount)`.as('part'), 'creator.display_name as creatorName'])
    .where('line.merchant_id', '=', scope.merchantId)
    .groupBy(['payouts.id', 'creator.display_name'])
    .execute()
}
