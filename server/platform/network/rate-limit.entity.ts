import { defineEntity } from '@mikro-orm/core'
import { count, epochMs, text } from '../database/columns.ts'

/** PostgreSQL: the points that the limiters of all processes have counted. Empty on SQLite; a crash of the server empties it. */
export const RateLimitPoints = defineEntity({
  name: 'RateLimitPoints',
  tableName: 'rate_limits',
  properties: {
    /** The limiter's name and the hash of what it counts by. */
    key: text().primary(),
    points: count(),
    /** The end of the window. */
    expire: epochMs().strictNullable(),
  },
})
