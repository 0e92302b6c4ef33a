import { jsonOrNull } from '../../shared/json.ts'
import { type PageRequest, pageById } from '../platform/api/page.ts'
import { isoTime } from '../platform/clock.ts'
import type { Tx } from '../platform/database/database.ts'
import { insertRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { type AuditFilter, type AuditRow, findAuditEntries } from './audit.store.ts'

export type { AuditRow } from './audit.store.ts'

/** The actor of everything that the command line does. */
export const OPERATOR = 'operator'

export interface AuditRecord {
  /** A user's id, or `OPERATOR`. */
  actor: string
  /** Verb and object: `user.suspend`, `billing.credit`. */
  action: string
  subjectType: string
  subjectId: string
  reason?: string | null
  before?: Record<string, unknown> | null | undefined
  after?: Record<string, unknown> | null
}

/** Records an action on money or a person, in the transaction of that action. */
export async function recordAudit(platform: Platform, tx: Tx, record: AuditRecord): Promise<void> {
  await recordAudits(platform, tx, [record])
}

/** As `recordAudit`, for many records. No reason may contain a NUL. */
export async function recordAudits(
  platform: Platform,
  tx: Tx,
  records: readonly AuditRecord[],
): Promise<void> {
  const rows = records.map((record) => ({
    id: platform.ids.next(),
    actor: record.actor,
    action: record.action,
    subject_type: record.subjectType,
    subject_id: record.subjectId,
    reason: record.reason?.toWellFormed() ?? null,
    before: record.before ? JSON.stringify(record.before) : null,
    after: record.after ? JSON.stringify(record.after) : null,
    created_at: platform.clock.now(),
  }))
  await insertRows(tx, 'audit_entries', rows)
}

/** The audit trail, newest first, for the operator. Refuses another list's cursor with `validation_failed`. */
export function listAudit({ database }: Pick<Platform, 'database'>, query: AuditFilter & PageRequest) {
  return pageById(query, (page) => findAuditEntries(database.reader, query, page))
}

/** An entry of the audit trail as the operator sees it. */
export function wireAudit({ created_at, before, after, row_digest: _, ...entry }: AuditRow) {
  return {
    ...entry,
    before: before && jsonOrNull(before),
    after: after && jsonOrNull(after),
    created_at: isoTime(created_at),
  }
}
