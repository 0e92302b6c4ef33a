import type { Queries } from '../platform/database/database.ts'
import { bodyHashOf, leadingUpToBytes, readBodies, textOf } from './inbox.store.ts'

export { upcomingEvents } from './inbox.store.ts'

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
