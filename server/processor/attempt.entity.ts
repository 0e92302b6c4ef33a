import { defineEntity } from '@mikro-orm/core'
import { count, enumText, epochMs, id, json, oneOf, paisa, text } from '../platform/database/columns.ts'

const ATTEMPT_KINDS = ['invoice', 'payout'] as const
export type AttemptKind = (typeof ATTEMPT_KINDS)[number]
const ATTEMPT_STATES = ['waiting', 'created', 'refused'] as const

/**
 * The intention to make one call to the processor, committed before the call. Its id is the idempotency key. While it is `waiting` after a
 * first try, the outcome is unknown and its subject may have no other attempt.
 */
export const ProcessorAttempt = defineEntity({
  name: 'ProcessorAttempt',
  tableName: 'processor_attempts',
  properties: {
    id: id().primary(),
    kind: enumText<AttemptKind>(),
    /** The billing cycle or the payout. */
    subject_id: id(),
    amount: paisa(),
    /** JSON: the rest of the call, frozen like the amount, because a key must always carry the same body. */
    request: json(),
    /** Keyed digest of what the row causes. */
    row_digest: text(),
    state: enumText<(typeof ATTEMPT_STATES)[number]>(),
    tries: count(),
    next_try_at: epochMs(),
    /** When the latest call with an unknown outcome was made; `null` when all outcomes are known. */
    unknown_at: epochMs().strictNullable(),
    lease_token: text().strictNullable(),
    lease_until: epochMs(),
    /** The processor's id for the invoice or payout; of a refused one, if it gave one. */
    processor_id: text().strictNullable(),
    detail: text().strictNullable(),
    created_at: epochMs(),
    settled_at: epochMs().strictNullable(),
    /** When the processor reported that what a successful call created has failed: then a new attempt may follow. */
    failed_at: epochMs().strictNullable(),
  },
  checks: [
    oneOf('processor_attempts', 'kind', ATTEMPT_KINDS),
    oneOf('processor_attempts', 'state', ATTEMPT_STATES),
  ],
  uniques: [
    {
      name: 'processor_attempts_one',
      properties: ['subject_id'],
      where: "state in ('waiting', 'created') and failed_at is null",
    },
  ],
  indexes: [
    { name: 'processor_attempts_waiting', properties: ['next_try_at'], where: "state = 'waiting'" },
    { name: 'processor_attempts_subject', properties: ['subject_id', 'id'] },
    {
      name: 'processor_attempts_processor',
      properties: ['processor_id'],
      where: 'processor_id is not null',
    },
  ],
})
