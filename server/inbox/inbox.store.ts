import { type Selectable, sql } from 'kysely'
import { inList, valuesTable } from '../platform/database/bulk-values.ts'
import { type Dialect, dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { EventSource, EventState } from './event-words.ts'
import { leadingUpToBytes } from './upcoming-events.store.ts'

export type EventRow = Selectable<Schema['inbound_events']>
interface Beyond {
  source: EventSource
  /** Epoch ms. */
  after: number
}

/** Whether a pending event waits for a time after `after`. */
export async function waitsBeyond(db: Queries, { source, after }: Beyond): Promise<boolean> {
  const row = await db
    .selectFrom('inbound_events')
    .select('id')
    .where('state', '=', 'pending')
    .where('source', '=', source)
    .where('next_attempt_at', '>', after)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Makes the pending events that wait for a time after `after` due at `now` (epoch ms), and ends their leases. */
export async function bringEventsBack(tx: Tx, { source, after }: Beyond, now: number): Promise<void> {
  await tx
    .updateTable('inbound_events')
    .set({ next_attempt_at: now, lease_token: null, lease_until: 0 })
    .where('state', '=', 'pending')
    .where('source', '=', source)
    .where('next_attempt_at', '>', after)
    .execute()
}

export interface Settlement {
  event_id: string
  /** The lease under which it was applied. */
  lease_token: string
  state: EventState
  reason: string | null
  result: string | null
  attempts: number
  next_attempt_at: number
  finished_at: number | null
}

const settlementRows = valuesTable<Settlement>('settled', {
  event_id: 'uuid',
  lease_token: 'text',
  state: 'text',
  reason: 'text',
  result: 'text',
  attempts: 'int',
  next_attempt_at: 'bigint',
  finished_at: 'bigint',
})

/** Ends the leases of these events with what became of each; answers the ids of those whose lease was still the one named. */
export async function settleEvents(
  tx: Tx,
  dialect: Dialect,
  settlements: readonly Settlement[],
): Promise<Set<string>> {
  const settled = await settleStatement(dialect, settlements).execute(tx)
  return new Set(settled.rows.map((row) => row.id))
}

/**
 * Looks the events up by their ids, however many others are pending. The array leaves PostgreSQL, which goes by what it knew of the
 * table some time ago, no other way; and both are kept from the index of all that is pending: SQLite by a plus sign, PostgreSQL
 * by a state that is not the event's alone.
 */
export function settleStatement(dialect: Dialect, settlements: readonly Settlement[]) {
  const [given, ours, pending] =
    dialect === 'sqlite'
      ? [settlementRows(dialect, settlements), sql`true`, sql`+event.state`]
      : [
          sql`settled`,
          sql`event.id = any(array(select event_id from settled))`,
          sql`coalesce(event.state, settled.state)`,
        ]
  const update = sql<{ id: string }>`
    update inbound_events as event
    set state = settled.state, reason = settled.reason, result = settled.result, attempts = settled.attempts,
      next_attempt_at = settled.next_attempt_at, finished_at = settled.finished_at, lease_token = null, lease_until = 0
    from ${given}
    where ${ours} and event.id = settled.event_id and ${pending} = 'pending' and coalesce(event.lease_token, '') = settled.lease_token
    returning id`
  if (dialect === 'sqlite') return update
  return sql<{ id: string }>`
    with settled as materialized (select * from ${settlementRows(dialect, settlements)}) ${update}`
}

/** When the next pending event of a source falls due (epoch ms); `null` when none waits. */
export async function nextDueAt(db: Queries, source: EventSource): Promise<number | null> {
  const row = await db
    .selectFrom('inbound_events')
    .select('next_attempt_at')
    .where('state', '=', 'pending')
    .where('source', '=', source)
    .orderBy('next_attempt_at')
    .limit(1)
    .executeTakeFirst()
  return row?.next_attempt_at ?? null
}

/** Counts the `most` first pending events of a source along the index of what falls due. */
export async function countPending(
  db: Queries,
  source: EventSource,
  most: number,
): Promise<{ waiting: number; oldest: number | null }> {
  const row = await db
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
  return row
}

/** Ends these leases and takes back the attempts that their claims counted. */
export async function releaseLeases(tx: Tx, eventIds: readonly string[], token: string): Promise<void> {
  await tx
    .updateTable('inbound_events')
    .set((eb) => ({ lease_token: null, lease_until: 0, attempts: eb('attempts', '-', 1) }))
    .where(sql<boolean>`id ${inList(dialectOf(tx), 'uuid', eventIds)}`)
    .where('lease_token', '=', token)
    .execute()
}

export interface EventFilter {
  source?: EventSource | undefined
  state?: EventState | undefined
  /** One sender's delivery: the event, and those that came under the same id with another body. */
  delivery?: { scope: string; deliveryId: string } | undefined
  limit: number
}

/** Newest first. */
export function findEvents(db: Queries, filter: EventFilter): Promise<EventRow[]> {
  const { source, state, delivery, limit } = filter
  let query = db.selectFrom('inbound_events').selectAll().orderBy('id', 'desc').limit(limit)
  if (source) query = query.where('source', '=', source)
  if (state) query = query.where('state', '=', state)
  if (delivery) {
    query = query.where('scope', '=', delivery.scope).where('delivery_id', '=', delivery.deliveryId)
  }
  return query.execute()
}

/**
 * Removes raw bodies of finished events that came before `before` (epoch ms): at most `limit`, and about `maxBytes` of them, since SQLite
 * goes through every page of what it removes. Returns how many went.
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
