import type { Queries } from '../platform/database.ts'
import { countRows, type Step, type StepCount, type WalkScope } from '../platform/walk.ts'

/** Payouts of a creator or all; for a merchant those that carry money of own billing cycles. */
export function countPayouts(db: Queries, scope: WalkScope, step: Step): Promise<StepCount> {
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
