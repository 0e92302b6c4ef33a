import { defineEntity } from '@mikro-orm/core'
import { count, epochMs, id, text } from './columns.ts'

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

/** The answer to a call with an `Idempotency-Key`, kept for a day. */
export const IdempotencyKey = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_keys',
  properties: {
    id: id().primary(),
    /** The account that called. */
    user_id: id(),
    key: text(),
    /** The hash of the call and its answer, sealed: an answer can hold a secret. Empty until the call has ended. */
    answer_encrypted: text(),
    created_at: epochMs(),
  },
  uniques: [{ name: 'idempotency_keys_key', properties: ['user_id', 'key'] }],
  indexes: [{ name: 'idempotency_keys_created', properties: ['created_at'] }],
})
