import { defineEntity } from '@mikro-orm/core'
import type { Role } from '../../shared/schemas/common.ts'
import type { ExportFormat, ExportResource, JobState } from '../../shared/schemas/jobs.ts'
import { count, id, moment, oneOf, text, word } from '../platform/database/columns.ts'
import { refersTo } from '../platform/database/relations.ts'
import { User } from '../users/user.entity.ts'

/** A file that a user asked for, and how far it is. */
export const ExportJob = defineEntity({
  name: 'ExportJob',
  tableName: 'export_jobs',
  properties: {
    id: id().primary(),
    user_id: () => refersTo(User, 'user_id'),
    /** As which its starter sees the rows. */
    role: word<Role>(),
    resource: word<ExportResource>(),
    format: word<ExportFormat>(),
    /** The period on created_at: inclusive, exclusive. */
    from_at: moment().strictNullable(),
    to_at: moment().strictNullable(),
    state: word<JobState>(),
    /** When it may be taken up: a queued one from then on, a running one again once its lease is over. */
    due_at: moment(),
    lease_token: text().strictNullable(),
    attempts: count(),
    /** Counted at the start of an attempt. */
    rows_total: count().strictNullable(),
    rows_done: count(),
    /** What the starter is told; the log knows more. */
    error: text().strictNullable(),
    /** Where the storage has the file; `null` again once it is removed. */
    file_key: text().strictNullable(),
    created_at: moment(),
    finished_at: moment().strictNullable(),
    expires_at: moment().strictNullable(),
  },
  checks: [
    oneOf('export_jobs', 'role', ['merchant', 'creator', 'admin']),
    oneOf('export_jobs', 'resource', ['sales', 'payouts', 'clicks', 'billing_cycles', 'applications']),
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
