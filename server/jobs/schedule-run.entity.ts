import { defineEntity } from '@mikro-orm/core'
import { epochMs, json, text } from '../platform/database/columns.ts'

/** The last run of each scheduled job. */
export const ScheduleRun = defineEntity({
  name: 'ScheduleRun',
  tableName: 'schedule_runs',
  properties: {
    name: text().primary(),
    started_at: epochMs(),
    finished_at: epochMs().strictNullable(),
    /** JSON: the result; `null` during a run. After a failure the error, while `finished_at` is `null`. */
    outcome: json().strictNullable(),
    /** Keyed digest of all of the above. */
    row_digest: text(),
  },
})
