import { randomInt } from 'node:crypto'
import { DAY_MS } from '../../shared/durations.ts'
import { flagForgedRows } from '../flags/forged-rows.service.ts'
import { afterCommit, type Database, type Tx } from '../platform/database/database.ts'
import { noteCounted } from '../platform/database/protected-rows.ts'
import { createLoopYield } from '../platform/loop-yield.ts'
import type { Platform } from '../platform/platform.ts'
import { bodyHashOf, eventProblem, NOT_AS_RECEIVED } from './event-seal.ts'
import type { EventSource, EventState } from './event-states.ts'
import { saveUnreadable, type UnreadableOrder } from './events.store.ts'
import {
  type BodyRow,
  countPending,
  deleteOldBodies,
  EVENT_QUEUE,
  type EventRow,
  fromSource,
  leadingUpToBytes,
  readBodies,
  type Settlement,
  settleStatement,
  textOf,
} from './inbox.store.ts'
import { decideRetry, MAX_ATTEMPTS } from './retry.rule.ts'
import { type FlaggedEvent, flagSetAside } from './set-aside.service.ts'

export { EVENT_SOURCES, type EventSource } from './event-states.ts'

/** What could be read of an order whose event is set aside. */
export type OrderNames = Omit<UnreadableOrder, 'event_id'>

/** An event that this worker holds until its lease runs out. */
export interface ClaimedEvent {
  id: string
  source: EventSource
  scope: string
  deliveryId: string
  topic: string | null
  /** This delivery id came before with another body. */
  conflicting: boolean
  /** `null` when the raw body is past its retention time. Throws when the claim did not load it. */
  readonly rawBody: Buffer | null
  /** The raw body read as UTF-8. */
  readonly text: string | null
  receivedAt: number
  /** When the sender says that it was triggered, epoch ms; unsigned. */
  triggeredAt: number | null
  /** Attempts, this one included. */
  attempts: number
  /** The fencing token of the claim. */
  leaseToken: string
  /** Why it is not the event that intake sealed; `null` when it is. Such an event is set aside. */
  problem: string | null
}

/** Far longer than a batch takes. After a crash, the events of the dead process wait for its end. */
const LEASE_MS = 15_000
/** Bodies of one batch: a worker with a heap of 512 MB holds them several times while it parses and applies them. */
export const BATCH_BYTES = 32 * 1024 * 1024

export interface ClaimOptions {
  limit: number
  /** Events whose bodies are not loaded, because they have been read already, with the hash of what was read. */
  read?: ReadonlyMap<string, { bodyHash: string }> | undefined
}

/**
 * Leases due events of a source, oldest first, and counts an attempt for each before it loads their bodies: at most `limit`, and
 * `BATCH_BYTES` of bodies. No two workers hold events of one scope. An event with an earlier attempt comes alone, so that an event that
 * ends the process uses up only its own attempts. Does not load the body of an event that `hasNoAttemptsLeft`.
 */
export async function claimEvents(
  platform: Platform,
  source: EventSource,
  { limit, read }: ClaimOptions,
): Promise<ClaimedEvent[]> {
  const { database, clock, ids } = platform
  const now = clock.now()
  const lease = { token: ids.next(), until: now + LEASE_MS }
  const only = fromSource(source)
  const rows = await EVENT_QUEUE.claim(database, { now, limit, lease, only, choose: chooseBatch })
  const wanted = rows.flatMap(({ id, attempts }) => (attempts >= MAX_ATTEMPTS || read?.has(id) ? [] : [id]))
  const found = wanted.length === 0 ? [] : await loadBodies(database, wanted, lease.token)
  const bodies = new Map<string, BodyRow | null>(wanted.map((id) => [id, null]))
  for (const body of found) bodies.set(body.event_id, body)
  return rows.map((row) => {
    const body = bodies.get(row.id)
    const bodyHash = body ? bodyHashOf(body) : (read?.get(row.id)?.bodyHash ?? null)
    return claimedEvent(row, lease.token, body, eventProblem(platform.keys, row, bodyHash))
  })
}

