import { join } from 'node:path'
import type { Role } from '../../shared/schemas/common.ts'
import type { ExportFormat, ExportResource, Job } from '../../shared/schemas/jobs.ts'
import { getCycle } from '../billing/billing.service.ts'
import { recordAudit } from '../flags/audit.service.ts'
import { flagForgedRows } from '../flags/forged-rows.service.ts'
import { invalidFields, Refusal } from '../platform/api/refusal.ts'
import { isoTime } from '../platform/clock.ts'
import { type Config, dataFolder } from '../platform/config.ts'
import { advisoryLock, afterCommit } from '../platform/database/database.ts'
import { rowProblem, withDigest } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { openStorage } from '../platform/storage/open-storage.ts'
import type { FileStorage } from '../platform/storage/storage.ts'
import { liveHosts } from '../processes/processes.service.ts'
import { mayExport } from './export-columns.rule.ts'
import { countUnfinished, type ExportJobRow, findJob } from './exports.store.ts'

export { type ExportJobRow, findJobs as listExports } from './exports.store.ts'

/** How many exports of one user may wait or run. One runs at a time. */
const MAX_UNFINISHED = 5

interface ExportRequest {
  resource: ExportResource
  format: ExportFormat
  /** CSV for spreadsheets. */
  excel?: boolean
  /** Of sales: only those of this billing cycle of the owner. */
  billingCycleId?: string | undefined
  /** The period of created_at, epoch ms: inclusive, exclusive. */
  from: number | null
  to: number | null
}

/**
 * Queues an export. An admin's export, which contains all users' rows, gets an audit row. Refuses with `forbidden` (the role has no such
 * rows), `validation_failed` (the period ends before it starts), `not_found` (a billing cycle that is not the merchant's own) and `conflict`
 * (too many unfinished exports).
 */
export async function startExport(
  platform: Platform,
  owner: { userId: string; role: Role },
  request: ExportRequest,
): Promise<ExportJobRow> {
  if (!mayExport(owner.role, request.resource)) {
    throw new Refusal('forbidden', 'Billing cycles are for merchants.')
  }
  if (request.from !== null && request.to !== null && request.from >= request.to) {
    throw invalidFields([{ path: 'to', message: 'must be later than from' }])
  }
  if (request.billingCycleId !== undefined) await refuseForeignCycle(platform, owner, request.billingCycleId)
  await refuseScatteredFiles(platform)
  const now = platform.clock.now()
  const job: ExportJobRow = withDigest(platform.keys, 'export_jobs', {
    id: platform.ids.next(),
    user_id: owner.userId,
    role: owner.role,
    resource: request.resource,
    format: request.format,
    excel: request.excel ? 1 : null,
    billing_cycle_id: request.billingCycleId ?? null,
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
  })
  await platform.database.transaction(async (tx) => {
    await advisoryLock(tx, `exports of user ${owner.userId}`)
    if ((await countUnfinished(tx, owner.userId)) >= MAX_UNFINISHED) {
      throw new Refusal(
        'conflict',
        `${MAX_UNFINISHED} of your exports are not finished yet. Wait for one of them.`,
      )
    }
    await tx.insertInto('export_jobs').values(job).execute()
    if (owner.role === 'admin') {
      await recordAudit(platform, tx, {
        actor: job.user_id,
        action: 'export.start',
        subjectType: 'job',
        subjectId: job.id,
        after: { resource: job.resource, format: job.format, from: job.from_at, to: job.to_at },
      })
    }
    afterCommit(tx, () => platform.topics.send('exports'))
  })
  return job
}

/** Refuses with `not_found` a billing cycle that is not the merchant's own. Admins may name any. */
async function refuseForeignCycle(
  { database }: Platform,
  owner: { userId: string; role: Role },
  cycleId: string,
): Promise<void> {
  const cycle = await getCycle(database.reader, cycleId)
  if (!cycle || (owner.role !== 'admin' && cycle.merchant_id !== owner.userId))
    throw new Refusal('not_found', 'Billing cycle not found.')
}

