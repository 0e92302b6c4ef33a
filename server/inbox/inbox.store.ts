import { hash } from 'node:crypto'
import { type Selectable, type SqlBool, sql } from 'kysely'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { countOf, inList, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { rowProblem } from '../platform/database/protected-rows.ts'
import type { Schema } from '../platform/database/schema.ts'
import { firstIdAt, ID_SLACK_MS } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { LeaseQueue, type Only } from '../platform/queue/lease-queue.ts'
import type { EventSource, EventState, SetAsideCode } from './event-states.ts'
import { LONGEST_DELAY_MS } from './retry.rule.ts'

export type EventRow = Selectable<Schema['inbound_events']>

/** Pending events. The events of a sender are applied in the order in which they came. */
export const EVENT_QUEUE = new LeaseQueue<EventRow>({
  name: 'inbound_events',
  isOpen: sql`state = 'pending'`,
  dueAt: 'next_attempt_at',
  leaseUntil: 'lease_until',
  attempts: 'attempts',
  lane: { column: 'scope', type: 'text' },
  maxDelayMs: LONGEST_DELAY_MS,
})

export function fromSource(source: EventSource): Only {
  return sql`source = ${source}`
}

/** What became of an event, and the lease under which it was applied. */
export interface Settlement {
  row_id: string
  token: string
  state: EventState
  reason: string | null
  reason_code: SetAsideCode | null
  result: string | null
  /** Of an order that is set aside, so that it can be found. */
  order_id: string | null
  order_name: string | null
  attempts: number
  next_attempt_at: number
  finished_at: number | null
}

/** Ends the leases of these events; returns the ids of those that were still held under their token. */
export function settleStatement(db: Queries, settlements: readonly Settlement[]) {
  return EVENT_QUEUE.completeManyStatement<Omit<Settlement, 'row_id' | 'token'>>(
    db,
    {
      state: 'text',
      reason: 'text',
      reason_code: 'text',
      result: 'text',
      order_id: 'text',
      order_name: 'text',
      attempts: 'int',
      next_attempt_at: 'bigint',
      finished_at: 'bigint',
    },
    settlements,
  )
}

export function eventsByIds(db: Queries, ids: readonly string[]): Promise<EventRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  return db.selectFrom('inbound_events').selectAll().where('id', 'in', ids).execute()
}

/** The first events with this delivery id, which several senders or bodies may share. */
export function eventsByDelivery(db: Queries, deliveryId: string, limit: number): Promise<EventRow[]> {
  const events = db.selectFrom('inbound_events').selectAll().where('delivery_id', '=', deliveryId)
  return events.orderBy('id').limit(limit).execute()
}

export interface StoredEventFilter {
  source: EventSource
  /** `null`: of every sender. */
  scopes: readonly string[] | null
  /** Received at this time or later, epoch ms; `null`: all. */
  since: number | null
}

function matching(db: Queries, { source, scopes, since }: StoredEventFilter) {
  return db
    .selectFrom('inbound_events')
    .where('source', '=', source)
    .$if(since !== null, (query) => query.where('received_at', '>=', since ?? 0))
    .$if(scopes !== null, (query) => query.where('scope', 'in', scopes ?? []))
}

/** Events after the id `after`, by id; all without a filter, and without a limit. */
export function eventsAfter(db: Queries, after: string, filter?: StoredEventFilter, limit?: number) {
  return (filter ? matching(db, filter) : db.selectFrom('inbound_events'))
    .selectAll()
    .where('id', '>', after)
    .orderBy('id')
    .$if(limit !== undefined, (query) => query.limit(limit ?? 0))
    .execute()
}

export function countEvents(db: Queries, filter: StoredEventFilter): Promise<number> {
  return countOf(matching(db, filter))
}

/** Makes events due with all their attempts left, except those that are held or settled. Returns how many. */
export async function makeDue(tx: Tx, ids: readonly string[], now: number): Promise<number> {
  const due = { state: 'pending', attempts: 0, next_attempt_at: now, finished_at: null } as const
  const updated = await tx
    .updateTable('inbound_events')
    .set({ ...due, lease_token: null, lease_until: 0 })
    .where('id', 'in', ids)
    .where('state', 'in', ['pending', 'set_aside'])
    .where((where) => where.or([where('lease_token', 'is', null), where('lease_until', '<=', now)]))
    .executeTakeFirst()
  return Number(updated.numUpdatedRows)
}

