import type { Queries } from '../platform/database/database.ts'
import { textOf } from './stored-text.ts'
import { leadingUpToBytes, readBodies, type Upcoming, upcomingStatement } from './upcoming-events.store.ts'

/** An event that is due, of which nobody has to be the holder to read it: what came in never changes. */
export interface UpcomingEvent {
  id: string
  topic: string | null
  /** This delivery id came before with another body. */
  conflicting: boolean
}

/** The first events of a source that are due, oldest first, whoever may hold them. */
export async function upcomingEvents(db: Queries, upcoming: Upcoming): Promise<UpcomingEvent[]> {
  const rows = await upcomingStatement(db, upcoming).execute()
  return rows.map(({ id, topic, conflict_hash }) => ({ id, topic, conflicting: conflict_hash !== '' }))
}

/**
 * The raw bodies of the leading events, read as UTF-8, by event id: of as many as take `maxBytes` together, but at least one.
 * `null` for a body that is gone.
 */
export async function leadingTexts(
  db: Queries,
  eventIds: readonly string[],
  maxBytes: number,
): Promise<Map<string, string | null>> {
  const ids = await leadingUpToBytes(db, eventIds, maxBytes)
  const texts = new Map<string, string | null>(ids.map((id) => [id, null]))
  for (const row of await readBodies(db, ids)) texts.set(row.event_id, textOf(row))
  return texts
}
