import { type SqlBool, sql } from 'kysely'
import { countOf, inList, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { EventSource, EventState } from './event-states.ts'
import type { EventRow } from './inbox.store.ts'

export interface EventFilter {
  source?: EventSource | undefined
  state?: EventState | undefined
  /** One sender's delivery: the event, and any with the same id and another body. */
  delivery?: { scope: string; deliveryId: string } | undefined
  /** Only events with a lower id, so older ones. */
  before?: string | null
  limit: number
}

/** Newest first. */
export function findEvents(db: Queries, filter: EventFilter): Promise<EventRow[]> {
  const { source, state, delivery, before, limit } = filter
  let query = db.selectFrom('inbound_events').selectAll().orderBy('id', 'desc').limit(limit)
  if (source) query = query.where('source', '=', source)
  if (state) query = query.where('state', '=', state)
  if (before) query = query.where('id', '<', before)
  if (delivery) {
    query = query.where('scope', '=', delivery.scope).where('delivery_id', '=', delivery.deliveryId)
  }
  return query.execute()
}

export function eventsByIds(db: Queries, ids: readonly string[]): Promise<EventRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  return db.selectFrom('inbound_events').selectAll().where('id', 'in', ids).execute()
}

/** The events with this delivery id; several when senders or bodies share it. */
export function eventsByDelivery(db: Queries, deliveryId: string, limit: number): Promise<EventRow[]> {
  return db
    .selectFrom('inbound_events')
    .selectAll()
    .where('delivery_id', '=', deliveryId)
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** Which of these delivery ids a scope has received. */
export async function arrivedDeliveries(
  db: Queries,
  scope: string,
  deliveryIds: readonly string[],
): Promise<string[]> {
  const rows = await db
    .selectFrom('inbound_events')
    .select('delivery_id')
    .where('scope', '=', scope)
    .where(sql<SqlBool>`delivery_id ${inList(dialectOf(db), 'text', deliveryIds)}`)
    .execute()
  return rows.map((row) => row.delivery_id)
}

/** Makes events due with all their attempts left, except those that are held or settled. Returns how many. */
export async function makeDue(tx: Tx, ids: readonly string[], now: number): Promise<number> {
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
    .where('id', 'in', ids)
    .where('state', 'in', ['pending', 'set_aside'])
    .where((where) => where.or([where('lease_token', 'is', null), where('lease_until', '<=', now)]))
    .executeTakeFirst()
  return Number(updated.numUpdatedRows)
}

export interface StoredEventFilter {
  source: EventSource
  /** `null`: of every sender. */
  scopes: readonly string[] | null
  /** Received at this time or later, epoch ms; `null`: all. */
  since: number | null
}

function storedEvents(db: Queries, { source, scopes, since }: StoredEventFilter) {
  return db
    .selectFrom('inbound_events')
    .where('source', '=', source)
    .$if(since !== null, (query) => query.where('received_at', '>=', since ?? 0))
    .$if(scopes !== null, (query) => query.where('scope', 'in', scopes ?? []))
}

/** Events after the id `after`, by id; all when `filter` is `null`. */
export function eventsAfter(
  db: Queries,
  filter: StoredEventFilter | null,
  after: string,
  limit: number,
): Promise<EventRow[]> {
  const events = filter ? storedEvents(db, filter) : db.selectFrom('inbound_events')
  return events.selectAll().where('id', '>', after).orderBy('id').limit(limit).execute()
}

export function countEvents(db: Queries, filter: StoredEventFilter): Promise<number> {
  return countOf(storedEvents(db, filter))
}

export type SetAsideClass = 'conflicting' | 'unreadable' | 'failed'

/** The number of events set aside in each scope, of one class, received at `since` (epoch ms) or later. Omits scopes without any. */
export async function countSetAside(
  db: Queries,
  scopes: readonly string[],
  which: { class: SetAsideClass; since?: number },
): Promise<Map<string, number>> {
  if (scopes.length === 0) return new Map()
  const rows = await db
    .selectFrom('inbound_events')
    .select((select) => ['scope', select.fn.countAll<number>().as('events')])
    .where('state', '=', sql.lit('set_aside'))
    .where('scope', 'in', scopes)
    .$if(which.since !== undefined, (query) => query.where('received_at', '>=', which.since ?? 0))
    .where(isOfClass(which.class))
    .groupBy('scope')
    .execute()
  return new Map(rows.map(({ scope, events }) => [scope, Number(events)]))
}

function isOfClass(name: SetAsideClass) {
  if (name === 'conflicting') return sql<boolean>`conflict_hash <> ''`
  const unreadable = sql<boolean>`reason like 'malformed: %'`
  return name === 'unreadable'
    ? sql<boolean>`conflict_hash = '' and ${unreadable}`
    : sql<boolean>`conflict_hash = '' and not ${unreadable}`
}

/** What could be read of an order that was set aside. */
export interface UnreadableOrder {
  event_id: string
  order_id: string | null
  order_name: string | null
}

const unreadableOrderRows = valuesTable<UnreadableOrder>('found', {
  event_id: 'uuid',
  order_id: 'text',
  order_name: 'text',
})

/** Stores what could be read of orders that were set aside, so that they can be searched. */
export async function saveUnreadable(tx: Tx, orders: readonly UnreadableOrder[]): Promise<void> {
  if (orders.length === 0) return
  await sql`
    update inbound_events set order_id = found.order_id, order_name = found.order_name
    from ${unreadableOrderRows(dialectOf(tx), orders)} where inbound_events.id = found.event_id`.execute(tx)
}

/** Events set aside whose order has this id or name, newest first. `storeIds`: `null` for all stores. */
export function findUnreadable(
  db: Queries,
  order: { id: string } | { name: string },
  storeIds: readonly string[] | null,
  limit: number,
): Promise<EventRow[]> {
  const [column, value] =
    'id' in order ? (['order_id', order.id] as const) : (['order_name', order.name] as const)
  return db
    .selectFrom('inbound_events')
    .selectAll()
    .where(column, '=', value)
    .where('state', '=', 'set_aside')
    .$if(storeIds !== null, (query) =>
      query.where(sql<boolean>`scope ${inList(dialectOf(db), 'text', storeIds ?? [])}`),
    )
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

const UNMAPPED = 'no rule maps event type '

/** The stored reason of an event that no rule maps, by which the events of one type are found. */
export function unmappedReason(type: string): string {
  return `${UNMAPPED}${type}`
}

/** The event type in such a reason; `null` for any other reason. */
export function unmappedType(reason: string | null): string | null {
  return reason?.startsWith(UNMAPPED) ? reason.slice(UNMAPPED.length) : null
}

function unmappedEvents(db: Queries, type: string) {
  return db
    .selectFrom('inbound_events as event')
    .select('event.id')
    .where('event.state', '=', 'set_aside')
    .where('event.source', '=', 'processor')
    .where('event.reason', '=', unmappedReason(type))
}

/** The first events of a type that no rule maps and whose body is stored, by id after `after`. */
export async function unmappedEventsAfter(
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

/** Set-aside events of these stores that hold these orders, by the index on order ids. */
export async function findSetAsideOrders(
  db: Queries,
  storeIds: readonly string[],
  orderIds: readonly string[],
): Promise<Pick<EventRow, 'order_id' | 'reason'>[]> {
  if (orderIds.length === 0) return []
  const dialect = dialectOf(db)
  return db
    .selectFrom('inbound_events')
    .select(['order_id', 'reason'])
    .where(sql<boolean>`order_id ${inList(dialect, 'text', orderIds)}`)
    .where(sql<boolean>`scope ${inList(dialect, 'text', storeIds)}`)
    .where('state', '=', 'set_aside')
    .orderBy('id')
    .execute()
}
