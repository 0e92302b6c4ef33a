import { type SqlBool, sql } from 'kysely'
import type { PayoutPart, PayoutRow } from '../payouts/payouts.service.ts'
import type { Queries } from '../platform/database/database.ts'
import type { OwnScope } from '../platform/database/keyset-scan.ts'
import { firstIdAt } from '../platform/ids.ts'
import { decidedAgainIds, ownedBy } from './summaries.store.ts'

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

/** Own payouts that changed since a moment (epoch ms); a merchant's are the parts of payouts that came from own cycles. */
export async function payoutsChangedSince(
  db: Queries,
  scope: OwnScope,
  since: number,
): Promise<(PayoutRow | PayoutPart)[]> {
  const changed = db
    .selectFrom('payouts')
    .selectAll('payouts')
    .where('payouts.id', '>=', firstIdAt(since - PAYOUT_LIFE_MS))
    .where((where) =>
      where.or([
        where('payouts.created_at', '>=', since),
        where('payouts.submitted_at', '>=', since),
        where('payouts.settled_at', '>=', since),
      ]),
    )
  if ('creatorId' in scope) return changed.where('payouts.creator_id', '=', scope.creatorId).execute()
  return changed
    .innerJoin('payout_lines as line', 'line.payout_id', 'payouts.id')
    .innerJoin('users as creator', 'creator.id', 'payouts.creator_id')
    .select([sql<number>`sum(line.amount)`.as('part'), 'creator.display_name as creatorName'])
    .where('line.merchant_id', '=', scope.merchantId)
    .where('line.payout_id', '>=', firstIdAt(since - PAYOUT_LIFE_MS))
    .groupBy(['payouts.id', 'creator.display_name'])
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
    .selectAll('cycle')
    .select('attempt.settled_at as invoiced_at')
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
