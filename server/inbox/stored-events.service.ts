import type { Queries } from '../platform/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { EventState } from './event-words.ts'
import { countMatching, readEventsAfter, type StoredEventFilter } from './stored-events.store.ts'

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

/** A raw body may have 2 MiB: this many of them at once are bearable. */
const AT_ONCE = 100

/** Every stored event that fits, in the order of arrival, some at a time; however many there are, memory holds one lot. */
export async function* storedEvents(db: Queries, filter: StoredEventFilter): AsyncGenerator<StoredEvent[]> {
  if (filter.scopes?.length === 0) return
  let after = NIL_ID
  for (;;) {
    const rows = await readEventsAfter(db, filter, after, AT_ONCE)
    const last = rows.at(-1)
    if (!last) return
    after = last.id
    yield rows.map((row) => ({
      id: row.id,
      scope: row.scope,
      topic: row.topic,
      conflicting: row.conflict_hash !== '',
      receivedAt: row.received_at,
      state: row.state,
      reason: row.reason,
      result: row.result === null ? null : JSON.parse(row.result),
      rawBody: row.body === null ? null : Buffer.from(row.body, row.encoding ?? 'utf8'),
    }))
  }
}

export function countStoredEvents(db: Queries, filter: StoredEventFilter): Promise<number> {
  return filter.scopes?.length === 0 ? Promise.resolve(0) : countMatching(db, filter)
}
