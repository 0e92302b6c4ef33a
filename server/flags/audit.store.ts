import type { Selectable } from 'kysely'
import { newestFirst } from '../platform/database/bulk-values.ts'
import type { Queries } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { firstIdAt, ID_SLACK_MS } from '../platform/ids.ts'

export type AuditRow = Selectable<Schema['audit_entries']>

export interface AuditFilter {
  /** A user's id, or `OPERATOR`. */
  actor?: string | undefined
  subjectId?: string | undefined
  /** Only entries of this moment and later, epoch ms. */
  since?: number | null | undefined
}

export function findAuditEntries(
  db: Queries,
  { actor, subjectId, since = null }: AuditFilter,
  page: { before: string | null; limit: number },
): Promise<AuditRow[]> {
  let query = db.selectFrom('audit_entries').selectAll()
  if (actor !== undefined) query = query.where('actor', '=', actor)
  if (subjectId !== undefined) query = query.where('subject_id', '=', subjectId)
  if (since !== null) {
    query = query.where('created_at', '>=', since).where('id', '>=', firstIdAt(since - ID_SLACK_MS))
  }
  return newestFirst(query, page)
}
