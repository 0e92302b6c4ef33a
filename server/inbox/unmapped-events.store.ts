import type { Queries, Tx } from '../platform/database/database.ts'

const REASON = 'no rule maps event type '

/** The stored reason of an event that no rule maps; by it the events of one type are found. */
export function unmappedReason(type: string): string {
  return `${REASON}${type}`
}

/** The event type in such a reason; `null` for any other reason. */
export function typeOfReason(reason: string | null): string | null {
  return reason?.startsWith(REASON) ? reason.slice(REASON.length) : null
}

function unmappedEvents(db: Queries, type: string) {
  return db
    .selectFrom('inbound_events as event')
    .select('event.id')
    .where('event.state', '=', 'set_aside')
    .where('event.source', '=', 'processor')
    .where('event.reason', '=', unmappedReason(type))
}

/** The first events of a type that no rule maps and whose body is kept, by id from the one after `after`. */
export async function findUnmappedEvents(
  db: Queries,
  type: string,
  after: string,
  limit: number,
): Promise<string[]> {
  const rows = await unmappedEvents(db, type)
    .innerJoin('inbound_bodies as body', 'body.event_id', 'event.id')
    .where('event.id', '>', after)
    .orderBy('event.id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

export async function hasUnmappedEvents(db: Queries, type: string): Promise<boolean> {
  return (await unmappedEvents(db, type).limit(1).executeTakeFirst()) !== undefined
}

/** Makes events that were set aside due at `now` (epoch ms), with all their tries ahead. */
export async function makeEventsDue(tx: Tx, ids: readonly string[], now: number): Promise<void> {
  await tx
    .updateTable('inbound_events')
    .set({
      state: 'pending',
      attempts: 0,
      next_attempt_at: now,
      finished_at: null,
      lease_token: null,
      lease_until: 0,
    })
    .where('id', 'in', ids)
    .where('state', '=', 'set_aside')
    .execute()
}
