import { defineEntity } from '@mikro-orm/core'
import type { Role } from '../../shared/schemas/common.ts'
import {
  EXPORT_RESOURCES,
  type ExportFormat,
  type ExportResource,
  type JobState,
} from '../../shared/schemas/jobs.ts'
import { count, enumText, epochMs, id, oneOf, refersTo, text } from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'

/** A file that a user requested, and its progress. */
export const ExportJob = defineEntity({
  name: 'ExportJob',
  tableName: 'export_jobs',
  properties: {
    id: id().primary(),
    user_id: () => refersTo(User, 'user_id'),
    /** The starter's role, which decides what the file shows. */
    role: enumText<Role>(),
    resource: enumText<ExportResource>(),
    format: enumText<ExportFormat>(),
    /** 1 for CSV that spreadsheets show right; otherwise `null`. */
    excel: count().strictNullable(),
    /** Of sales: only those of this invoice. */
    billing_cycle_id: id().strictNullable(),
    /** The period of created_at: inclusive, exclusive. */
    from_at: epochMs().strictNullable(),
    to_at: epochMs().strictNullable(),
    /** Keyed digest of what the row causes. */
    row_digest: text(),
    state: enumText<JobState>(),
    /** When it may be claimed: of a running job, when its lease ends. */
    due_at: epochMs(),
    lease_token: text().strictNullable(),
    attempts: count(),
    /** Counted when an attempt starts. */
    rows_total: count().strictNullable(),
    rows_done: count(),
    /** The message for the starter; the log has the cause. */
    error: text().strictNullable(),
    /** The file's key in the storage; `null` without a file. */
    file_key: text().strictNullable(),
    created_at: epochMs(),
    finished_at: epochMs().strictNullable(),
    expires_at: epochMs().strictNullable(),
  },
  checks: [
    oneOf('export_jobs', 'role', ['merchant', 'creator', 'admin']),
    oneOf('export_jobs', 'resource', EXPORT_RESOURCES),
    oneOf('export_jobs', 'format', ['csv', 'ndjson']),
    oneOf('export_jobs', 'state', ['queued', 'running', 'succeeded', 'failed']),
    { name: 'export_jobs_lease_check', expression: "(state = 'running') = (lease_token is not null)" },
    { name: 'export_jobs_expiry_check', expression: "(state = 'succeeded') = (expires_at is not null)" },
  ],
  indexes: [
    { name: 'export_jobs_user', properties: ['user_id', 'id'] },
    { name: 'export_jobs_due', properties: ['due_at', 'id'], where: "state in ('queued', 'running')" },
    { name: 'export_jobs_files', properties: ['expires_at'], where: 'file_key is not null' },
    { name: 'export_jobs_finished', properties: ['finished_at'] },
  ],
})
