import type { Selectable } from 'kysely'
import { flagForgedRows } from '../flags/forged-rows.service.ts'
import { IntegrityError, UnknownKeyError } from '../platform/crypto/vault.ts'
import { advisoryLock, type Tx } from '../platform/database/database.ts'
import { requireAuthentic, rowProblem, withDigest } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import { readWatermark, setWatermark } from '../platform/database/watermarks.ts'
import type { Platform } from '../platform/platform.ts'

export type ScheduleRunRow = Selectable<Schema['schedule_runs']>

/** Records that a run starts. With `since` (epoch ms) returns false, and records nothing, if one has started since then. */
export async function noteStarted(
  platform: Platform,
  name: string,
  since = Number.MAX_SAFE_INTEGER,
): Promise<boolean> {
  const { clock, database, keys } = platform
  return database.transaction(async (tx) => {
    const last = await lockRun(tx, name)
    if (last && (await isAuthentic(platform, tx, last)) && last.started_at >= since) return false
    const run = { name, started_at: clock.now(), finished_at: null, outcome: null }
    const row = withDigest(keys, 'schedule_runs', run)
    await tx
      .insertInto('schedule_runs')
      .values(row)
      .onConflict((conflict) => conflict.column('name').doUpdateSet(row))
      .execute()
    return true
  })
}

/** The last run of a job; no other process notes one until the transaction ends. */
async function lockRun(tx: Tx, name: string): Promise<ScheduleRunRow | undefined> {
  await advisoryLock(tx, `schedule run ${name}`)
  return tx.selectFrom('schedule_runs').selectAll().where('name', '=', name).executeTakeFirst()
}

/** Whether the scheduler wrote this run. A run that something else wrote keeps no job from running, and is flagged. */
async function isAuthentic(platform: Platform, tx: Tx, run: ScheduleRunRow): Promise<boolean> {
  try {
    requireAuthentic(platform.keys, 'schedule_runs', run)
    return true
  } catch (error) {
    if (error instanceof UnknownKeyError) return false
    if (!(error instanceof IntegrityError)) throw error
    await flagForgedRows(platform, tx, 'schedule_runs', [{ id: run.name, problem: error.message }])
    return false
  }
}

/** Changes the last run of a job: one that ends, unless it has ended or something else than the scheduler wrote it. */
async function changeRun(
  { database, keys }: Platform,
  name: string,
  change: Partial<ScheduleRunRow>,
): Promise<void> {
  await database.transaction(async (tx) => {
    const run = await lockRun(tx, name)
    if (!run || run.finished_at !== null || rowProblem(keys, 'schedule_runs', run) !== null) return
    await tx
      .updateTable('schedule_runs')
      .set(withDigest(keys, 'schedule_runs', { ...run, ...change }))
      .where('name', '=', name)
      .execute()
  })
}

export function noteFinished(platform: Platform, name: string, outcome: object): Promise<void> {
  return changeRun(platform, name, { finished_at: platform.clock.now(), outcome: JSON.stringify(outcome) })
}

/** Records why a run failed. It stays unfinished: the scheduler repeats it. */
export function noteFailed(platform: Platform, name: string, error: string): Promise<void> {
  return changeRun(platform, name, { outcome: JSON.stringify({ error }) })
}

/** The error of a run that failed and is being repeated; `null` for any other. */
export function failureOf(run: Pick<ScheduleRunRow, 'finished_at' | 'outcome'>): string | null {
  return run.finished_at === null ? (JSON.parse(run.outcome ?? '{}').error ?? null) : null
}

/** When a job last started, epoch ms; `null` when it never did, or something else than the scheduler says so. */
export async function lastStart({ database, keys }: Platform, name: string): Promise<number | null> {
  const run = await database.reader
    .selectFrom('schedule_runs')
    .selectAll()
    .where('name', '=', name)
    .executeTakeFirst()
  return run && rowProblem(keys, 'schedule_runs', run) === null ? run.started_at : null
}

/** The last run of each scheduled job that has ever run, by name. */
export function lastRuns({ database }: Platform): Promise<ScheduleRunRow[]> {
  return database.reader.selectFrom('schedule_runs').selectAll().orderBy('name').execute()
}

/** A value that a job saved for its next run; `null` without one. */
export async function readState<State>({ database }: Platform, name: string): Promise<State | null> {
  const value = await readWatermark(database.reader, name)
  return value ? JSON.parse(value) : null
}

export async function saveState(platform: Platform, name: string, state: object | null): Promise<void> {
  const value = state === null ? '' : JSON.stringify(state)
  await platform.database.transaction((tx) => setWatermark(tx, name, value))
}
