import type { Queries } from '../platform/database.ts'
import { countRows, type Step, type StepCount } from '../platform/walk.ts'

/** Cycles of one merchant, or with `null` of all. */
export function countCycles(db: Queries, merchantId: string | null, step: Step): Promise<StepCount> {
  let query = db
    .selectFrom('billing_cycles')
    .select(['id', 'created_at'])
    .where('id', '<', step.below)
    .orderBy('id', 'desc')
    .limit(step.size)
  if (merchantId !== null) query = query.where('merchant_id', '=', merchantId)
  return countRows(db, step, query)
}
