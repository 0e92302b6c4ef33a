import { OPERATOR, recordAudit } from '../flags/audit.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { afterCommit, type Queries } from '../platform/database/database.ts'
import { firstIdAt, isId, NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { INBOX_TOPIC } from '../platform/topics.ts'
import { bodyHashOf, eventProblem } from './event-seal.ts'
import type { EventState } from './event-states.ts'
import {
  arrivedDeliveries,
  countEvents,
  type EventFilter,
  eventsAfter,
  eventsByDelivery,
  eventsByIds,
  findEvents,
  makeDue,
  type StoredEventFilter,
} from './events.store.ts'
import { BATCH_BYTES } from './inbox.service.ts'
import { type BodyRow, type EventRow, leadingUpToBytes, readBodies } from './inbox.store.ts'
import { closeSetAsideFlag } from './set-aside.service.ts'

export type { EventFilter, StoredEventFilter } from './events.store.ts'
export type { EventRow } from './inbox.store.ts'

/** The newest events, for the operator. */
export function listEvents(platform: Platform, filter: EventFilter): Promise<EventRow[]> {
  return findEvents(platform.database.reader, filter)
}

const MOST_CANDIDATES = 20
const PROCESSOR_SCOPE = 'processor'

/** The events that an operator may mean by this name: an event id, or a sender's delivery id. */
export async function findEventsNamed(platform: Platform, name: string): Promise<EventRow[]> {
  const { reader } = platform.database
  const text = name.trim()
  const byId = isId(text.toLowerCase()) ? await eventsByIds(reader, [text.toLowerCase()]) : []
  if (byId.length > 0) return byId
  return text === '' || text.includes('\0') ? [] : eventsByDelivery(reader, text, MOST_CANDIDATES)
}

/** Which of the processor's delivery ids have not arrived. */
export async function unknownDeliveries(db: Queries, deliveryIds: readonly string[]): Promise<string[]> {
  if (deliveryIds.length === 0) return []
  const arrived = new Set(await arrivedDeliveries(db, PROCESSOR_SCOPE, deliveryIds))
  return deliveryIds.filter((id) => !arrived.has(id))
}

/** The raw body; `null` after its retention time. */
export async function eventBody(platform: Platform, eventId: string): Promise<Buffer | null> {
  const [body] = await readBodies(platform.database.reader, [eventId])
  return bytesOf(body)
}

/** The raw body, to be sent again. Refuses with `conflict` an event that is not the one that was received. */
export async function bodyToSend(platform: Platform, event: EventRow): Promise<Buffer | null> {
  const [body] = await readBodies(platform.database.reader, [event.id])
  refuseForged(platform, event, body)
  return bytesOf(body)
}

function refuseForged({ keys }: Pick<Platform, 'keys'>, event: EventRow, body: BodyRow | undefined): void {
  const problem = eventProblem(keys, event, body ? bodyHashOf(body) : null)
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
    const [body] = await readBodies(tx, [eventId])
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
const PAGE = 1000

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
    const recent = await this.#recent()
    const recentIds = new Set(recent.map((row) => row.id))
    const older = await this.#olderPending(recentIds)
    const changed = [...older, ...recent].filter((row) => this.#known.get(row.id) !== versionOf(row))
    for (const row of changed) this.#known.set(row.id, versionOf(row))
    for (const [id, version] of this.#known) {
      if (!isPending(version) && !recentIds.has(id)) this.#known.delete(id)
    }
    return changed
  }

  async #recent(): Promise<EventRow[]> {
    const horizon = this.#platform.clock.now() - OVERLAP_MS
    const rows: EventRow[] = []
    for (let after = firstIdAt(Math.max(this.#startedAt, horizon)); ; ) {
      const page = await eventsAfter(this.#platform.database.reader, null, after, PAGE)
      rows.push(...page)
      if (page.length < PAGE) return rows
      after = page.at(-1)?.id ?? after
    }
  }

  /** Known events that were pending and are too old for `#recent`. */
  #olderPending(recentIds: ReadonlySet<string>): Promise<EventRow[]> {
    const ids = [...this.#known].flatMap(([id, version]) =>
      isPending(version) && !recentIds.has(id) ? [id] : [],
    )
    return eventsByIds(this.#platform.database.reader, ids.slice(0, PAGE))
  }
}

function versionOf(row: EventRow): string {
  return `${row.state} ${row.attempts}`
}

function isPending(version: string): boolean {
  return version.startsWith('pending')
}

/** An event as the inbox stored it, and its outcome. */
export interface StoredEvent {
  id: string
  scope: string
  topic: string | null
  /** This delivery id came before with another body. */
  conflicting: boolean
  receivedAt: number
  state: EventState
  /** Why it was ignored or set aside. */
  reason: string | null
  result: Record<string, unknown> | null
  /** `null` after the retention time of the raw body. */
  rawBody: Buffer | null
  /** Why it is not the event that intake sealed; `null` when it is. */
  problem: string | null
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
    const rows: EventRow[] = await eventsAfter(db, filter, after, MAX_EVENTS)
    const ids = await leadingUpToBytes(
      db,
      rows.map(({ id }) => id),
      BATCH_BYTES,
    )
    after = ids.at(-1)
    if (after === undefined) return
    const bodies = new Map((await readBodies(db, ids)).map((body) => [body.event_id, body]))
    yield rows.slice(0, ids.length).map((row) => storedEvent(keys, row, bodies.get(row.id)))
  }
}

function storedEvent(keys: AppKeys, row: EventRow, body: BodyRow | undefined): StoredEvent {
  return {
    id: row.id,
    scope: row.scope,
    topic: row.topic,
    conflicting: row.conflict_hash !== '',
    receivedAt: row.received_at,
    state: row.state,
    reason: row.reason,
    result: row.result === null ? null : JSON.parse(row.result),
    rawBody: bytesOf(body),
    problem: eventProblem(keys, row, body ? bodyHashOf(body) : null),
  }
}

export function countStoredEvents(db: Queries, filter: StoredEventFilter): Promise<number> {
  return filter.scopes?.length === 0 ? Promise.resolve(0) : countEvents(db, filter)
}
