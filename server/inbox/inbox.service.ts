import { randomInt } from 'node:crypto'
import { afterCommit, type Tx } from '../platform/database/database.ts'
import { createLoopYield } from '../platform/loop-yield.ts'
import type { Platform } from '../platform/platform.ts'
import { type Claim, type ClaimedRow, claimDueEvents, countWaiting } from './claims.store.ts'
import type { EventSource, EventState } from './event-words.ts'
import {
  bringEventsBack,
  countPending,
  deleteOldBodies,
  type EventFilter,
  type EventRow,
  findEvents,
  nextDueAt,
  releaseLeases,
  type Settlement,
  settleEvents,
  waitsBeyond,
} from './inbox.store.ts'
import { type Lane, shareOut } from './lanes.rule.ts'
import { decideRetry, LONGEST_DELAY_MS, MAX_ATTEMPTS } from './retry.rule.ts'
import { keepUnreadable, type UnreadableOrder } from './set-aside-events.store.ts'
import { type FlaggedEvent, flagSetAside } from './set-aside-flags.service.ts'
import { textOf } from './stored-text.ts'
import { type BodyRow, readBodies } from './upcoming-events.store.ts'

export { EVENT_SOURCES, type EventSource } from './event-words.ts'
export type { EventFilter, EventRow } from './inbox.store.ts'
export type { Lane } from './lanes.rule.ts'

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
  /** `null` when the retention time has taken the raw body. Throws when the claim did not load it. */
  readonly rawBody: Buffer | null
  /** The raw body read as UTF-8. */
  readonly text: string | null
  receivedAt: number
  /** When the sender says that it was triggered, epoch ms; unsigned. */
  triggeredAt: number | null
  /** Tries, this one included. */
  attempts: number
  /** Must still stand at the event when it is settled. */
  leaseToken: string
}

/** Far longer than a batch takes; after a crash the events of the dead process wait for it to run out. */
const LEASE_MS = 15_000
/** Bodies of one batch: a worker with a heap of 512 MB holds them several times over while it parses and applies them. */
export const BATCH_BYTES = 32 * 1024 * 1024

export interface ClaimOptions {
  limit: number
  /** PostgreSQL only: these scopes only, so that several batches can be had at once. */
  lane?: Lane | undefined
  /** Events whose bodies are not loaded, because they have been read already. */
  read?: Pick<ReadonlySet<string>, 'has'> | undefined
}

/**
 * Leases due events of a source, oldest first, and counts an attempt for each before it loads their bodies: at most `limit`, and
 * `BATCH_BYTES` of bodies. No two workers hold events of one scope. An event that was tried before comes alone; the body of one that
 * `hasNoTriesLeft` is not loaded.
 */
export async function claimEvents(
  platform: Platform,
  source: EventSource,
  options: ClaimOptions,
): Promise<ClaimedEvent[]> {
  const { database, clock } = platform
  const due = await nextDueAt(database.reader, source)
  if (due === null) return []
  const claim = claimOf(clock.now(), source, options, platform.ids.next())
  const rows = due > claim.now ? [] : await database.transaction((tx) => claimDueEvents(tx, claim))
  if (rows.length === 0) {
    return (await bringBack(platform, source)) ? claimEvents(platform, source, options) : []
  }
  const wanted = rows.flatMap(({ id, attempts }) =>
    attempts > MAX_ATTEMPTS || options.read?.has(id) ? [] : [id],
  )
  const found = wanted.length === 0 ? [] : await readBodies(database.reader, wanted)
  const bodies = new Map<string, BodyRow | null>(wanted.map((id) => [id, null]))
  for (const body of found) bodies.set(body.event_id, body)
  return rows.map((row) => claimedEvent(row, claim.lease.token, bodies.get(row.id)))
}

/** Whether the claim of an event came after its last try, which did not end: the process stopped in each of them. */
export function hasNoTriesLeft({ attempts }: ClaimedEvent): boolean {
  return attempts > MAX_ATTEMPTS
}

/** Gives claimed events back as if they had not been claimed, for failures that are not theirs. */
export async function releaseEvents(platform: Platform, events: readonly ClaimedEvent[]): Promise<void> {
  const [first] = events
  if (!first) return
  const ids = events.map(({ id }) => id)
  await platform.database.transaction((tx) => releaseLeases(tx, ids, first.leaseToken))
}

function claimOf(now: number, source: EventSource, { limit, lane }: ClaimOptions, token: string): Claim {
  const lease = { token, until: now + LEASE_MS }
  return { source, now, limit, maxBytes: BATCH_BYTES, lease, lane: lane ?? null }
}

