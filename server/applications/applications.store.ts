import type { Selectable } from 'kysely'
import { countOf } from '../platform/database/bulk-values.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { countRows, type ScanCount, type ScanPage, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { ApplicationStatus } from './application.rule.ts'

export type ApplicationRow = Selectable<Schema['applications']>

/** Whose applications a list shows; all without any. */
export interface ApplicationScope {
  creatorId?: string | undefined
  merchantId?: string | undefined
  offerId?: string | undefined
}

/** The number of a creator's applications since `since` (epoch ms), in any status. */
export function countApplicationsSince(tx: Tx, creatorId: string, since: number): Promise<number> {
  return countOf(
    tx.selectFrom('applications').where('creator_id', '=', creatorId).where('created_at', '>', since),
  )
}

/** The statuses of a creator's applications to an offer. */
export async function statusesOf(tx: Tx, offerId: string, creatorId: string): Promise<ApplicationStatus[]> {
  const rows = await tx
    .selectFrom('applications')
    .select('status')
    .where('offer_id', '=', offerId)
    .where('creator_id', '=', creatorId)
    .execute()
  return rows.map((row) => row.status)
}

/** Up to `limit` applications in the scope, newest first, after the id `after`. */
export function listApplications(
  db: Queries,
  { creatorId, merchantId, offerId }: ApplicationScope,
  status: ApplicationStatus | undefined,
  after: string | null,
  limit: number,
): Promise<ApplicationRow[]> {
  let query = db.selectFrom('applications').selectAll()
  if (creatorId !== undefined) query = query.where('creator_id', '=', creatorId)
  if (merchantId !== undefined) query = query.where('merchant_id', '=', merchantId)
  if (offerId !== undefined) query = query.where('offer_id', '=', offerId)
  if (status !== undefined) query = query.where('status', '=', status)
  if (after !== null) query = query.where('id', '<', after)
  return query.orderBy('id', 'desc').limit(limit).execute()
}

function scanQuery(db: Queries, scope: ScanScope, page: ScanPage) {
  let query = db.selectFrom('applications').where('id', '<', page.below)
  if (scope !== 'all') {
    query =
      'merchantId' in scope
        ? query.where('merchant_id', '=', scope.merchantId)
        : query.where('creator_id', '=', scope.creatorId)
  }
  return query.orderBy('id', 'desc').limit(page.size)
}

export function scannedApplications(
  db: Queries,
  scope: ScanScope,
  page: ScanPage,
): Promise<ApplicationRow[]> {
  return scanQuery(db, scope, page).selectAll().execute()
}

export function countScannedApplications(db: Queries, scope: ScanScope, page: ScanPage): Promise<ScanCount> {
  return countRows(db, page, scanQuery(db, scope, page).select(['id', 'created_at']))
}
