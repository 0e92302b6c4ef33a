import type { Queries } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { EventState } from './event-words.ts'
import { BATCH_BYTES } from './inbox.service.ts'
import { type BodyRow, leadingUpToBytes, readBodies } from './inbox.store.ts'
import {
  countMatching,
  readEventsAfter,
  type StoredEventFilter,
  type StoredEventRow,
} from './stored-events.store.ts'

export type { StoredEventFilter } from './stored-events.store.ts'

/** An event as the inbox has kept it, and what became of it. */
export interface StoredEvent {
  id: string
  scope: string
  topic: string | null
  /** This delivery id came before with another body. */
  conflicting: boolean
  receivedAt: number
  state: EventState
  /** Why it was ignored or set aside. */
  reason: string | null
  result: Record<string, unknown> | null
  /** `null` when the retention time has taken the raw body. */
  rawBody: Buffer | null
}

const MAX_EVENTS = 100

/** Every stored event that fits, in the order of arrival, in lots of at most `MAX_EVENTS` and `BATCH_BYTES` of bodies. */
export async function* storedEvents(db: Queries, filter: StoredEventFilter): AsyncGenerator<StoredEvent[]> {
  if (filter.scopes?.length === 0) return
  let after = NIL_ID
  for (;;) {
    const rows = await readEventsAfter(db, filter, after, MAX_EVENTS)
    const ids = await leadingUpToBytes(
      db,
      rows.map(({ id }) => id),
      BATCH_BYTES,
    )
    const last = ids.at(-1)
    if (!last) return
    after = last
    const bodies = new Map((await readBodies(db, ids)).map((body) => [body.event_id, body]))
    yield rows.slice(0, ids.length).map((row) => storedEvent(row, bodies.get(row.id)))
  }
}

function storedEvent(row: StoredEventRow, body: BodyRow | undefined): StoredEvent {
  return {
    id: row.id,
    scope: row.scope,
    topic: row.topic,
    conflicting: row.conflict_hash !== '',
    receivedAt: row.received_at,
    state: row.state,
    reason: row.reason,
    result: row.result === null ? null : JSON.parse(row.result),
    rawBody: body ? Buffer.from(body.body, body.encoding) : null,
  }
}

export function countStoredEvents(db: Queries, filter: StoredEventFilter): Promise<number> {
  return filter.scopes?.length === 0 ? Promise.resolve(0) : countMatching(db, filter)
}
