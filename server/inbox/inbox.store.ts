import { type Selectable, sql } from 'kysely'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { LeaseQueue, type Only } from '../platform/queue/lease-queue.ts'
import type { EventSource, EventState } from './event-states.ts'
import { LONGEST_DELAY_MS } from './retry.rule.ts'

export type EventRow = Selectable<Schema['inbound_events']>

/** Pending events. The events of a sender are applied in the order in which they came. */
export const EVENT_QUEUE = new LeaseQueue<EventRow>({
  name: 'inbound_events',
  isOpen: sql`state = 'pending'`,
  dueAt: 'next_attempt_at',
  leaseUntil: 'lease_until',
  attempts: 'attempts',
  lane: { column: 'scope', type: 'text' },
  maxDelayMs: LONGEST_DELAY_MS,
})

export function fromSource(source: EventSource): Only {
  return sql`source = ${source}`
}

/** What became of an event, and the lease under which it was applied. */
export interface Settlement {
  row_id: string
  token: string
  state: EventState
  reason: string | null
  result: string | null
  attempts: number
  next_attempt_at: number
  finished_at: number | null
}

/** Ends the leases of these events; returns the ids of those that were still held under their token. */
export function settleStatement(db: Queries, settlements: readonly Settlement[]) {
  return EVENT_QUEUE.completeManyStatement<Omit<Settlement, 'row_id' | 'token'>>(
    db,
    {
      state: 'text',
      reason: 'text',
      result: 'text',
      attempts: 'int',
      next_attempt_at: 'bigint',
      finished_at: 'bigint',
    },
    settlements,
  )
}

/** Counts the `most` first pending events of a source along the index of due events. */
export async function countPending(
  db: Queries,
  source: EventSource,
  most: number,
): Promise<{ waiting: number; oldest: number | null }> {
  return db
    .selectFrom((from) =>
      from
        .selectFrom('inbound_events')
        .select('received_at')
        .where('state', '=', 'pending')
        .where('source', '=', source)
        .orderBy('next_attempt_at')
        .limit(most)
        .as('pending'),
    )
    .select((select) => [
      select.fn.countAll<number>().as('waiting'),
      select.fn.min<number | null>('received_at').as('oldest'),
    ])
    .executeTakeFirstOrThrow()
}

export interface BodyRow {
  event_id: string
  body: string
  encoding: 'utf8' | 'base64'
}

/** A raw body, read as UTF-8. */
export function textOf({ body, encoding }: Pick<BodyRow, 'body' | 'encoding'>): string {
  return encoding === 'utf8' ? body : Buffer.from(body, encoding).toString('utf8')
}

/** The raw bodies of these events, of those that still have one. */
export async function readBodies(db: Queries, eventIds: readonly string[]): Promise<BodyRow[]> {
  return (await bodiesStatement(db, eventIds).execute(db)).rows
}

export function bodiesStatement(db: Queries, eventIds: readonly string[]) {
  return sql<BodyRow>`select event_id, body, encoding from ${bodiesOf(db, eventIds)}`
}

/** UTF-8 bytes of the stored bodies. Both databases know them without reading the bodies. */
export function bodySizesStatement(db: Queries, eventIds: readonly string[]) {
  return sql<{ event_id: string; bytes: number }>`
    select event_id, octet_length(body) as bytes from ${bodiesOf(db, eventIds)}`
}

/** The `offset` leaves PostgreSQL, which may not know the size of the table yet, no plan but one look-up for each id. */
function bodiesOf(db: Queries, eventIds: readonly string[]) {
  if (dialectOf(db) === 'sqlite')
    return sql`inbound_bodies as body where event_id ${inList('sqlite', 'uuid', eventIds)}`
  return sql`unnest(cast(${eventIds} as uuid[])) as given (id) cross join lateral (
    select * from inbound_bodies as body where event_id = given.id offset 0) as found`
}

/** The leading ids whose bodies take at most `maxBytes` together, but at least one. Loads no body. */
export async function leadingUpToBytes(
  db: Queries,
  eventIds: readonly string[],
  maxBytes: number,
): Promise<readonly string[]> {
  if (eventIds.length < 2) return eventIds
  const { rows } = await bodySizesStatement(db, eventIds).execute(db)
  const sizes = new Map(rows.map(({ event_id, bytes }) => [event_id, Number(bytes)]))
  let sum = 0
  const end = eventIds.findIndex((id, index) => {
    sum += sizes.get(id) ?? 0
    return index > 0 && sum > maxBytes
  })
  return end === -1 ? eventIds : eventIds.slice(0, end)
}

/**
 * Removes raw bodies of finished events received before `before` (epoch ms): at most `limit`, and about `maxBytes`, because SQLite visits
 * every page that it frees. Returns how many it removed.
 */
export async function deleteOldBodies(
  tx: Tx,
  before: number,
  limit: number,
  maxBytes: number,
): Promise<number> {
  const old = await tx
    .selectFrom('inbound_events as event')
    .innerJoin('inbound_bodies as body', 'body.event_id', 'event.id')
    .select('event.id')
    .where('event.received_at', '<', before)
    .where('event.state', '<>', 'pending')
    .limit(limit)
    .execute()
  const ids = await leadingUpToBytes(
    tx,
    old.map(({ id }) => id),
    maxBytes,
  )
  if (ids.length === 0) return 0
  await tx.deleteFrom('inbound_bodies').where('event_id', 'in', ids).execute()
  return ids.length
}
