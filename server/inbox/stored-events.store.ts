import type { Queries } from '../platform/database/database.ts'
import type { EventSource, EventState } from './event-words.ts'

export interface StoredEventFilter {
  source: EventSource
  /** `null`: of every sender. */
  scopes: readonly string[] | null
  /** Epoch ms, inclusive, on the moment of receipt; `null`: all. */
  since: number | null
}

export interface StoredEventRow {
  id: string
  scope: string
  topic: string | null
  conflict_hash: string
  received_at: number
  state: EventState
  reason: string | null
  result: string | null
}

function matching(db: Queries, filter: StoredEventFilter) {
  return db
    .selectFrom('inbound_events as event')
    .where('event.source', '=', filter.source)
    .$if(filter.since !== null, (query) => query.where('event.received_at', '>=', filter.since ?? 0))
    .$if(filter.scopes !== null, (query) => query.where('event.scope', 'in', filter.scopes ?? []))
}

/** Events in the order of arrival, from the one behind `after`. */
export function readEventsAfter(
  db: Queries,
  filter: StoredEventFilter,
  after: string,
  limit: number,
): Promise<StoredEventRow[]> {
  return matching(db, filter)
    .select([
      'event.id',
      'event.scope',
      'event.topic',
      'event.conflict_hash',
      'event.received_at',
      'event.state',
      'event.reason',
      'event.result',
    ])
    .where('event.id', '>', after)
    .orderBy('event.id')
    .limit(limit)
    .execute()
}

export async function countMatching(db: Queries, filter: StoredEventFilter): Promise<number> {
  const { events } = await matching(db, filter)
    .select((select) => select.fn.countAll<number>().as('events'))
    .executeTakeFirstOrThrow()
  return events
}
