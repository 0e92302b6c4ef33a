import { type Selectable, sql } from 'kysely'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'

export type ExportJobRow = Selectable<Schema['export_jobs']>

/** Any number that no other part of the service takes as its advisory lock. */
const EXPORTS_LOCK = 7_041_950

/** Lets starts and claims take turns; on SQLite every transaction does. */
export async function lockExports(tx: Tx, dialect: 'sqlite' | 'postgresql'): Promise<void> {
  if (dialect === 'postgresql') await sql`select pg_advisory_xact_lock(${EXPORTS_LOCK})`.execute(tx)
}

export async function insertJob(tx: Tx, row: ExportJobRow): Promise<void> {
  await tx.insertInto('export_jobs').values(row).execute()
}

export async function countUnfinished(tx: Tx, userId: string): Promise<number> {
  const { unfinished } = await tx
    .selectFrom('export_jobs')
    .select((eb) => eb.fn.countAll<number>().as('unfinished'))
    .where('user_id', '=', userId)
    .where('state', 'in', ['queued', 'running'])
    .executeTakeFirstOrThrow()
  return unfinished
}

export function findJob(db: Queries, userId: string, jobId: string): Promise<ExportJobRow | undefined> {
  return db
    .selectFrom('export_jobs')
    .selectAll()
    .where('id', '=', jobId)
    .where('user_id', '=', userId)
    .executeTakeFirst()
}

/** Newest first; of everybody, for the operator. */
export function findJobs(db: Queries, limit: number): Promise<ExportJobRow[]> {
  return db.selectFrom('export_jobs').selectAll().orderBy('id', 'desc').limit(limit).execute()
}

/**
 * Leases the job that has waited longest, leaving out users of whom another one is under way. `lockExports` comes
 * first: two workers must not both find that nothing is under way.
 */
export async function claimDueJob(
  tx: Tx,
  now: number,
  lease: { token: string; until: number },
): Promise<ExportJobRow | undefined> {
  const busy = tx
    .selectFrom('export_jobs as other')
    .select('other.user_id')
    .where('other.state', '=', 'running')
    .where('other.due_at', '>', now)
  const due = await tx
    .selectFrom('export_jobs')
    .select('id')
    .where('state', 'in', ['queued', 'running'])
    .where('due_at', '<=', now)
    .where('user_id', 'not in', busy)
    .orderBy('due_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  if (!due) return undefined
  return tx
    .updateTable('export_jobs')
    .set((eb) => ({
      state: 'running',
      lease_token: lease.token,
      due_at: lease.until,
      attempts: eb('attempts', '+', 1),
      rows_total: null,
      rows_done: 0,
    }))
    .where('id', '=', due.id)
    .where('state', 'in', ['queued', 'running'])
    .where('due_at', '<=', now)
    .returningAll()
    .executeTakeFirst()
}

/** Changes a job whose lease is still ours; false when it is not. */
export async function changeLeased(
  tx: Tx,
  job: { id: string; token: string },
  change: Partial<ExportJobRow>,
): Promise<boolean> {
  const updated = await tx
    .updateTable('export_jobs')
    .set(change)
    .where('id', '=', job.id)
    .where('state', '=', 'running')
    .where('lease_token', '=', job.token)
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

/** When the next job may be taken up (epoch ms); `null` when none waits. */
export async function nextJobDueAt(db: Queries): Promise<number | null> {
  const row = await db
    .selectFrom('export_jobs')
    .select('due_at')
    .where('state', 'in', ['queued', 'running'])
    .orderBy('due_at')
    .limit(1)
    .executeTakeFirst()
  return row?.due_at ?? null
}

/** Jobs whose file is kept longer than it should be. */
export function expiredFiles(
  db: Queries,
  now: number,
  limit: number,
): Promise<{ id: string; file_key: string | null }[]> {
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

/** Removes jobs that finished before `before` (epoch ms) and have no file any more. */
export async function deleteFinished(tx: Tx, before: number): Promise<void> {
  await tx.deleteFrom('export_jobs').where('finished_at', '<', before).where('file_key', 'is', null).execute()
}
