import { defineEntity } from '@mikro-orm/core'
import { count, epochMs, id, json, refersTo, text } from '../platform/database/columns.ts'
import { User } from '../users/user.entity.ts'

/** Something that happened to an account, written in the transaction that caused it. Only `distributed_at` ever changes. */
export const OutboxEvent = defineEntity({
  name: 'OutboxEvent',
  tableName: 'outbox_events',
  properties: {
    /** Also the id under which channels send it, for receivers to drop repeated deliveries. */
    id: id().primary(),
    type: text(),
    /** The account that is notified. */
    account_id: () => refersTo(User, 'account_id'),
    /** The sale, payout, billing cycle, ... that it is about. */
    subject_id: id(),
    /** The place among the account's events about this subject, from 1. */
    sequence: count(),
    /** The subject as the account's own API shows it. */
    data: json(),
    created_at: epochMs(),
    /** Keyed digest of what the row causes. */
    row_digest: text(),
    /** When every channel had taken its part; `null` before. */
    distributed_at: epochMs().strictNullable(),
  },
  uniques: [{ name: 'outbox_events_sequence', properties: ['account_id', 'subject_id', 'sequence'] }],
  indexes: [
    { name: 'outbox_events_pending', properties: ['sequence', 'id'], where: 'distributed_at is null' },
  ],
})
