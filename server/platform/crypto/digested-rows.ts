import type { Selectable } from 'kysely'
import type { Schema } from '../database/schema.ts'
import type { AppKeys } from './key-ring.ts'
import { type DigestedValue, rowDigests } from './row-digests.ts'

/** The columns of queue rows that decide what is done. None of them changes. */
export const DIGESTED_QUEUES = {
  inbound_events: [
    'id',
    'source',
    'scope',
    'delivery_id',
    'conflict_hash',
    'body_hash',
    'topic',
    'received_at',
    'triggered_at',
  ],
  processor_attempts: ['id', 'kind', 'subject_id', 'amount', 'request', 'created_at'],
  outbox_events: ['id', 'type', 'account_id', 'subject_id', 'data', 'created_at'],
  webhook_deliveries: ['id', 'endpoint_id', 'event_id', 'subject_id', 'sequence', 'created_at'],
  mails: ['id', 'user_id', 'address', 'kind', 'facts', 'event_key', 'created_at'],
  export_jobs: ['id', 'user_id', 'role', 'resource', 'format', 'from_at', 'to_at', 'created_at'],
} as const satisfies { [Table in keyof Schema]?: readonly (keyof Schema[Table])[] }

export type DigestedQueue = keyof typeof DIGESTED_QUEUES

type Values<Table extends DigestedQueue> = Pick<
  Selectable<Schema[Table]>,
  (typeof DIGESTED_QUEUES)[Table][number] & keyof Selectable<Schema[Table]>
>

function valuesOf<Table extends DigestedQueue>(table: Table, row: Values<Table>): DigestedValue[] {
  const values = row as Record<string, DigestedValue>
  return DIGESTED_QUEUES[table].map((column) => values[column] ?? null)
}

/** A new row with its digest. */
export function sealedRow<Table extends DigestedQueue, const Row extends Values<Table>>(
  keys: AppKeys,
  table: Table,
  row: Row,
): Row & { row_digest: string } {
  return { ...row, row_digest: rowDigests(keys).digest(table, valuesOf(table, row)) }
}

/** Why a row is not the one that the service wrote; `null` when it is. */
export function rowProblem<Table extends DigestedQueue>(
  keys: AppKeys,
  table: Table,
  row: Values<Table> & { row_digest: string },
): string | null {
  const state = rowDigests(keys).check(row.row_digest, table, valuesOf(table, row))
  if (state === 'holds') return null
  return state === 'changed'
    ? 'it was added or changed outside of the service'
    : 'its digest was made with a key that is not in APP_KEY or APP_KEYS_FORMER'
}