/** Gives the events back when their bodies cannot be read: as long as they are held, all of their stores wait. */
async function loadBodies(database: Database, ids: readonly string[], leaseToken: string) {
  try {
    return await readBodies(database.reader, ids)
  } catch (error) {
    EVENT_QUEUE.abandon(database, leaseToken)
    throw error
  }
}

/** The leading events without an earlier attempt, or the first event alone. */
async function chooseBatch(tx: Tx, due: readonly EventRow[]): Promise<readonly EventRow[]> {
  const tried = due.findIndex(({ attempts }) => attempts > 0)
  const untried = tried === -1 ? due : due.slice(0, Math.max(1, tried))
  const ids = untried.map(({ id }) => id)
  return untried.slice(0, (await leadingUpToBytes(tx, ids, BATCH_BYTES)).length)
}

/** True when the last attempt did not end either: the process stopped in each of them. */
export function hasNoAttemptsLeft({ attempts }: ClaimedEvent): boolean {
  return attempts > MAX_ATTEMPTS
}

/**
 * Releases claimed events as if they had not been claimed, after a failure that is not theirs; where the database is unavailable, at the
 * next claim.
 */
export async function releaseEvents({ database }: Platform, events: readonly ClaimedEvent[]): Promise<void> {
  const [first] = events
  if (!first) return
  const ids = events.map(({ id }) => id)
  await database
    .transaction((tx) => EVENT_QUEUE.release(tx, first.leaseToken, ids))
    .catch(() => EVENT_QUEUE.abandon(database, first.leaseToken))
}

/** `body`: `null` when it was removed, `undefined` when it was not loaded. */
function claimedEvent(
  row: EventRow,
  leaseToken: string,
  body: BodyRow | null | undefined,
  problem: string | null,
): ClaimedEvent {
  const stored = () => {
    if (body === undefined) throw new Error(`the body of event ${row.id} was not loaded`)
    return body
  }
  return {
    id: row.id,
    source: row.source,
    scope: row.scope,
    deliveryId: row.delivery_id,
    topic: row.topic,
    conflicting: row.conflict_hash !== '',
    receivedAt: row.received_at,
    triggeredAt: row.triggered_at,
    attempts: row.attempts + 1,
    leaseToken,
    problem,
    get rawBody() {
      const found = stored()
      return found && Buffer.from(found.body, found.encoding)
    },
    get text() {
      const found = stored()
      return found && textOf(found)
    },
  }
}

/**
 * The result of an attempt. `retry` waits with backoff, and is set aside after the last attempt. An event that is set aside is flagged,
 * unless `flagged` says that its handler raised a flag. `names`: what could be read of the order.
 */
export type EventOutcome =
  | { kind: 'done'; result: Record<string, unknown> }
  | { kind: 'ignored'; reason: string }
  | { kind: 'set_aside'; reason: string; flagged?: true; names?: OrderNames }
  | { kind: 'retry'; reason: string }

/** The signal that this process sends for each event that it settles. */
export function settledSignal(source: EventSource, outcome: EventOutcome['kind']): string {
  return `event:${source}:${outcome}`
}

/** Another worker has claimed the event since: nothing that this worker did for it may be kept. */
export class LeaseLost extends Error {
  constructor(eventId: string) {
    super(`the lease of event ${eventId} is lost`)
    this.name = 'LeaseLost'
  }
}

/** A claimed event with its outcome. */
export interface SettledEvent {
  event: ClaimedEvent
  outcome: EventOutcome
}

/** `settleAll` for one event. */
export function settle(
  platform: Platform,
  tx: Tx,
  event: ClaimedEvent,
  outcome: EventOutcome,
): Promise<void> {
  return settleAll(platform, tx, [{ event, outcome }])
}

