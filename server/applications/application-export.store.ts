import type { Queries } from '../platform/database/database.ts'
import { countRows, type ScanCount, type ScanPage, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { ApplicationRow } from './applications.store.ts'

function stepOf(db: Queries, scope: ScanScope, step: ScanPage) {
  let query = db.selectFrom('applications').where('id', '<', step.below)
  if (scope !== 'all') {
    query =
      'merchantId' in scope
        ? query.where('merchant_id', '=', scope.merchantId)
        : query.where('creator_id', '=', scope.creatorId)
  }
  return query.orderBy('id', 'desc').limit(step.size)
}

export function readApplications(db: Queries, scope: ScanScope, step: ScanPage): Promise<ApplicationRow[]> {
  return stepOf(db, scope, step).selectAll().execute()
}

export function countApplications(db: Queries, scope: ScanScope, step: ScanPage): Promise<ScanCount> {
  return countRows(db, step, stepOf(db, scope, step).select(['id', 'created_at']))
}
