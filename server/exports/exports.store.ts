import { type Selectable, sql } from 'kysely'
import { countOf } from '../platform/database/bulk-values.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { LeaseQueue } from '../platform/queue/lease-queue.ts'

export type ExportJobRow = Selectable<Schema['export_jobs']>

/** The longest wait for the next attempt, ms. */
export const MAX_DELAY_MS = 600_000

/** Exports to be written, one at a time for each user. The lease of a running job ends at `due_at`. */
export const EXPORT_QUEUE = new LeaseQueue<ExportJobRow>({
  name: 'export_jobs',
  isOpen: sql`state in ('queued', 'running')`,
  dueAt: 'due_at',
  leaseUntil: 'due_at',
  attempts: 'attempts',
  lane: { column: 'user_id', type: 'uuid' },
  released: { state: 'queued' },
  maxDelayMs: MAX_DELAY_MS,
})

export function countUnfinished(tx: Tx, userId: string): Promise<number> {
  return countOf(
    tx.selectFrom('export_jobs').where('user_id', '=', userId).where('state', 'in', ['queued', 'running']),
  )
}

export function findJob(db: Queries, userId: string, jobId: string): Promise<ExportJobRow | undefined> {
  return db
    .selectFrom('export_jobs')
    .selectAll()
    .where('id', '=', jobId)
    .where('user_id', '=', userId)
    .executeTakeFirst()
}

/** The jobs of a user before the id `before`, newest first; without a user, those of all, for the operator. */
export function findJobs(
  db: Queries,
  userId: string | null,
  { before, limit }: { before: string | null; limit: number },
): Promise<ExportJobRow[]> {
  return db
    .selectFrom('export_jobs')
    .selectAll()
    .$if(userId !== null, (query) => query.where('user_id', '=', userId ?? ''))
    .$if(before !== null, (query) => query.where('id', '<', before ?? ''))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Jobs with an expired file. */
export function expiredFiles(db: Queries, now: number, limit: number) {
  return db
    .selectFrom('export_jobs')
    .select(['id', 'file_key'])
    .where('file_key', 'is not', null)
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .limit(limit)
    .execute()
}

export async function forgetFile(tx: Tx, jobId: string): Promise<void> {
  await tx.updateTable('export_jobs').set({ file_key: null }).where('id', '=', jobId).execute()
}

/** Removes jobs that finished before `before` (epoch ms) and have no file. */
export async function deleteFinished(tx: Tx, before: number): Promise<void> {
  await tx.deleteFrom('export_jobs').where('finished_at', '<', before).where('file_key', 'is', null).execute()
}
