import { randomInt } from 'node:crypto'
import { raiseFlag } from '../moderation/flags.service.ts'
import { afterCommit, type Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import {
  type ClaimedRow,
  claimDueEvents,
  countWaiting,
  heldScopes,
  holdDueEvents,
  type Read,
  readDueEvents,
} from './claims.store.ts'
import type { EventSource, EventState } from './event-words.ts'
import {
  bringEventsBack,
  countPending,
  deleteOldBodies,
  type EventFilter,
  type EventRow,
  findEvents,
  nextDueAt,
  noLease,
  type Settlement,
  settleEvents,
  waitsBeyond,
} from './inbox.store.ts'
import { type Lane, shareOut } from './lanes.rule.ts'
import { decideRetry, LONGEST_DELAY_MS } from './retry.rule.ts'
import { textOf } from './stored-text.ts'

export type { Read } from './claims.store.ts'
export { EVENT_SOURCES, type EventSource } from './event-words.ts'
export type { EventFilter, EventRow } from './inbox.store.ts'
export type { Lane } from './lanes.rule.ts'

/** An event that this worker holds until its lease runs out, or that it has read and that nobody holds (`leased`). */
export interface ClaimedEvent {
  id: string
  source: EventSource
  scope: string
  deliveryId: string
  topic: string | null
  /** This delivery id came before with another body. */
  conflicting: boolean
  /** `null` when the retention time has taken the raw body. To ask for one that was left where it is, is an error. */
  readonly rawBody: Buffer | null
  /** The raw body read as UTF-8. */
  readonly text: string | null
  receivedAt: number
  /** Tries before this one. */
  attempts: number
  /** What must still stand at the event when it is settled. */
  leaseToken: string
  /** Whether that is a lease of this worker's. */
  leased: boolean
}

/** Far longer than a batch takes; after a crash the events of the dead process wait for it to run out. */
const LEASE_MS = 15_000

/**
 * Takes up to `limit` due events of a source, oldest first, whole stores at a time: nobody else has any of them. With a
 * `lane` (on PostgreSQL) only those of a part of the stores, so that several batches can be had at once.
 */
export async function claimEvents(
  platform: Platform,
  source: EventSource,
  limit: number,
  lane: Lane | null = null,
): Promise<ClaimedEvent[]> {
  const now = platform.clock.now()
  const token = platform.ids.next()
  const rows = await platform.database.transaction((tx) =>
    claimDueEvents(tx, platform.database.dialect, { source, limit, lane, ...leaseFrom(now, token) }),
  )
  if (rows.length === 0 && (await bringBack(platform, source)))
    return claimEvents(platform, source, limit, lane)
  return rows.map((row) => claimedEvent({ ...row, lease_token: token }, true))
}

/**
 * SQLite: what `claimEvents` would take, taken by nobody. Whoever settles all of it in one transaction needs no lease,
 * which would be a transaction before each batch: the write lock keeps everybody else out, and a batch of which anything was
 * taken since fails as one whose lease is lost. Bodies of events in `read` are left where they are.
 */
export async function peekEvents(
  platform: Platform,
  source: EventSource,
  limit: number,
  read?: Read,
): Promise<ClaimedEvent[]> {
  const claim = { source, limit, lane: null, ...leaseFrom(platform.clock.now(), '') }
  const rows = await readDueEvents(platform.database.reader, claim, read)
  if (rows.length === 0 && (await bringBack(platform, source)))
    return peekEvents(platform, source, limit, read)
  return unleased(rows)
}

/**
 * PostgreSQL: what `claimEvents` would take, for the very transaction that settles it. It needs no lease either: whoever else
 * works this way passes over the stores of which something is held, and whoever takes a lease meanwhile has it settled first, or
 * makes this fail as one whose lease is lost. Bodies of events in `read` are left where they are.
 */
export async function holdEvents(
  platform: Platform,
  tx: Tx,
  source: EventSource,
  limit: number,
  lane: Lane | null,
  read?: Read,
): Promise<ClaimedEvent[]> {
  const claim = { source, limit, lane, ...leaseFrom(platform.clock.now(), '') }
  return unleased(await holdDueEvents(tx, claim, read))
}

/** PostgreSQL: parts of the stores of which events wait, at most `many`, with about as much to do in each. */
export async function lanesOf(
  { database, clock }: Platform,
  source: EventSource,
  limit: number,
  many: number,
): Promise<Lane[]> {
  const claim = { source, limit, lane: null, ...leaseFrom(clock.now(), '') }
  return shareOut(await countWaiting(database.reader, claim), many)
}

const unleased = (rows: readonly ClaimedRow[]) => rows.map((row) => claimedEvent(row, false))

function leaseFrom(now: number, token: string) {
  return { now, lease: { token, until: now + LEASE_MS } }
}

function claimedEvent(row: ClaimedRow, leased: boolean): ClaimedEvent {
  const stored = () => {
    if (row.body === undefined) throw new Error(`the body of event ${row.id} was left where it is`)
    return row.body === null ? null : { body: row.body, encoding: row.encoding ?? 'utf8' }
  }
  return {
    id: row.id,
    source: row.source,
    scope: row.scope,
    deliveryId: row.delivery_id,
    topic: row.topic,
    conflicting: row.conflict_hash !== '',
    receivedAt: row.received_at,
    attempts: row.attempts,
    leaseToken: row.lease_token ?? noLease(row.attempts),
    leased,
    // When they are asked for: a store's event has no use for its bytes.
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
export async function bringBack(platform: Platform, source: EventSource): Promise<boolean> {
  const now = platform.clock.now()
  const beyond = { source, after: now + LONGEST_DELAY_MS }
  if (!(await waitsBeyond(platform.database.reader, beyond))) return false
  await platform.database.transaction((tx) => bringEventsBack(tx, beyond, now))
  return true
}

/**
 * What became of an event. `retry` waits with backoff, and is set aside after the last try. Whatever is set aside is
 * flagged; `flagged` says that whoever applied it has raised a flag of its own already.
 */
export type EventOutcome =
  | { kind: 'done'; result: Record<string, unknown> }
  | { kind: 'ignored'; reason: string }
  | { kind: 'set_aside'; reason: string; flagged?: true }
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
  await refuseHeld(tx, now, settled)
  for (const [index, { event, outcome }] of settled.entries()) {
    const row = rows[index] as Settlement
    if (!ours.has(event.id)) throw new LeaseLost(event.id)
    afterCommit(tx, () => platform.signals.send(settledSignal(event.source, outcome.kind)))
    const flagged = outcome.kind === 'set_aside' && outcome.flagged
    if (row.state === 'set_aside' && !flagged) await flagSetAside(platform, tx, event, row.reason ?? '')
  }
}

/** What is settled without a lease must not go past somebody who holds events of the same store. */
async function refuseHeld(tx: Tx, now: number, settled: readonly SettledEvent[]): Promise<void> {
  const unleased = settled.filter(({ event }) => !event.leased)
  if (unleased.length === 0) return
  const scopes = [...new Set(unleased.map(({ event }) => event.scope))]
  const held = await heldScopes(tx, leaseFrom(now, ''), scopes)
  for (const { event } of unleased) if (held.has(event.scope)) throw new LeaseLost(event.id)
}

function settlementOf(event: ClaimedEvent, outcome: EventOutcome, now: number): Settlement {
  const attempts = event.attempts + 1
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

async function flagSetAside(platform: Platform, tx: Tx, event: ClaimedEvent, reason: string): Promise<void> {
  await raiseFlag(platform, tx, {
    kind: event.conflicting ? 'event_body_conflict' : 'event_set_aside',
    subjectType: 'inbound_event',
    subjectId: event.id,
    summary: event.conflicting
      ? `A ${event.source} event came again under the same delivery id with another body.`
      : `A ${event.source} event could not be applied: ${reason}`,
    evidence: {
      source: event.source,
      scope: event.scope,
      delivery_id: event.deliveryId,
      topic: event.topic,
      reason,
      attempts: event.attempts + 1,
    },
  })
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
  let removed = 0
  for (;;) {
    const some = await platform.database.transaction((tx) => deleteOldBodies(tx, before, 500))
    removed += some
    if (some === 0) return removed
  }
}
