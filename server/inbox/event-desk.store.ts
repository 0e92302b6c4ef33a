import type { Queries, Tx } from '../platform/database/database.ts'
import type { EventRow } from './inbox.store.ts'

export function findEventById(db: Queries, id: string): Promise<EventRow | undefined> {
  return db.selectFrom('inbound_events').selectAll().where('id', '=', id).executeTakeFirst()
}

/** The events of one sender's delivery id; several where senders, or bodies, share it. */
export function findEventsByDelivery(db: Queries, deliveryId: string, limit: number): Promise<EventRow[]> {
  return db
    .selectFrom('inbound_events')
    .selectAll()
    .where('delivery_id', '=', deliveryId)
    .orderBy('id')
    .limit(limit)
    .execute()
}

export async function findBody(db: Queries, eventId: string): Promise<Buffer | null> {
  const row = await db
    .selectFrom('inbound_bodies')
    .select(['body', 'encoding'])
    .where('event_id', '=', eventId)
    .executeTakeFirst()
  return row ? Buffer.from(row.body, row.encoding) : null
}

/** Whether an event's raw body is still kept, without reading it. */
export async function hasBody(db: Queries, eventId: string): Promise<boolean> {
  const row = await db
    .selectFrom('inbound_bodies')
    .select('event_id')
    .where('event_id', '=', eventId)
    .executeTakeFirst()
  return row !== undefined
}

/** Events after the id `after`, oldest first. */
export function eventsAfter(db: Queries, after: string, limit: number): Promise<EventRow[]> {
  return db
    .selectFrom('inbound_events')
    .selectAll()
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
}

export function eventsByIds(db: Queries, ids: readonly string[]): Promise<EventRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  return db.selectFrom('inbound_events').selectAll().where('id', 'in', ids).execute()
}

/** Makes an event that waits, or was set aside, due at once with all its tries ahead; false when it is held or settled. */
export async function makeDue(tx: Tx, eventId: string, now: number): Promise<boolean> {
  const updated = await tx
    .updateTable('inbound_events')
    .set({
      state: 'pending',
      attempts: 0,
      next_attempt_at: now,
      finished_at: null,
      lease_token: null,
      lease_until: 0,
    })
    .where('id', '=', eventId)
    .where('state', 'in', ['pending', 'set_aside'])
    .where((where) => where.or([where('lease_token', 'is', null), where('lease_until', '<=', now)]))
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}
