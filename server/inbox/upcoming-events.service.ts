import type { Queries } from '../platform/database/database.ts'
import type { EventSource } from './event-states.ts'
import { bodyHashOf, leadingUpToBytes, readBodies, textOf } from './inbox.store.ts'

/** The first due events of a source, oldest first, held or not. `now` is in epoch ms. */
export function upcomingEvents(db: Queries, source: EventSource, now: number, limit: number) {
  return db
    .selectFrom('inbound_events')
    .select(['id', 'topic', 'conflict_hash'])
    .where('state', '=', 'pending')
    .where('source', '=', source)
    .where('next_attempt_at', '<=', now)
    .orderBy('next_attempt_at')
    .orderBy('id')
    .limit(limit)
}

/** `bodyHash`: SHA-256 of the raw body, hex. */
export interface LeadingText {
  text: string
  bodyHash: string
}

/**
 * The raw bodies of the leading events, read as UTF-8, by event id: of as many as take `maxBytes` together, but at least one. `null` for a
 * body that was removed.
 */
export async function leadingTexts(
  db: Queries,
  eventIds: readonly string[],
  maxBytes: number,
): Promise<Map<string, LeadingText | null>> {
  const ids = await leadingUpToBytes(db, eventIds, maxBytes)
  const bodies = await readBodies(db, ids)
  return new Map(
    ids.map((id) => {
      const body = bodies.get(id)
      return [id, body ? { text: textOf(body), bodyHash: bodyHashOf(body) } : null]
    }),
  )
}
