import { defineEntity } from '@mikro-orm/core'
import { count, epochMs, id, json, text } from '../platform/database/columns.ts'

/** The processes of the service that run, each with its last heartbeat. A process that stops removes its row. */
export const RunningProcess = defineEntity({
  name: 'RunningProcess',
  tableName: 'processes',
  properties: {
    id: id().primary(),
    host: text(),
    pid: count(),
    /** As ROLES. */
    roles: text(),
    /** JSON: the settings that decide amounts, by name. All processes must agree on them. */
    money_settings: json(),
    /** By the database's clock. */
    seen_at: epochMs(),
  },
})