interface EventFilter {
  source?: EventSource | undefined
  state?: EventState | undefined
  /** One sender's delivery: the event, and any with the same id and another body. */
  delivery?: { scope: string; deliveryId: string } | undefined
  /** Of these senders: ids of stores, or `processor`. */
  scopes?: readonly string[] | undefined
  /** Received at this moment (epoch ms) or later. */
  since?: number | null
  /** Only events with a lower id, so older ones. */
  before?: string | null
  limit: number
}

/** The newest events, newest first, for the operator. */
export function listEvents({ database }: Platform, filter: EventFilter): Promise<EventRow[]> {
  const { source, state, delivery, scopes, since, before, limit } = filter
  let query = database.reader.selectFrom('inbound_events').selectAll().orderBy('id', 'desc').limit(limit)
  if (source) query = query.where('source', '=', source)
  if (state) query = query.where('state', '=', state)
  if (before) query = query.where('id', '<', before)
  if (scopes) query = query.where('scope', 'in', scopes)
  if (since) {
    query = query.where('id', '>=', firstIdAt(since - ID_SLACK_MS)).where('received_at', '>=', since)
  }
  if (delivery) {
    query = query.where('scope', '=', delivery.scope).where('delivery_id', '=', delivery.deliveryId)
  }
  return query.execute()
}

const PROCESSOR_SCOPE = 'processor'

/** Which of the processor's delivery ids have not arrived. */
export async function unknownDeliveries(db: Queries, deliveryIds: readonly string[]): Promise<string[]> {
  if (deliveryIds.length === 0) return []
  const rows = await db
    .selectFrom('inbound_events')
    .select('delivery_id')
    .where('scope', '=', PROCESSOR_SCOPE)
    .where(sql<SqlBool>`delivery_id ${inList(dialectOf(db), 'text', deliveryIds)}`)
    .execute()
  const arrived = new Set(rows.map((row) => row.delivery_id))
  return deliveryIds.filter((id) => !arrived.has(id))
}

export type SetAsideClass = 'conflicting' | 'unreadable' | 'failed'

/** The number of events set aside in each scope, of one class, received at `since` (epoch ms) or later. Omits scopes without any. */
export async function countSetAside(
  db: Queries,
  scopes: readonly string[],
  name: SetAsideClass,
  since = 0,
): Promise<Map<string, number>> {
  if (scopes.length === 0) return new Map()
  const rows = await db
    .selectFrom('inbound_events')
    .select((select) => ['scope', select.fn.countAll<number>().as('events')])
    .where('state', '=', sql.lit('set_aside'))
    .where('scope', 'in', scopes)
    .where('received_at', '>=', since)
    .where('conflict_hash', name === 'conflicting' ? '<>' : '=', '')
    .$if(name !== 'conflicting', (query) =>
      query.where('reason_code', name === 'unreadable' ? '=' : 'is distinct from', 'unreadable'),
    )
    .groupBy('scope')
    .execute()
  return new Map(rows.map(({ scope, events }) => [scope, Number(events)]))
}

/** When an event that cannot be read for this reason came last, epoch ms, by scope. */
export async function lastUnreadableOf(db: Queries, scopes: readonly string[], reason: string) {
  if (scopes.length === 0) return new Map<string, number>()
  const rows = await db
    .selectFrom('inbound_events')
    .select((select) => ['scope', select.fn.max<number>('received_at').as('at')])
    .where('state', '=', sql.lit('set_aside'))
    .where('scope', 'in', scopes)
    .where('reason', '=', reason)
    .groupBy('scope')
    .execute()
  return new Map(rows.map(({ scope, at }) => [scope, Number(at)]))
}

/** The most unreadable orders that are shown for one order id or name. */
const MOST_FOUND = 20

