import type { Job } from '../../shared/schemas/jobs.ts'
import { isoTime } from '../platform/clock.ts'
import type { Platform } from '../platform/platform.ts'
import type { ExportJobRow } from './exports.service.ts'

/** A job as the API returns it. */
export function wireJob(platform: Platform, job: ExportJobRow): Job {
  const downloadable =
    job.file_key !== null && job.expires_at !== null && platform.clock.now() < job.expires_at
  return {
    id: job.id,
    kind: 'export',
    state: job.state,
    progress: progressOf(job),
    rows: job.rows_done,
    error: job.error,
    created_at: isoTime(job.created_at),
    finished_at: job.finished_at === null ? null : isoTime(job.finished_at),
    expires_at: job.expires_at === null ? null : isoTime(job.expires_at),
    download_url: downloadable ? `${platform.publicBaseUrl}/jobs/${job.id}/file` : null,
  }
}

/** At most 0.99 until the file is stored: rows that were added since the count can exceed it. */
function progressOf(job: ExportJobRow): number {
  if (job.state === 'succeeded') return 1
  if (!job.rows_total) return 0
  return Math.min(0.99, Math.floor((job.rows_done / job.rows_total) * 100) / 100)
}
