import type { Selectable } from 'kysely'
import type { Queries } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { Platform } from '../platform/platform.ts'

export type ScheduleRunRow = Selectable<Schema['schedule_runs']>

export async function noteStarted(platform: Platform, name: string): Promise<void> {
  const started = { started_at: platform.clock.now(), finished_at: null, outcome: null }
  await platform.database.transaction((tx) =>
    tx
      .insertInto('schedule_runs')
      .values({ name, ...started })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(started))
      .execute(),
  )
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

export function lastRuns(db: Queries): Promise<ScheduleRunRow[]> {
  return db.selectFrom('schedule_runs').selectAll().orderBy('name').execute()
}