/** Events set aside as unreadable whose order has this id or name, newest first. `storeIds`: `null` for all stores. */
export function unreadableOrders(
  db: Queries,
  order: { id: string } | { name: string },
  storeIds: readonly string[] | null,
): Promise<EventRow[]> {
  return db
    .selectFrom('inbound_events')
    .selectAll()
    .where('id' in order ? 'order_id' : 'order_name', '=', 'id' in order ? order.id : order.name)
    .where('state', '=', 'set_aside')
    .$if(storeIds !== null, (query) => query.where(isIn(db, 'scope', storeIds ?? [])))
    .orderBy('id', 'desc')
    .limit(MOST_FOUND)
    .execute()
}

function isIn(db: Queries, column: 'scope' | 'order_id', values: readonly string[]) {
  return sql<SqlBool>`${sql.ref(column)} ${inList(dialectOf(db), 'text', values)}`
}

/** A store's order, as events name it. */
export interface OrderOfStore {
  store_id: string
  order_id: string
}

const named = valuesTable<OrderOfStore>('named', { store_id: 'text', order_id: 'text' })

/** The applied events that name these orders, oldest first. */
export async function appliedEvents(
  db: Queries,
  orders: readonly OrderOfStore[],
  state: 'done' | 'ignored',
): Promise<EventRow[]> {
  return orders.length === 0 ? [] : (await appliedEventsStatement(db, orders, state).execute(db)).rows
}

/** By the index of orders, not of senders; on PostgreSQL one look-up for each order: see `bodiesOf`. */
export function appliedEventsStatement(
  db: Queries,
  orders: readonly OrderOfStore[],
  state: 'done' | 'ignored',
) {
  const dialect = dialectOf(db)
  const isNamed = sql`event.order_id = named.order_id and event.scope || '' = named.store_id and event.state = ${state}`
  const events =
    dialect === 'sqlite'
      ? sql`join inbound_events as event on ${isNamed}`
      : sql`cross join lateral (select event.* from inbound_events as event where ${isNamed} offset 0) as event`
  return sql<EventRow>`select event.* from ${named(dialect, orders)} ${events} order by event.id`
}

