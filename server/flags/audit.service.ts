import type { Selectable } from 'kysely'
import { bulkInsert } from '../platform/database/bulk-values.ts'
import type { Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { Platform } from '../platform/platform.ts'

/** The actor of everything that the command line does. */
export const OPERATOR = 'operator'

export interface AuditRecord {
  /** A user's id, or `OPERATOR`. */
  actor: string
  /** Verb and object: `user.suspend`, `billing.credit`. */
  action: string
  subjectType: string
  subjectId: string
  reason: string | null
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
}

type AuditRow = Selectable<Schema['audit_entries']>

const newEntries = bulkInsert<AuditRow>('audit_entries', {
  id: 'uuid',
  actor: 'text',
  action: 'text',
  subject_type: 'text',
  subject_id: 'text',
  reason: 'text',
  before: 'text',
  after: 'text',
  created_at: 'bigint',
})

/** Records an action on money or a person, in the transaction of that action. */
export async function recordAudit(platform: Platform, tx: Tx, record: AuditRecord): Promise<void> {
  await tx.insertInto('audit_entries').values(rowOf(platform, record)).execute()
}

/** As `recordAudit`, for many records. No reason may contain a NUL. */
export async function recordAudits(
  platform: Platform,
  tx: Tx,
  records: readonly AuditRecord[],
): Promise<void> {
  if (records.length === 0) return
  await newEntries(
    tx,
    records.map((record) => rowOf(platform, record)),
  )
}

function rowOf(platform: Platform, record: AuditRecord): AuditRow {
  return {
    id: platform.ids.next(),
    actor: record.actor,
    action: record.action,
    subject_type: record.subjectType,
    subject_id: record.subjectId,
    reason: record.reason,
    before: record.before && JSON.stringify(record.before),
    after: record.after && JSON.stringify(record.after),
    created_at: platform.clock.now(),
  }
}
