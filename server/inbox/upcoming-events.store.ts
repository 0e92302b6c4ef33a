import { sql } from 'kysely'
import { inList } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries } from '../platform/database/database.ts'
import type { EventSource } from './event-words.ts'

export interface UpcomingRow {
  id: string
  topic: string | null
  conflict_hash: string
}

export interface Upcoming {
  source: EventSource
  /** Epoch ms. */
  now: number
  limit: number
}

/** The first events of a source that are due, in the order in which they are taken up, whoever may hold them. */
export function upcomingStatement(db: Queries, { source, now, limit }: Upcoming) {
  return db
    .selectFrom('inbound_events as event')
    .select(['event.id', 'event.topic', 'event.conflict_hash'])
    .where('event.state', '=', 'pending')
    .where('event.source', '=', source)
    .where('event.next_attempt_at', '<=', now)
    .orderBy('event.next_attempt_at')
    .orderBy('event.id')
    .limit(limit)
}

export interface BodyRow {
  event_id: string
  body: string
  encoding: 'utf8' | 'base64'
}

/** The `offset` leaves PostgreSQL, which may know nothing of the table yet, no other way to the bodies than by their keys. */
export function bodiesStatement(db: Queries, eventIds: readonly string[]) {
  if (dialectOf(db) === 'sqlite') {
    return sql<BodyRow>`
      select event_id, body, encoding from inbound_bodies as body
      where event_id ${inList('sqlite', 'uuid', eventIds)}`
  }
  return sql<BodyRow>`
    select found.event_id, found.body, found.encoding
    from unnest(cast(${eventIds} as uuid[])) as given (id) cross join lateral (
      select body.event_id, body.body, body.encoding from inbound_bodies as body where body.event_id = given.id offset 0
    ) as found`
}

/** The raw bodies of these events, of those that still have one. */
export async function readBodies(db: Queries, eventIds: readonly string[]): Promise<BodyRow[]> {
  return (await bodiesStatement(db, eventIds).execute(db)).rows
}

/** The leading ids whose bodies take at most `maxBytes` together, but at least one. No body is loaded for it. */
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

/** UTF-8 bytes of the stored bodies; both databases know them without reading the bodies. */
export function bodySizesStatement(db: Queries, eventIds: readonly string[]) {
  if (dialectOf(db) === 'sqlite') {
    return sql<{ event_id: string; bytes: number }>`
      select event_id, octet_length(body) as bytes from inbound_bodies as body
      where event_id ${inList('sqlite', 'uuid', eventIds)}`
  }
  return sql<{ event_id: string; bytes: number }>`
    select found.event_id, found.bytes
    from unnest(cast(${eventIds} as uuid[])) as given (id) cross join lateral (
      select body.event_id, octet_length(body.body) as bytes from inbound_bodies as body
      where body.event_id = given.id offset 0
    ) as found`
}