/** Why events of these stores were set aside that hold these orders, by order id. */
export async function setAsideReasons(
  db: Queries,
  storeIds: readonly string[],
  orderIds: readonly string[],
): Promise<Map<string, string>> {
  if (orderIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('inbound_events')
    .select(['order_id', 'reason'])
    .where(isIn(db, 'order_id', orderIds))
    .where(isIn(db, 'scope', storeIds))
    .where('state', '=', 'set_aside')
    .orderBy('id')
    .execute()
  return new Map(rows.map((row) => [row.order_id ?? '', row.reason ?? '']))
}

function unmappedEvents(db: Queries, reason: string) {
  return db
    .selectFrom('inbound_events as event')
    .select('event.id')
    .where('event.state', '=', 'set_aside')
    .where('event.source', '=', 'processor')
    .where('event.reason', '=', reason)
}

export async function hasUnmappedEvents(db: Queries, reason: string): Promise<boolean> {
  return (await unmappedEvents(db, reason).limit(1).executeTakeFirst()) !== undefined
}

/** The first unmapped events with this reason whose body is stored, after the id `after`. */
export async function unmappedEventsAfter(tx: Tx, reason: string, after: string, limit: number) {
  const rows = await unmappedEvents(tx, reason)
    .innerJoin('inbound_bodies as body', 'body.event_id', 'event.id')
    .where('event.id', '>', after)
    .orderBy('event.id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

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

/** More waiting events than this are not counted. */
const BACKLOG_COUNTED = 10_000

/** How many events of a source wait (at most `BACKLOG_COUNTED`), along the index of due events, and when the oldest was received. */
export function eventBacklog(
  { database }: Platform,
  source: EventSource,
): Promise<{ waiting: number; oldest: number | null }> {
  return database.reader
    .selectFrom((from) =>
      from
        .selectFrom('inbound_events')
        .select('received_at')
        .where('state', '=', 'pending')
        .where('source', '=', source)
        .orderBy('next_attempt_at')
        .limit(BACKLOG_COUNTED)
        .as('pending'),
    )
    .select((select) => [
      select.fn.countAll<number>().as('waiting'),
      select.fn.min<number | null>('received_at').as('oldest'),
    ])
    .executeTakeFirstOrThrow()
}

export interface BodyRow {
  event_id: string
  body: string
  encoding: 'utf8' | 'base64'
}

/** A raw body, read as UTF-8. */
export function textOf({ body, encoding }: BodyRow): string {
  return encoding === 'utf8' ? body : Buffer.from(body, encoding).toString('utf8')
}

/** SHA-256 of a raw body as it came, hex. */
export function bodyHashOf({ body, encoding }: BodyRow): string {
  return hash('sha256', encoding === 'utf8' ? body : Buffer.from(body, encoding), 'hex')
}

/**
 * Why an event is not the one that intake verified and sealed; `null` when it is. `bodyHash`: of the stored body; `undefined` when it was
 * removed or not loaded.
 */
export function eventProblem(keys: AppKeys, row: EventRow, bodyHash: string | undefined): string | null {
  const problem = rowProblem(keys, 'inbound_events', row)
  if (problem !== null) return problem
  return bodyHash === undefined || bodyHash === row.body_hash
    ? null
    : 'its body is not the one that was received'
}

/** The raw bodies of these events, of those that still have one, by event id. */
export async function readBodies(db: Queries, eventIds: readonly string[]): Promise<Map<string, BodyRow>> {
  if (eventIds.length === 0) return new Map()
  const { rows } = await bodiesStatement(db, eventIds).execute(db)
  return new Map(rows.map((row) => [row.event_id, row]))
}

export function bodiesStatement(db: Queries, eventIds: readonly string[]) {
  return sql<BodyRow>`select event_id, body, encoding from ${bodiesOf(db, eventIds)}`
}

/** UTF-8 bytes of the stored bodies. Both databases know them without reading the bodies. */
export function bodySizesStatement(db: Queries, eventIds: readonly string[]) {
  return sql<{ event_id: string; bytes: number }>`
    select event_id, octet_length(body) as bytes from ${bodiesOf(db, eventIds)}`
}

/** The `offset` leaves PostgreSQL, which may not know the size of the table yet, no plan but one look-up for each id. */
function bodiesOf(db: Queries, eventIds: readonly string[]) {
  if (dialectOf(db) === 'sqlite')
    return sql`inbound_bodies as body where event_id ${inList('sqlite', 'uuid', eventIds)}`
  return sql`unnest(cast(${eventIds} as uuid[])) as given (id) cross join lateral (
    select * from inbound_bodies as body where event_id = given.id offset 0) as found`
}

/** The leading ids whose bodies take at most `maxBytes` together, but at least one. Loads no body. */
export async function leadingUpToBytes(
  db: Queries,
  eventIds: readonly string[],
  maxBytes: number,
): Promise<readonly string[]> {
  if (eventIds.length < 2) return eventIds
  const { rows } = await bodySizesStatement(db, eventIds).execute(db)
  const sizes = new Map(rows.map(({ event_id, bytes }) => [event_id, Number(bytes)]))
  let sum = 0
  const end = eventIds.findIndex((id, index) => {
    sum += sizes.get(id) ?? 0
    return index > 0 && sum > maxBytes
  })
  return end === -1 ? eventIds : eventIds.slice(0, end)
}

/** Bodies of one batch: a worker with a heap of 512 MB holds them several times while it parses and applies them. */
export const BATCH_BYTES = 32 * 1024 * 1024

/** Few bytes at a time, because SQLite visits every page that it frees. */
export async function removeBodiesPage(tx: Tx, before: number): Promise<number> {
  const old = await tx
    .selectFrom('inbound_events as event')
    .innerJoin('inbound_bodies as body', 'body.event_id', 'event.id')
    .select('event.id')
    .where('event.received_at', '<', before)
    .where('event.state', '<>', 'pending')
    .limit(500)
    .execute()
  const found = old.map(({ id }) => id)
  const ids = await leadingUpToBytes(tx, found, BATCH_BYTES)
  if (ids.length > 0) await tx.deleteFrom('inbound_bodies').where('event_id', 'in', ids).execute()
  return ids.length
}
