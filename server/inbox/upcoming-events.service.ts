import type { Queries } from '../platform/database/database.ts'
import { bodyHashOf } from './event-seal.ts'
import type { EventSource } from './event-states.ts'
import { leadingUpToBytes, readBodies, textOf } from './inbox.store.ts'

/** A due event as it came in, which never changes. */
export interface UpcomingEvent {
  id: string
  topic: string | null
  /** This delivery id came before with another body. */
  conflicting: boolean
}

interface Upcoming {
  source: EventSource
  /** Epoch ms. */
  now: number
  limit: number
}

/** The first due events of a source, oldest first, held or not. */
export async function upcomingEvents(db: Queries, upcoming: Upcoming): Promise<UpcomingEvent[]> {
  const rows = await upcomingStatement(db, upcoming).execute()
  return rows.map(({ id, topic, conflict_hash }) => ({ id, topic, conflicting: conflict_hash !== '' }))
}

export function upcomingStatement(db: Queries, { source, now, limit }: Upcoming) {
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
  const texts = new Map<string, LeadingText | null>(ids.map((id) => [id, null]))
  for (const row of await readBodies(db, ids)) {
    texts.set(row.event_id, { text: textOf(row), bodyHash: bodyHashOf(row) })
  }
  return texts
}
