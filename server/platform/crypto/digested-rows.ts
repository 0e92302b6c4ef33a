import type { Selectable } from 'kysely'
import type { Schema } from '../database/schema.ts'
import type { AppKeys } from './key-ring.ts'
import { type DigestedValue, rowDigests } from './row-digests.ts'
import { IntegrityError, UnknownKeyError } from './vault.ts'

/** The columns of queue rows that decide what is done. Whatever changes one of them seals the row again. */
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
  schedule_runs: ['name', 'started_at', 'finished_at', 'outcome'],
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
  try {
    assertRow(keys, table, row)
    return null
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) return error.message
    throw error
  }
}

/** Rows that the service wrote, and the others, each with its problem. */
export function splitRows<Table extends DigestedQueue, Row extends Values<Table> & QueueRow>(
  keys: AppKeys,
  table: Table,
  rows: readonly Row[],
): { authentic: Row[]; forged: { id: string; problem: string }[] } {
  const problems = rows.map((row) => rowProblem(keys, table, row))
  return {
    authentic: rows.filter((_, index) => problems[index] === null),
    forged: rows
      .flatMap(({ id }, index) => ({ id, problem: problems[index] ?? '' }))
      .filter(({ problem }) => problem !== ''),
  }
}

interface QueueRow {
  id: string
  row_digest: string
}

/** Throws `IntegrityError` for a row that the service did not write like this, and `UnknownKeyError`. */
export function assertRow<Table extends DigestedQueue>(
  keys: AppKeys,
  table: Table,
  row: Values<Table> & { row_digest: string },
): void {
  const state = rowDigests(keys).check(row.row_digest, table, valuesOf(table, row))
  if (state === 'changed') throw new IntegrityError('it was added or changed outside of the service')
  if (state === 'unknown_key') throw new UnknownKeyError(row.row_digest.slice(0, 8))
}
