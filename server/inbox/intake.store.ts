import { CompiledQuery } from 'kysely'
import type { Database, Queries } from '../platform/database/database.ts'
import { DIGESTED_TABLES } from '../platform/database/protected-tables.ts'
import type { EventRow } from './inbox.store.ts'

/** What intake knows of an event. */
const EVENT = [...DIGESTED_TABLES.inbound_events.columns, 'row_digest'] as const

/** A received event. It is pending, due, and without attempts. */
export type NewEvent = Pick<EventRow, (typeof EVENT)[number]> & {
  encoding: 'utf8' | 'base64'
  /** The text to store, in UTF-8. */
  body: Buffer
}

const EVENT_COLUMNS = `${EVENT.join(', ')}, state, attempts, next_attempt_at, lease_until`

/** Adds the new ones of these events, with their bodies, in one transaction; returns their ids. */
export async function addEvents(database: Database, events: readonly NewEvent[]): Promise<Set<string>> {
  const statements = database.dialect === 'sqlite' ? statementPerEvent(events) : oneStatement(sorted(events))
  const added = await database.executeBatch<{ id: string }>(...statements)
  return new Set(added.map(({ id }) => id))
}

function statementPerEvent(events: readonly NewEvent[]): CompiledQuery[] {
  return events.flatMap((event) => [
    CompiledQuery.raw(ADD_EVENT, [...EVENT.map((name) => event[name]), event.received_at]),
    CompiledQuery.raw(ADD_BODY, [event.id, event.encoding, event.body, event.id]),
  ])
}

const ADD_EVENT = `
  insert into inbound_events (${EVENT_COLUMNS})
  values (${EVENT.map(() => '?').join(', ')}, 'pending', 0, ?, 0) on conflict do nothing returning id`
const ADD_BODY = `
  insert into inbound_bodies (event_id, encoding, body)
  select ?, ?, cast(? as text) where exists (select 1 from inbound_events where id = ?)`

/** Sorts all writes the same way, so that two with the same deliveries wait for each other instead of deadlocking. */
function sorted(events: readonly NewEvent[]): NewEvent[] {
  const keyed = events.map((event) => ({ event, key: `${deliveryKey(event)}\n${event.conflict_hash}` }))
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ event }) => event)
}

function oneStatement(events: readonly NewEvent[]): CompiledQuery[] {
  const columns = EVENT.map((name) => events.map((event) => event[name]))
  const bodies = events.map(({ body }) => body)
  let end = 1
  const places = bodies.map(({ length }) => {
    const place = end
    end += length
    return place
  })
  return [
    CompiledQuery.raw(ADD_EVENTS, [
      ...columns,
      events.map(({ encoding }) => encoding),
      places,
      bodies.map(({ length }) => length),
      Buffer.concat(bodies),
    ]),
  ]
}

/** The bodies are one binary parameter: texts in an array would be escaped and parsed byte by byte. */
const ADD_EVENTS = `
  with given as materialized (
    select *
    from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
      $9::bigint[], $10::text[], $11::text[], $12::int[], $13::int[]) as new (${EVENT.join(', ')}, encoding, place, size)
  ), added as (
    insert into inbound_events (${EVENT_COLUMNS})
    select ${EVENT.join(', ')}, 'pending', 0, received_at, 0 from given on conflict do nothing returning id
  ), kept as (
    insert into inbound_bodies (event_id, encoding, body)
    select id, encoding, convert_from(substring($14::bytea from place for size), 'UTF8') from given join added using (id)
  )
  select id from added`

/** The hash of the first body of each delivery id in a scope. */
export async function firstBodyHashes(
  db: Queries,
  deliveries: readonly { scope: string; delivery_id: string }[],
): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('inbound_events')
    .select(['scope', 'delivery_id', 'body_hash'])
    .where('conflict_hash', '=', '')
    .where((where) =>
      where.or(
        deliveries.map(({ scope, delivery_id }) =>
          where.and([where('scope', '=', scope), where('delivery_id', '=', delivery_id)]),
        ),
      ),
    )
    .execute()
  return new Map(rows.map((row) => [deliveryKey(row), row.body_hash]))
}

export function deliveryKey(row: { scope: string; delivery_id: string }): string {
  return `${row.scope}\n${row.delivery_id}`
}
