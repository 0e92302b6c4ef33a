import type { Queries } from '../platform/database.ts'
import type { PayoutRow } from './payouts.store.ts'

export type PayoutRecordRow = Pick<PayoutRow, 'id' | 'state' | 'amount' | 'processor_payout_id'>

function payouts(db: Queries) {
  return db.selectFrom('payouts').select(['id', 'state', 'amount', 'processor_payout_id'])
}

/**
 * In the order of their ids, from the one behind `after`: unsettled ones, those settled from `since` on, and `always`;
 * without those that moved after `quietSince` (epoch ms).
 */
export function readPayouts(
  db: Queries,
  filter: { since: number; quietSince: number; always: readonly string[] },
  after: string,
  limit: number,
): Promise<PayoutRecordRow[]> {
  const { since, quietSince, always } = filter
  return payouts(db)
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

export function readPayout(db: Queries, id: string): Promise<PayoutRecordRow | undefined> {
  return payouts(db).where('id', '=', id).executeTakeFirst()
}
