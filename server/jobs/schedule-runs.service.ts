import type { Platform } from '../platform/platform.ts'
import { lastRuns, type ScheduleRunRow } from './schedule-runs.store.ts'

export type { ScheduleRunRow } from './schedule-runs.store.ts'

/** The last run of each scheduled job that has ever run, by name. */
export function listScheduleRuns(platform: Platform): Promise<ScheduleRunRow[]> {
  return lastRuns(platform.database.reader)
}
