import { randomInt } from 'node:crypto'
import { DAY_MS } from '../../shared/durations.ts'
import { flagForgedRows } from '../flags/forged-rows.service.ts'
import { afterCommit, type Database, type Tx } from '../platform/database/database.ts'
import { noteCounted } from '../platform/database/protected-rows.ts'
import { createLoopYield } from '../platform/loop-yield.ts'
import type { Platform } from '../platform/platform.ts'
import type { EventSource, EventState, SetAsideCode } from './event-states.ts'
import {
  BATCH_BYTES,
  bodyHashOf,
  EVENT_QUEUE,
  type EventRow,
  eventProblem,
  fromSource,
  leadingUpToBytes,
  readBodies,
  removeBodiesPage,
  type Settlement,
  settleStatement,
  textOf,
} from './inbox.store.ts'
import { decideRetry, MAX_ATTEMPTS } from './retry.rule.ts'
import { flagSetAside, type SetAsideEvent } from './set-aside.service.ts'

export { EVENT_SOURCES, type EventSource } from './event-states.ts'
export { eventBacklog } from './inbox.store.ts'

/** An event that this worker holds until its lease runs out. `attempts` includes this one; `lease_token` is the claim's fencing token. */
export interface ClaimedEvent extends EventRow {
  lease_token: string
  /** The raw body read as UTF-8; `null` when it is past its retention time, or the claim did not load it. */
  readonly text: string | null
  /** Why it is not the event that intake sealed; `null` when it is. Such an event is set aside. */
  problem: string | null
}

/** Far longer than a batch takes. After a crash, the events of the dead process wait for its end. */
const LEASE_MS = 15_000
/**
 * Leases due events of a source, oldest first, and counts an attempt for each before it loads their bodies: at most `limit`, and
 * `BATCH_BYTES` of bodies. No two workers hold events of one scope. An event with an earlier attempt comes alone, so that an event that
 * ends the process uses up only its own attempts. Does not load the bodies of events that `hasNoAttemptsLeft`, nor of those in `read`, which
 * have been read already and carry the hash of what was read.
 */
export async function claimEvents(
  platform: Platform,
  source: EventSource,
  { limit, read }: { limit: number; read?: ReadonlyMap<string, { bodyHash: string }> | undefined },
): Promise<ClaimedEvent[]> {
  const { database, clock, ids } = platform
  const now = clock.now()
  const lease = { token: ids.next(), until: now + LEASE_MS }
  const only = fromSource(source)
  const rows = await EVENT_QUEUE.claim(database, { now, limit, lease, only, choose: chooseBatch })
  const wanted = rows.flatMap(({ id, attempts }) => (attempts >= MAX_ATTEMPTS || read?.has(id) ? [] : [id]))
  const bodies = await loadBodies(database, wanted, lease.token)
  return rows.map((row) => {
    const body = bodies.get(row.id)
    const bodyHash = body ? bodyHashOf(body) : read?.get(row.id)?.bodyHash
    return {
      ...row,
      attempts: row.attempts + 1,
      lease_token: lease.token,
      text: body ? textOf(body) : null,
      problem: eventProblem(platform.keys, row, bodyHash),
    }
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
    .transaction((tx) => EVENT_QUEUE.release(tx, first.lease_token, ids))
    .catch(() => EVENT_QUEUE.abandon(database, first.lease_token))
}

/** What could be read of an order whose event is set aside. */
type OrderNames = Pick<EventRow, 'order_id' | 'order_name'>

/**
 * The result of an attempt. `retry` waits with backoff, and is set aside after the last attempt. An event that is set aside is flagged,
 * unless its code says that its handler raised a flag. `names`: of the order, by which the event can be found. `type`: the one that no rule
 * maps.
 */
export type EventOutcome =
  | { kind: 'done'; result: Record<string, unknown>; names?: OrderNames }
  | { kind: 'ignored'; reason: string; names?: OrderNames }
  | { kind: 'set_aside'; reason: string; code?: SetAsideCode; names?: OrderNames; type?: string }
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

interface SettledEvent {
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

/** The reason of an event that is not the one that intake sealed. */
const NOT_AS_RECEIVED = 'integrity_violation'

/** Sets aside events that are not what intake sealed, and flags them. They are never applied. */
export async function refuseForged(platform: Platform, events: readonly ClaimedEvent[]): Promise<void> {
  const outcome = { kind: 'set_aside', reason: NOT_AS_RECEIVED, code: 'flagged' } as const
  const forged = events.flatMap((event) => (event.problem === null ? [] : [{ event, outcome }]))
  if (forged.length === 0) return
  await platform.database.transaction(async (tx) => {
    await settleAll(platform, tx, forged)
    const rows = forged.map(({ event: { id, problem } }) => ({ id, problem: problem ?? '' }))
    await flagForgedRows(platform, tx, 'inbound_events', rows)
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
  const setAside: SetAsideEvent[] = []
  for (const [index, { event, outcome }] of settled.entries()) {
    const { state, attempts, reason, reason_code } = rows[index] as Settlement
    if (!ours.has(event.id)) throw new LeaseLost(event.id)
    afterCommit(tx, () => platform.topics.send(settledSignal(event.source, outcome.kind)))
    if (state !== 'set_aside') continue
    const type = outcome.kind === 'set_aside' ? outcome.type : undefined
    if (reason_code !== 'flagged') setAside.push({ ...event, attempts, reason, reason_code, type })
  }
  await flagSetAside(platform, tx, setAside)
}

function settlementOf(event: ClaimedEvent, outcome: EventOutcome, now: number): Settlement {
  const attempts = Math.min(event.attempts, MAX_ATTEMPTS)
  const retry = outcome.kind === 'retry' ? decideRetry(attempts, randomInt(1_000_000) / 1_000_000) : null
  const state = retry?.kind === 'retry' ? 'pending' : retry ? 'set_aside' : (outcome.kind as EventState)
  return {
    row_id: event.id,
    token: event.lease_token,
    state,
    reason: outcome.kind === 'done' ? null : outcome.reason,
    reason_code: (outcome.kind === 'set_aside' && outcome.code) || null,
    result: outcome.kind === 'done' ? JSON.stringify(outcome.result) : null,
    ...namesIn(outcome, event),
    attempts,
    next_attempt_at: retry?.kind === 'retry' ? now + retry.delayMs : now,
    finished_at: state === 'pending' ? null : now,
  }
}

/** An applied event has the names that its outcome gives it; before that, those of an earlier attempt stay. */
function namesIn(outcome: EventOutcome, { order_id, order_name }: OrderNames): OrderNames {
  const isApplied = outcome.kind === 'done' || outcome.kind === 'ignored'
  const former = isApplied ? { order_id: null, order_name: null } : { order_id, order_name }
  return outcome.kind === 'retry' ? former : { ...former, ...outcome.names }
}

/** When the next event of a source is due (epoch ms); `null` while none waits. */
export function nextEventDueAt(platform: Platform, source: EventSource): Promise<number | null> {
  return EVENT_QUEUE.nextDueAt(platform.database.reader, fromSource(source))
}

/** Removes raw bodies of finished events past their retention time, because they hold buyers' data. Returns how many. */
export async function removeOldBodies(platform: Platform): Promise<number> {
  const before = platform.clock.now() - platform.config.RAW_EVENT_RETENTION_DAYS * DAY_MS
  const yieldLoop = createLoopYield()
  let removed = 0
  for (;;) {
    const some = await platform.database.transaction((tx) => removeBodiesPage(tx, before))
    removed += some
    if (some === 0) return removed
    await yieldLoop()
  }
}
