import type { Selectable } from 'kysely'
import { countOf } from '../platform/database/bulk-values.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
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

interface ApplicationPage {
  status?: ApplicationStatus | undefined
  /** Only older ones than this id. */
  before: string | null
  limit: number
}

/** Up to `limit` applications in the scope, newest first. */
export function applicationsIn(
  db: Queries,
  { creatorId, merchantId, offerId }: ApplicationScope,
  { status, before, limit }: ApplicationPage,
) {
  let query = db.selectFrom('applications').selectAll()
  if (creatorId !== undefined) query = query.where('creator_id', '=', creatorId)
  if (merchantId !== undefined) query = query.where('merchant_id', '=', merchantId)
  if (offerId !== undefined) query = query.where('offer_id', '=', offerId)
  if (status !== undefined) query = query.where('status', '=', status)
  if (before !== null) query = query.where('id', '<', before)
  return query.orderBy('id', 'desc').limit(limit)
}
