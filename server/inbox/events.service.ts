import { jsonOrNull } from '../../shared/json.ts'
import { OPERATOR, recordAudit } from '../flags/audit.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { afterCommit, type Queries } from '../platform/database/database.ts'
import { firstIdAt, isId, NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { INBOX_TOPIC } from '../platform/topics.ts'
import {
  appliedEvents,
  BATCH_BYTES,
  type BodyRow,
  bodyHashOf,
  countEvents,
  type EventRow,
  eventProblem,
  eventsAfter,
  eventsByDelivery,
  eventsByIds,
  leadingUpToBytes,
  makeDue,
  type OrderOfStore,
  readBodies,
  type StoredEventFilter,
  textOf,
} from './inbox.store.ts'
import { closeSetAsideFlag } from './set-aside.service.ts'

export { type EventRow, listEvents, unknownDeliveries } from './inbox.store.ts'

const MOST_CANDIDATES = 20

/** The events that an operator may mean by this name: an event id, or a delivery id, which several senders or bodies may share. */
export async function findEventsNamed(platform: Platform, name: string): Promise<EventRow[]> {
  const { reader } = platform.database
  const text = name.trim()
  const byId = isId(text.toLowerCase()) ? await eventsByIds(reader, [text.toLowerCase()]) : []
  if (byId.length > 0 || text === '' || text.includes('\0')) return byId
  return eventsByDelivery(reader, text, MOST_CANDIDATES)
}

/** The raw body; `null` after its retention time. */
export async function eventBody({ database }: Platform, eventId: string): Promise<Buffer | null> {
  return bytesOf((await readBodies(database.reader, [eventId])).get(eventId))
}

/** The raw body, to be sent again. Refuses with `conflict` an event that is not the one that was received. */
export async function bodyToSend(platform: Platform, event: EventRow): Promise<Buffer | null> {
  const body = (await readBodies(platform.database.reader, [event.id])).get(event.id)
  refuseForged(platform, event, body)
  return bytesOf(body)
}

function refuseForged({ keys }: Pick<Platform, 'keys'>, event: EventRow, body: BodyRow | undefined): void {
  const problem = eventProblem(keys, event, body && bodyHashOf(body))
  if (problem !== null)
    throw new Refusal('conflict', `This event is not the one that was received: ${problem}.`)
}

function bytesOf(body: BodyRow | undefined): Buffer | null {
  return body ? Buffer.from(body.body, body.encoding) : null
}

/**
 * Makes an event due that was set aside or waits for its next attempt. Refuses with `not_found`, and with `conflict` an event that is
 * settled, held by a worker, without its body, or another body under a known delivery id.
 */
export function retryEvent(platform: Platform, eventId: string, reason: string | null): Promise<EventRow> {
  return platform.database.transaction(async (tx) => {
    const [event] = await eventsByIds(tx, [eventId])
    if (!event) throw new Refusal('not_found', `Event ${eventId} not found.`)
    if (event.state === 'done' || event.state === 'ignored')
      throw new Refusal('conflict', `This event is ${event.state}: it is never applied twice.`)
    if (event.conflict_hash !== '')
      throw new Refusal(
        'conflict',
        'Its delivery id came before with another body; only the first one counts.',
      )
    const body = (await readBodies(tx, [eventId])).get(eventId)
    if (!body)
      throw new Refusal('conflict', 'Its body is past the retention time. Ask the sender to send it again.')
    refuseForged(platform, event, body)
    const now = platform.clock.now()
    if ((await makeDue(tx, [eventId], now)) === 0)
      throw new Refusal('conflict', 'A worker is processing this event. Try again shortly.')
    await closeSetAsideFlag(platform, tx, event)
    await recordAudit(platform, tx, {
      actor: OPERATOR,
      action: 'event.retry',
      subjectType: 'inbound_event',
      subjectId: eventId,
      reason,
      before: { state: event.state, attempts: event.attempts, why: event.reason },
      after: { state: 'pending', attempts: 0 },
    })
    afterCommit(tx, () => platform.topics.send(INBOX_TOPIC))
    return { ...event, state: 'pending', attempts: 0, next_attempt_at: now, finished_at: null }
  })
}

/** How far back each read goes: an id is made before its row is on disk, by this or another process. */
const OVERLAP_MS = 30_000
/** Known events that are looked up again in each read. */
const MOST_PENDING = 1000

/** Reports events that are new or changed since the last call. */
export class EventWatch {
  readonly #platform: Platform
  readonly #startedAt: number
  readonly #known = new Map<string, string>()

  constructor(platform: Platform) {
    this.#platform = platform
    this.#startedAt = platform.clock.now()
  }

  async changes(): Promise<EventRow[]> {
    const { clock, database } = this.#platform
    const after = firstIdAt(Math.max(this.#startedAt, clock.now() - OVERLAP_MS))
    const recent = await eventsAfter(database.reader, after)
    const recentIds = new Set(recent.map(({ id }) => id))
    const olderPending: string[] = []
    for (const [id, version] of this.#known) {
      if (recentIds.has(id)) continue
      if (version.startsWith('pending')) olderPending.push(id)
      else this.#known.delete(id)
    }
    const older = await eventsByIds(database.reader, olderPending.slice(0, MOST_PENDING))
    const changed = [...older, ...recent].filter((row) => this.#known.get(row.id) !== versionOf(row))
    for (const row of changed) this.#known.set(row.id, versionOf(row))
    return changed
  }
}

function versionOf(row: EventRow): string {
  return `${row.state} ${row.attempts}`
}

/** An event as the inbox stored it. */
export interface StoredEvent extends EventRow {
  /** The raw body read as UTF-8; `null` after its retention time. */
  text: string | null
  /** Why it is not the event that intake sealed; `null` when it is. */
  problem: string | null
}

/** The fields of a kept outcome that name what an event changed. */
export type ResultId = 'billing_cycle_id' | 'sale_id' | 'pending_order_id'

/** The id of what an event changed, by its kept outcome; `null` when it was about something else. */
export function idInResult({ result }: Pick<EventRow, 'result'>, field: ResultId) {
  const id = (jsonOrNull(result ?? '') as Record<string, unknown> | null)?.[field]
  return typeof id === 'string' && isId(id) ? id : null
}

const MAX_EVENTS = 100

/** All stored events that match, in the order of arrival, in pages of at most `MAX_EVENTS` and `BATCH_BYTES` of bodies. */
export async function* storedEvents(
  { keys }: Pick<Platform, 'keys'>,
  db: Queries,
  filter: StoredEventFilter,
): AsyncGenerator<StoredEvent[]> {
  if (filter.scopes?.length === 0) return
  for (let after: string | undefined = NIL_ID; ; ) {
    const rows: EventRow[] = await eventsAfter(db, after, filter, MAX_EVENTS)
    const found = rows.map(({ id }) => id)
    const ids = await leadingUpToBytes(db, found, BATCH_BYTES)
    after = ids.at(-1)
    if (after === undefined) return
    const bodies = await readBodies(db, ids)
    yield rows.slice(0, ids.length).map((row) => storedEvent(keys, row, bodies.get(row.id)))
  }
}

function storedEvent(keys: AppKeys, row: EventRow, body: BodyRow | undefined): StoredEvent {
  const problem = eventProblem(keys, row, body && bodyHashOf(body))
  return { ...row, text: body ? textOf(body) : null, problem }
}

/** The events from which the pending orders of these orders come, oldest first, with at most `BATCH_BYTES` of bodies. */
export async function eventsOfOrders(
  { keys }: Pick<Platform, 'keys'>,
  db: Queries,
  orders: readonly OrderOfStore[],
): Promise<StoredEvent[]> {
  const rows = await appliedEvents(db, orders, 'done')
  const found = rows.map(({ id }) => id)
  const ids = await leadingUpToBytes(db, found, BATCH_BYTES)
  const bodies = await readBodies(db, ids)
  return rows.slice(0, ids.length).map((row) => storedEvent(keys, row, bodies.get(row.id)))
}

/** Which of these orders their stores took back before anything else was known of them. */
export async function ordersTakenBack(db: Queries, orders: readonly OrderOfStore[]): Promise<OrderOfStore[]> {
  const events = await appliedEvents(db, orders, 'ignored')
  return events.map(({ scope, order_id }) => ({ store_id: scope, order_id: order_id ?? '' }))
}

export function countStoredEvents(db: Queries, filter: StoredEventFilter): Promise<number> {
  return filter.scopes?.length === 0 ? Promise.resolve(0) : countEvents(db, filter)
}
