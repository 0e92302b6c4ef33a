import type { Readable } from 'node:stream'
import type { ExportFormat, ExportResource } from '../../shared/schemas/jobs.ts'
import { recordAudit } from '../moderation/audit.service.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import { advisoryLock, afterCommit, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { mayExport } from './export-columns.rule.ts'
import type { ExportOwner } from './export-source.service.ts'
import { countUnfinished, type ExportJobRow, findJob, findJobs, insertJob } from './exports.store.ts'
import { exportStorage } from './open-storage.ts'

export type { ExportJobRow } from './exports.store.ts'

/** How many exports of one user may wait or run. They run one after the other. */
export const MAX_UNFINISHED = 5

export interface ExportRequest {
  resource: ExportResource
  format: ExportFormat
  /** The period on created_at, epoch ms: inclusive, exclusive. */
  from: number | null
  to: number | null
}

/**
 * Puts an export in the queue and answers at once; an admin's, which holds everybody's rows, gets an audit row. Refuses with `forbidden` (a resource that is none of this role's business),
 * `validation_failed` (a period that ends before it begins) and `conflict` (too many unfinished ones).
 */
export async function startExport(
  platform: Platform,
  owner: ExportOwner,
  request: ExportRequest,
): Promise<ExportJobRow> {
  if (!mayExport(owner.role, request.resource)) {
    throw new Refusal('forbidden', 'Billing cycles are for merchants.')
  }
  if (request.from !== null && request.to !== null && request.from >= request.to) {
    throw invalidFields([{ path: 'to', message: 'must be later than from' }])
  }
  const now = platform.clock.now()
  const job: ExportJobRow = {
    id: platform.ids.next(),
    user_id: owner.userId,
    role: owner.role,
    resource: request.resource,
    format: request.format,
    from_at: request.from,
    to_at: request.to,
    state: 'queued',
    due_at: now,
    lease_token: null,
    attempts: 0,
    rows_total: null,
    rows_done: 0,
    error: null,
    file_key: null,
    created_at: now,
    finished_at: null,
    expires_at: null,
  }
  await platform.database.transaction(async (tx) => {
    await advisoryLock(tx, `exports of user ${owner.userId}`)
    if ((await countUnfinished(tx, owner.userId)) >= MAX_UNFINISHED) {
      throw new Refusal(
        'conflict',
        `${MAX_UNFINISHED} of your exports are not finished yet: wait for one of them.`,
      )
    }
    await insertJob(tx, job)
    if (owner.role === 'admin') await noteExport(platform, tx, job)
    afterCommit(tx, () => platform.signals.send('exports'))
  })
  return job
}

function noteExport(platform: Platform, tx: Tx, job: ExportJobRow): Promise<void> {
  return recordAudit(platform, tx, {
    actor: job.user_id,
    action: 'export.start',
    subjectType: 'job',
    subjectId: job.id,
    reason: null,
    before: null,
    after: { resource: job.resource, format: job.format, from: job.from_at, to: job.to_at },
  })
}

/** An own job. Refuses with `not_found`, whoever else's it is. */
export async function getExport(platform: Platform, userId: string, jobId: string): Promise<ExportJobRow> {
  const job = await findJob(platform.database.reader, userId, jobId)
  if (!job) throw new Refusal('not_found', 'There is no such job.')
  return job
}

export interface ExportFile {
  content: Readable
  bytes: number
  format: ExportFormat
  /** What a browser may call it. */
  name: string
}

/**
 * The file of an own job, to be read to its end or destroyed; `expired` once its time is over. Refuses with
 * `not_found` while there is none.
 */
export async function openExportFile(
  platform: Platform,
  userId: string,
  jobId: string,
): Promise<ExportFile | 'expired'> {
  const job = await getExport(platform, userId, jobId)
  if (hasExpired(platform, job)) return 'expired'
  if (job.file_key === null)
    throw new Refusal('not_found', 'The file is not there: look at the job for its state.')
  const storage = await exportStorage(platform.config)
  const file = await storage.read(job.file_key)
  if (!file) {
    throw new Refusal('not_found', 'The file is not there any more: start the export again.', {
      internalDetail: `the storage has lost ${job.file_key}`,
    })
  }
  const day = new Date(job.created_at).toISOString().slice(0, 10)
  return { ...file, format: job.format, name: `${job.resource}-${day}-${job.id.slice(-6)}.${job.format}` }
}

/** Whether a job had a file that is kept no longer. */
export function hasExpired(platform: Platform, job: ExportJobRow): boolean {
  return job.expires_at !== null && platform.clock.now() >= job.expires_at
}

/** Everybody's newest jobs, for the operator. */
export function listExports(platform: Platform, limit: number): Promise<ExportJobRow[]> {
  return findJobs(platform.database.reader, limit)
}