/** With local files on several hosts, a download finds its file only at the host that wrote it. */
async function refuseScatteredFiles({ config, database }: Platform): Promise<void> {
  if (config.EXPORT_STORAGE !== 'local' || (await liveHosts(database.reader)).length < 2) return
  throw new Refusal('unavailable', 'Exports are off until the operator sets EXPORT_STORAGE=s3.', {
    internalDetail: 'EXPORT_STORAGE=local, and the service runs on several hosts',
  })
}

/** A job of this user. Refuses with `not_found`, also for a job of another user. */
export async function getExport(platform: Platform, userId: string, jobId: string): Promise<ExportJobRow> {
  const job = await findJob(platform.database.reader, userId, jobId)
  if (!job) throw new Refusal('not_found', 'Job not found.')
  return job
}

/**
 * The file of a job of this user, to be read to its end or destroyed, with the name for its download; `expired` after its lifetime. Refuses with `not_found` while there is
 * none, and with `unavailable` where another host may have it.
 */
export async function openExportFile(platform: Platform, userId: string, jobId: string) {
  const job = await getExport(platform, userId, jobId)
  if (hasExpired(platform, job)) return 'expired' as const
  if (job.file_key === null) throw new Refusal('not_found', 'This job has no file yet. Check its state.')
  await refuseForged(platform, job, job.file_key)
  const storage = await exportStorage(platform.config)
  const file = await storage.read(job.file_key)
  if (!file) {
    await refuseScatteredFiles(platform)
    throw new Refusal('not_found', 'The file was lost. Start the export again.', {
      internalDetail: `the storage has lost ${job.file_key}`,
    })
  }
  const day = new Date(job.created_at).toISOString().slice(0, 10)
  return { ...file, format: job.format, name: `${job.resource}-${day}-${job.id.slice(-6)}.${job.format}` }
}

/** Refuses with `not_found` a job that its user did not start, or with the file of another one. */
async function refuseForged(platform: Platform, job: ExportJobRow, fileKey: string): Promise<void> {
  const isOwn = fileKey.startsWith(`${job.id}-`)
  const problem =
    rowProblem(platform.keys, 'export_jobs', job) ?? (isOwn ? null : "it names another job's file")
  if (problem === null) return
  await platform.database.transaction((tx) =>
    flagForgedRows(platform, tx, 'export_jobs', [{ id: job.id, problem }]),
  )
  throw new Refusal('not_found', 'This job has no file.', { internalDetail: problem })
}

/** Whether the lifetime of the job's file is over. */
function hasExpired(platform: Platform, job: ExportJobRow): boolean {
  return job.expires_at !== null && platform.clock.now() >= job.expires_at
}

/** A job as the API returns it. */
export function wireJob(platform: Platform, job: ExportJobRow): Job {
  const downloadable = job.file_key !== null && job.expires_at !== null && !hasExpired(platform, job)
  return {
    id: job.id,
    kind: 'export',
    resource: job.resource,
    format: job.format,
    state: job.state,
    progress: progressOf(job),
    rows: job.rows_done,
    error: job.error,
    created_at: isoTime(job.created_at),
    finished_at: isoTime(job.finished_at),
    expires_at: isoTime(job.expires_at),
    download_url: downloadable ? `${platform.publicBaseUrl}/jobs/${job.id}/file` : null,
  }
}

/** At most 0.99 until the file is stored: rows that were added since the count can exceed it. */
function progressOf(job: ExportJobRow): number {
  if (job.state === 'succeeded') return 1
  if (!job.rows_total) return 0
  return Math.min(0.99, Math.floor((job.rows_done / job.rows_total) * 100) / 100)
}

const opened = new WeakMap<Config, Promise<FileStorage>>()

/** The storage that the settings name, opened once for each set of settings. */
export function exportStorage(config: Config): Promise<FileStorage> {
  const place =
    config.EXPORT_STORAGE === 's3' ? `s3://${config.S3_BUCKET}/exports` : join(dataFolder(config), 'exports')
  const storage = opened.get(config) ?? openStorage(config, place)
  opened.set(config, storage)
  return storage
}
