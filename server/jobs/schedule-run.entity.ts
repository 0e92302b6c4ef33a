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
    /** JSON: what it did, or the error. */
    outcome: json().strictNullable(),
  },
})
