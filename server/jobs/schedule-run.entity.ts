import { defineEntity } from '@mikro-orm/core'
import { json, moment, text } from '../platform/database/columns.ts'

/** The last run of each scheduled job. */
export const ScheduleRun = defineEntity({
  name: 'ScheduleRun',
  tableName: 'schedule_runs',
  properties: {
    name: text().primary(),
    started_at: moment(),
    finished_at: moment().strictNullable(),
    /** JSON: the result; `null` during a run and after an error. */
    outcome: json().strictNullable(),
  },
})