/** Sets aside events that are not what intake sealed, and flags them. They are never applied. */
export async function refuseForged(platform: Platform, events: readonly ClaimedEvent[]): Promise<void> {
  const forged = events.flatMap(({ id, problem }) => (problem === null ? [] : [{ id, problem }]))
  if (forged.length === 0) return
  const outcome = { kind: 'set_aside', reason: NOT_AS_RECEIVED, flagged: true } as const
  await platform.database.transaction(async (tx) => {
    await settleAll(
      platform,
      tx,
      events.filter(({ problem }) => problem !== null).map((event) => ({ event, outcome })),
    )
    await flagForgedRows(platform, tx, 'inbound_events', forged)
  })
}

/**
 * Records the outcomes of claimed events, in the transaction that applied them. Throws `LeaseLost` when another worker holds one of them,
 * which rolls the transaction back.
 */
export async function settleAll(platform: Platform, tx: Tx, settled: readonly SettledEvent[]): Promise<void> {
  if (settled.length === 0) return
  const now = platform.clock.now()
  const rows = settled.map(({ event, outcome }) => settlementOf(event, outcome, now))
  const ours = new Set((await settleStatement(tx, rows).execute(tx)).rows.map(({ id }) => id))
  noteCounted('inbound_events', rows.filter(({ state }) => state === 'done' || state === 'ignored').length)
  const setAside: FlaggedEvent[] = []
  const unreadable: UnreadableOrder[] = []
  for (const [index, { event, outcome }] of settled.entries()) {
    const row = rows[index] as Settlement
    if (!ours.has(event.id)) throw new LeaseLost(event.id)
    afterCommit(tx, () => platform.topics.send(settledSignal(event.source, outcome.kind)))
    if (row.state !== 'set_aside') continue
    const flagged = outcome.kind === 'set_aside' && outcome.flagged
    if (!flagged) setAside.push({ ...named(event), attempts: row.attempts, reason: row.reason ?? '' })
    if (outcome.kind === 'set_aside' && outcome.names)
      unreadable.push({ event_id: event.id, ...outcome.names })
  }
  await saveUnreadable(tx, unreadable)
  await flagSetAside(platform, tx, setAside)
}

function named({ id, source, scope, deliveryId, topic, conflicting }: ClaimedEvent) {
  return { id, source, scope, deliveryId, topic, conflicting }
}

function settlementOf(event: ClaimedEvent, outcome: EventOutcome, now: number): Settlement {
  const attempts = Math.min(event.attempts, MAX_ATTEMPTS)
  const retry = outcome.kind === 'retry' ? decideRetry(attempts, randomInt(1_000_000) / 1_000_000) : null
  const state = retry?.kind === 'retry' ? 'pending' : retry ? 'set_aside' : (outcome.kind as EventState)
  return {
    row_id: event.id,
    token: event.leaseToken,
    state,
    reason: outcome.kind === 'done' ? null : outcome.reason,
    result: outcome.kind === 'done' ? JSON.stringify(outcome.result) : null,
    attempts,
    next_attempt_at: retry?.kind === 'retry' ? now + retry.delayMs : now,
    finished_at: state === 'pending' ? null : now,
  }
}

/** When the next event of a source is due (epoch ms); `null` while none waits. */
export function nextEventDueAt(platform: Platform, source: EventSource): Promise<number | null> {
  return EVENT_QUEUE.nextDueAt(platform.database.reader, fromSource(source))
}

/** More waiting events than this are not counted. */
export const BACKLOG_COUNTED = 10_000

/** How many events of a source wait (at most `BACKLOG_COUNTED`), and when the oldest was received. */
export function eventBacklog(
  platform: Platform,
  source: EventSource,
): Promise<{ waiting: number; oldest: number | null }> {
  return countPending(platform.database.reader, source, BACKLOG_COUNTED)
}

/** Removes raw bodies past their retention time, because they hold buyers' data. Returns how many. */
export async function removeOldBodies(platform: Platform): Promise<number> {
  const before = platform.clock.now() - platform.config.RAW_EVENT_RETENTION_DAYS * DAY_MS
  const yieldLoop = createLoopYield()
  let removed = 0
  for (;;) {
    const some = await platform.database.transaction((tx) => deleteOldBodies(tx, before, 500, BATCH_BYTES))
    removed += some
    if (some === 0) return removed
    await yieldLoop()
  }
}
