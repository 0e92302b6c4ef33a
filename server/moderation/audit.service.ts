import type { Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'

/** The actor of everything that is done from the command line. */
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

/** Notes who did what to money or a person, in the transaction that did it. */
export async function recordAudit(platform: Platform, tx: Tx, record: AuditRecord): Promise<void> {
  await tx
    .insertInto('audit_entries')
    .values({
      id: platform.ids.next(),
      actor: record.actor,
      action: record.action,
      subject_type: record.subjectType,
      subject_id: record.subjectId,
      reason: record.reason,
      before: record.before && JSON.stringify(record.before),
      after: record.after && JSON.stringify(record.after),
      created_at: platform.clock.now(),
    })
    .execute()
}
