import { defineEntity } from '@mikro-orm/core'
import { count, epochMs, text } from './columns.ts'

/** Small facts about the service itself, by name: the progress of a job, the key that sealed the secrets. */
export const Watermark = defineEntity({
  name: 'Watermark',
  tableName: 'watermarks',
  properties: { name: text().primary(), value: text() },
})

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
