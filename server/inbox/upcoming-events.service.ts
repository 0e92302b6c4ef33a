import type { Queries } from '../platform/database.ts'
import { textOf } from './stored-text.ts'
import { readBodies, type Upcoming, upcomingStatement } from './upcoming-events.store.ts'

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

/** The raw bodies of these events, read as UTF-8, by event id: of those that still have one. */
export async function textsOf(db: Queries, eventIds: readonly string[]): Promise<Map<string, string>> {
  const rows = await readBodies(db, eventIds)
  return new Map(rows.map((row) => [row.event_id, textOf(row)]))
}