/** PostgreSQL: parts of the stores of which events wait, at most `many`, with about as much to do in each. */
export async function lanesOf(
  { database, clock }: Platform,
  source: EventSource,
  limit: number,
  many: number,
): Promise<Lane[]> {
  const claim = claimOf(clock.now(), source, { limit }, '')
  return shareOut(await countWaiting(database.reader, claim), many)
}

/** `body`: `null` when it is gone, `undefined` when it was not loaded. */
function claimedEvent(row: ClaimedRow, leaseToken: string, body: BodyRow | null | undefined): ClaimedEvent {
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
    attempts: row.attempts,
    leaseToken,
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
 * Events that wait for a time further off than any that we set have seen the clock put back: they are due now, whoever
 * held them. Answers whether there were any.
 */
async function bringBack(platform: Platform, source: EventSource): Promise<boolean> {
  const now = platform.clock.now()
  const beyond = { source, after: now + LONGEST_DELAY_MS }
  if (!(await waitsBeyond(platform.database.reader, beyond))) return false
  await platform.database.transaction((tx) => bringEventsBack(tx, beyond, now))
  return true
}

/**
 * What became of an event. `retry` waits with backoff, and is set aside after the last try. Whatever is set aside is
 * flagged; `flagged` says that the code that applied it has raised its own flag. `names`: what could be read of the order.
 */
export type EventOutcome =
  | { kind: 'done'; result: Record<string, unknown> }
  | { kind: 'ignored'; reason: string }
  | { kind: 'set_aside'; reason: string; flagged?: true; names?: OrderNames }
  | { kind: 'retry'; reason: string }

/** Sent for each event that this process has applied or tried to. */
export function settledSignal(source: EventSource, outcome: EventOutcome['kind']): string {
  return `event:${source}:${outcome}`
}

/** Somebody else took the event over since this worker claimed it: nothing of this worker's may be kept. */
export class LeaseLost extends Error {
  constructor(eventId: string) {
    super(`the lease of event ${eventId} is lost`)
    this.name = 'LeaseLost'
  }
}

/** A claimed event with what became of it. */
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

/**
 * Records what became of claimed events, in the transaction that applied them. Throws `LeaseLost` when another worker
 * has one of them by now, which takes the whole transaction back.
 */
export async function settleAll(platform: Platform, tx: Tx, settled: readonly SettledEvent[]): Promise<void> {
  if (settled.length === 0) return
  const now = platform.clock.now()
  const rows = settled.map(({ event, outcome }) => settlementOf(event, outcome, now))
  const ours = await settleEvents(tx, platform.database.dialect, rows)
  const setAside: FlaggedEvent[] = []
  const unreadable: UnreadableOrder[] = []
  for (const [index, { event, outcome }] of settled.entries()) {
    const row = rows[index] as Settlement
    if (!ours.has(event.id)) throw new LeaseLost(event.id)
    afterCommit(tx, () => platform.signals.send(settledSignal(event.source, outcome.kind)))
    if (row.state !== 'set_aside') continue
    const flagged = outcome.kind === 'set_aside' && outcome.flagged
    if (!flagged) setAside.push({ ...named(event), attempts: row.attempts, reason: row.reason ?? '' })
    if (outcome.kind === 'set_aside' && outcome.names)
      unreadable.push({ event_id: event.id, ...outcome.names })
  }
  await keepUnreadable(tx, unreadable)
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
    event_id: event.id,
    lease_token: event.leaseToken,
    state,
    reason: outcome.kind === 'done' ? null : outcome.reason,
    result: outcome.kind === 'done' ? JSON.stringify(outcome.result) : null,
    attempts,
    next_attempt_at: retry?.kind === 'retry' ? now + retry.delayMs : now,
    finished_at: state === 'pending' ? null : now,
  }
}

/** When the next event of a source falls due (epoch ms), `null` when nothing waits. */
export function nextEventDueAt(platform: Platform, source: EventSource): Promise<number | null> {
  return nextDueAt(platform.database.reader, source)
}

/** Past this many, waiting events are not counted one by one. */
export const BACKLOG_COUNTED = 10_000

/** How many events of a source wait to be applied (at most `BACKLOG_COUNTED`), and when the oldest of them came. */
export function eventBacklog(
  platform: Platform,
  source: EventSource,
): Promise<{ waiting: number; oldest: number | null }> {
  return countPending(platform.database.reader, source, BACKLOG_COUNTED)
}

/** The newest events, for the operator. */
export function listEvents(platform: Platform, filter: EventFilter): Promise<EventRow[]> {
  return findEvents(platform.database.reader, filter)
}

const DAY_MS = 86_400_000

/** Removes raw bodies past their retention time: they hold buyers' data. Answers how many went. */
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
