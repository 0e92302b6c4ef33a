import { CompiledQuery } from 'kysely'
import { binaryArray } from '../platform/binary-array.ts'
import { BytesInParts } from '../platform/bytes-in-parts.ts'
import type { Database, Queries } from '../platform/database.ts'
import { arraysOf } from '../platform/insertion.ts'
import { placesInOneRun } from '../platform/row-set.ts'
import { type Changed, forEachRow } from '../platform/sqlite-dialect.ts'
import type { EventRow } from './inbox.store.ts'

/** What differs between events that have just come in: they are pending, due at once, and nobody has tried them. */
export type NewEvent = Pick<
  EventRow,
  | 'id'
  | 'source'
  | 'scope'
  | 'delivery_id'
  | 'conflict_hash'
  | 'body_hash'
  | 'topic'
  | 'received_at'
  | 'triggered_at'
> & {
  encoding: 'utf8' | 'base64'
  /** The stored text's bytes, in UTF-8. */
  body: Buffer
}

const EVENT_TYPES = {
  id: 'uuid',
  source: 'text',
  scope: 'text',
  delivery_id: 'text',
  conflict_hash: 'text',
  body_hash: 'text',
  topic: 'text',
  received_at: 'bigint',
  triggered_at: 'bigint',
} as const
const EVENT = Object.keys(EVENT_TYPES) as (keyof typeof EVENT_TYPES)[]
const EVENT_COLUMNS = `${EVENT.join(', ')}, state, attempts, next_attempt_at, lease_until`

/** Adds the events that are not there yet, with their bodies, in one transaction; answers the ids of those that it added. */
export async function addEvents(database: Database, events: readonly NewEvent[]): Promise<Set<string>> {
  if (database.dialect === 'postgresql') return addToPostgres(database, inOneOrder(events))
  const changed = await database.writeAtOnce<Changed>(
    forEachRow(
      ADD_EVENT,
      events.map((event) => [...EVENT.map((name) => event[name]), event.received_at]),
    ),
    forEachRow(
      ADD_BODY,
      events.map(({ id, encoding, body }) => [id, encoding, body, id]),
    ),
  )
  return new Set(events.filter((_event, place) => changed[place]?.changes === 1).map(({ id }) => id))
}

const ADD_EVENT = CompiledQuery.raw(`
  insert into inbound_events (${EVENT_COLUMNS})
  values (${EVENT.map(() => '?').join(', ')}, 'pending', 0, ?, 0) on conflict do nothing`)
const ADD_BODY = CompiledQuery.raw(`
  insert into inbound_bodies (event_id, encoding, body)
  select ?, ?, cast(? as text) where exists (select 1 from inbound_events where id = ?)`)

/**
 * Two writes that hold the same deliveries wait for each other where they meet the first of them; in any other order each
 * might hold what the other comes to next, and the server would end one of them after a second.
 */
function inOneOrder(events: readonly NewEvent[]): NewEvent[] {
  return [...events].sort(
    (one, other) =>
      inOrder(one.scope, other.scope) ||
      inOrder(one.delivery_id, other.delivery_id) ||
      inOrder(one.conflict_hash, other.conflict_hash),
  )
}

function inOrder(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}

/** How many batches are asked of each event whether it is there, after one that held such an event. */
const CAREFUL_BATCHES = 32
const carefulFor = new WeakMap<Database, number>()

/**
 * That an event may be there already costs PostgreSQL a look for each of them, a tenth of its work on a batch: it is left to the
 * index to find one out, which fails the whole statement. Whoever repeats one event often repeats many, as senders
 * do after an outage, and each of those batches would be written twice: for a while it is looked after all.
 */
async function addToPostgres(database: Database, events: readonly NewEvent[]): Promise<Set<string>> {
  const careful = carefulFor.get(database) ?? 0
  if (careful > 0) carefulFor.set(database, careful - 1)
  else if (await addAsNew(database, events)) return new Set(events.map(({ id }) => id))
  const added = await database.writeAtOnce<{ id: string }>(CompiledQuery.raw(ADD_MISSING, valuesOf(events)))
  if (added.length < events.length) carefulFor.set(database, CAREFUL_BATCHES)
  return new Set(added.map(({ id }) => id))
}

/** Whether all of them are added; otherwise none is, since one is there already or twice among them. */
async function addAsNew(database: Database, events: readonly NewEvent[]): Promise<boolean> {
  try {
    await database.writeAtOnce(CompiledQuery.raw(ADD_NEW, valuesOf(events)))
    return true
  } catch (error) {
    if (database.faultOf(error)?.kind === 'unique') return false
    throw error
  }
}

/** The bodies come as one run of bytes, which is sent from where they lie. */
const GIVEN = `
  with given as materialized (
    select *
    from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
      $9::bigint[], $10::text[], $11::int[], $12::int[]) as new (${EVENT.join(', ')}, encoding, place, size)
  )`
const EVENTS_GIVEN = `
  insert into inbound_events (${EVENT_COLUMNS})
  select ${EVENT.join(', ')}, 'pending', 0, received_at, 0 from given`
const BODIES_GIVEN = `
  insert into inbound_bodies (event_id, encoding, body)
  select id, encoding, convert_from(substring($13::bytea from place for size), 'UTF8') from given`
/** Nothing is asked of the events, and nothing answered about them. */
const ADD_NEW = `${GIVEN}, added as (${EVENTS_GIVEN}) ${BODIES_GIVEN}`
const ADD_MISSING = `
  ${GIVEN}, added as (${EVENTS_GIVEN} on conflict do nothing returning id), kept as (${BODIES_GIVEN} join added using (id))
  select id from added`

function valuesOf(events: readonly NewEvent[]): unknown[] {
  const bodies = events.map(({ body }) => body)
  const { places, sizes } = placesInOneRun(bodies)
  return [
    ...arraysOf(EVENT_TYPES, events),
    ...arraysOf({ encoding: 'text' }, events),
    binaryArray('int', places),
    binaryArray('int', sizes),
    new BytesInParts(bodies),
  ]
}

/** The hash of the body that first came under each delivery id of a scope. */
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
