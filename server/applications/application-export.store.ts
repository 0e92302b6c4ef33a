import type { Queries } from '../platform/database.ts'
import { countRows, type Step, type StepCount, type WalkScope } from '../platform/walk.ts'
import type { ApplicationRow } from './applications.store.ts'

function stepOf(db: Queries, scope: WalkScope, step: Step) {
  let query = db.selectFrom('applications').where('id', '<', step.below)
  if (scope !== 'all') {
    query =
      'merchantId' in scope
        ? query.where('merchant_id', '=', scope.merchantId)
        : query.where('creator_id', '=', scope.creatorId)
  }
  return query.orderBy('id', 'desc').limit(step.size)
}

export function readApplications(db: Queries, scope: WalkScope, step: Step): Promise<ApplicationRow[]> {
  return stepOf(db, scope, step).selectAll().execute()
}

export function countApplications(db: Queries, scope: WalkScope, step: Step): Promise<StepCount> {
  return countRows(db, step, stepOf(db, scope, step).select(['id', 'created_at']))
}
