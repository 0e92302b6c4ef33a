import type { Selectable } from 'kysely'
import type { Schema } from '../platform/database/schema.ts'
import { readWatermark, setWatermark } from '../platform/database/watermarks.ts'
import type { Platform } from '../platform/platform.ts'

export type ScheduleRunRow = Selectable<Schema['schedule_runs']>

/** Records that a run starts. With `since` (epoch ms) returns false, and records nothing, if one has started since then. */
export async function noteStarted(
  { clock, database }: Platform,
  name: string,
  since = Number.MAX_SAFE_INTEGER,
): Promise<boolean> {
  const started = { started_at: clock.now(), finished_at: null, outcome: null }
  const noted = await database.transaction((tx) =>
    tx
      .insertInto('schedule_runs')
      .values({ name, ...started })
      .onConflict((conflict) =>
        conflict.column('name').doUpdateSet(started).where('schedule_runs.started_at', '<', since),
      )
      .returning('name')
      .execute(),
  )
  return noted.length > 0
}

export async function noteFinished(
  platform: Platform,
  name: string,
  outcome: Record<string, unknown>,
): Promise<void> {
  await platform.database.transaction((tx) =>
    tx
      .updateTable('schedule_runs')
      .set({ finished_at: platform.clock.now(), outcome: JSON.stringify(outcome) })
      .where('name', '=', name)
      .execute(),
  )
}

/** Records why a run failed. It stays unfinished: the scheduler repeats it. */
export async function noteFailed(platform: Platform, name: string, error: string): Promise<void> {
  await platform.database.transaction((tx) =>
    tx
      .updateTable('schedule_runs')
      .set({ outcome: JSON.stringify({ error }) })
      .where('name', '=', name)
      .where('finished_at', 'is', null)
      .execute(),
  )
}

/** The error of a run that failed and is being repeated; `null` for any other. */
export function failureOf({
  finished_at,
  outcome,
}: Pick<ScheduleRunRow, 'finished_at' | 'outcome'>): string | null {
  if (finished_at !== null || outcome === null) return null
  const { error } = JSON.parse(outcome) as { error?: string }
  return error ?? null
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
