import { defineEntity } from '@mikro-orm/core'
import { epochMs, id, json, rowDigest, text } from '../platform/database/columns.ts'

/** An action of an operator or admin on money or a person. Rows are only added. */
export const AuditEntry = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit_entries',
  properties: {
    id: id().primary(),
    /** A user's id, or `operator` for the command line. */
    actor: text(),
    action: text(),
    subject_type: text(),
    subject_id: text(),
    reason: text().strictNullable(),
    before: json().strictNullable(),
    after: json().strictNullable(),
    created_at: epochMs(),
    row_digest: rowDigest(),
  },
  indexes: [{ name: 'audit_entries_subject', properties: ['subject_id', 'id'] }],
})
