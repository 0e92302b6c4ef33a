import { defineEntity } from '@mikro-orm/core'
import { type FlagSeverity, flagSeverity, flagStatus } from '../../shared/schemas/admin.ts'
import { enumText, epochMs, id, json, oneOf, rowDigest, text } from '../platform/database/columns.ts'

/** Something for an operator to review. At most one flag of a kind and subject is open. */
export const Flag = defineEntity({
  name: 'Flag',
  tableName: 'flags',
  properties: {
    id: id().primary(),
    kind: text(),
    severity: enumText<FlagSeverity>(),
    subject_type: text(),
    subject_id: text(),
    summary: text(),
    evidence: json(),
    status: enumText<'open' | 'resolved'>(),
    note: text().strictNullable(),
    created_at: epochMs(),
    resolved_at: epochMs().strictNullable(),
    row_digest: rowDigest(),
  },
  checks: [oneOf('flags', 'severity', flagSeverity.options), oneOf('flags', 'status', flagStatus.options)],
  uniques: [
    {
      name: 'flags_one_open',
      properties: ['kind', 'subject_type', 'subject_id'],
      where: "status = 'open'",
    },
  ],
  indexes: [
    { name: 'flags_status', properties: ['status', 'id'] },
    { name: 'flags_subject', properties: ['subject_id', 'kind'] },
  ],
})

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
  indexes: [
    { name: 'audit_entries_subject', properties: ['subject_id', 'id'] },
    { name: 'audit_entries_actor', properties: ['actor', 'id'] },
  ],
})
