import { setTimeout as delay } from 'node:timers/promises'
import type { LiveEvent } from '../../shared/schemas/summaries.ts'
import { type CycleRow, shownCycles } from '../billing/billing.service.ts'
import { wireCycle } from '../billing/billing-wire.ts'
import { wirePart, wirePayout } from '../payouts/payout-wire.ts'
import type { PayoutPart, PayoutRow } from '../payouts/payouts.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries } from '../platform/database/database.ts'
import { type OwnScope, ownScope } from '../platform/database/keyset-scan.ts'
import { firstIdAt, timeOfId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import { withNames } from '../sales/sale-explanation.service.ts'
import { wireNamedSale } from '../sales/sale-wire.ts'
import { findSales, hasAcceptedSale } from '../sales/sales.service.ts'
import { isActorActive } from '../users/sessions.service.ts'
import {
  cyclesChangedSince,
  payoutsChangedSince,
  saleIdsAfter,
  salesDecidedAgainSince,
} from './live.store.ts'
import { liveStreams } from './live-streams.ts'
import {
  cursorOf,
  isNew,
  LATE_MS,
  type LiveWindow,
  positionAt,
  startAt,
  windowOf,
  withPassed,
  withSent,
} from './live-window.rule.ts'

/** How often a stream looks by itself, ms: the news may come from another process, and the session may have ended. */
const LOOK_EVERY_MS = 2000
/** How often a stream checks its session, ms. On PostgreSQL a suspension by another process is news; on SQLite nothing says so. */
const CHECK_SESSION_EVERY_MS = { sqlite: 500, postgresql: LOOK_EVERY_MS }
/** How soon after a look the next one is worth it, however much news there is. */
const REST_MS = 100
const SALES_AT_ONCE = 100

const CYCLE_STEPS = ['opened', 'closed', 'invoiced', 'charged'] as const

const PAYOUT_STEPS = ['pending', 'submitted'] as const

export interface LiveMessage {
  /** What to give as `lastEventId` to go on after this message. */
  id: string
  event: LiveEvent
}

/** A change that was found, with the row that it is about; of a sale only its id, since sales are large. */
type Change = { position: string; at: number; step: number } & (
  | { kind: 'sale'; row: { id: string } }
  | { kind: 'payout'; row: PayoutRow | PayoutPart }
  | { kind: 'billing_cycle'; row: CycleRow }
)

/**
 * Sends a merchant or creator each change of their own sales, payouts and billing cycles once, from now on or after `lastEventId`. Changes
 * are read from the database; signals only say when. Ends when `signal` is aborted. Refuses with
 * `validation_failed` an id that is none, with `rate_limited` and `unavailable` when there are too many streams, and, at the
 * beginning or later, with `unauthenticated` when the session or API key has ended.
 */
export async function* followChanges(
  platform: Platform,
  actor: Actor,
  options: { lastEventId: string | null; signal: AbortSignal },
): AsyncGenerator<LiveMessage> {
  const { lastEventId, signal } = options
  const resumed = lastEventId === null ? null : windowOf(lastEventId)
  if (lastEventId !== null && resumed === null)
    throw new Refusal('validation_failed', 'The event id is not one that this stream gave out.', {
      issues: [{ path: 'lastEventId', message: 'must be the id of an event of this stream' }],
    })
  const scope = ownScope(actor)
  const isActive = await hasAcceptedSale(platform.database.reader, scope)
  const leave = liveStreams(platform).enter(actor.userId, isActive)
  // A hint between two waits ends the next one immediately.
  let hint = new AbortController()
  const unsubscribe = platform.topics.on(userTopic(actor.userId), () => hint.abort())
  const pause = (ms: number, until: AbortSignal) => delay(ms, undefined, { signal: until }).catch(() => {})
  try {
    await refuseEndedSession(platform, actor)
    let window = resumed ?? (await presentWindow(platform, scope))
    if (!resumed) {
      yield { id: cursorOf(window), event: { kind: 'start', at: isoTime(platform.clock.now()) } }
    }
    while (!signal.aborted) {
      hint = new AbortController()
      const bound = lateBound(platform)
      for await (const { message, after } of unsent(platform, actor, scope, window, bound)) {
        window = after
        if (message) yield message
        if (signal.aborted) return
      }
      window = withPassed(window, bound)
      await pause(REST_MS, signal)
      const every = CHECK_SESSION_EVERY_MS[platform.database.dialect]
      for (let waited = 0; waited < LOOK_EVERY_MS && !signal.aborted; waited += every) {
        await pause(every, AbortSignal.any([signal, hint.signal]))
        if (!signal.aborted) await refuseEndedSession(platform, actor)
        if (hint.signal.aborted) break
      }
    }
  } finally {
    unsubscribe()
    leave()
  }
}

async function refuseEndedSession(platform: Platform, actor: Actor): Promise<void> {
  if (await isActorActive(platform, actor)) return
  const detail = actor.apiKey ? 'The API key has ended.' : 'The session has ended: log in again.'
  throw new Refusal('unauthenticated', detail)
}

function lateBound(platform: Platform): string {
  return firstIdAt(platform.clock.now() - LATE_MS)
}

/** A new stream begins with what exists counted as sent. */
async function presentWindow(platform: Platform, scope: OwnScope): Promise<LiveWindow> {
  const bound = lateBound(platform)
  let window = startAt(bound)
  for await (const batch of changesAfter(platform.database.reader, scope, bound)) {
    for (const { position } of batch) window = withSent(window, position, bound)
  }
  return window
}

/** One reading: every change after the window in order, sent or not, with the window as it is after it. */
async function* unsent(
  platform: Platform,
  actor: Actor,
  scope: OwnScope,
  from: LiveWindow,
  bound: string,
): AsyncGenerator<{ message: LiveMessage | null; after: LiveWindow }> {
  const { reader } = platform.database
  let window = from
  for await (const batch of changesAfter(reader, scope, from.settled)) {
    const fresh = batch.filter((change) => isNew(window, change.position))
    const eventOf = await eventsOf(platform, actor, scope, fresh)
    for (const change of batch) {
      const event = isNew(window, change.position) && eventOf(change)
      window = withSent(window, change.position, bound)
      yield { message: event ? { id: cursorOf(window), event } : null, after: window }
    }
  }
}

/** All changes after a position in their order, in batches. */
async function* changesAfter(db: Queries, scope: OwnScope, position: string): AsyncGenerator<Change[]> {
  for (let after = position; ; ) {
    const sales = await saleIdsAfter(db, scope, after, SALES_AT_ONCE)
    // With more sales behind, other changes are known to be in order only as far as these sales go.
    const last = sales.length < SALES_AT_ONCE ? undefined : sales.at(-1)
    const others = await otherChanges(db, scope, timeOfId(after))
    const recorded = sales.map(
      (id): Change => ({ position: id, kind: 'sale', row: { id }, at: timeOfId(id), step: 0 }),
    )
    const batch = [...recorded, ...others]
      .filter((change) => change.position > after && (last === undefined || change.position <= last))
      .sort((a, b) => (a.position < b.position ? -1 : 1))
    yield batch
    if (last === undefined) return
    after = last
  }
}

async function otherChanges(db: Queries, scope: OwnScope, since: number): Promise<Change[]> {
  const payouts = await payoutsChangedSince(db, scope, since)
  const cycles = 'merchantId' in scope ? await cyclesChangedSince(db, scope.merchantId, since) : []
  const decidedAgain = await salesDecidedAgainSince(db, scope, since)
  return [
    ...payouts.flatMap((row) => changesOf('payout', row, [row.created_at, row.submitted_at, row.settled_at])),
    ...cycles.flatMap(({ invoiced_at, ...row }) =>
      changesOf('billing_cycle', row, [row.created_at, row.closed_at, invoiced_at, row.charged_at]),
    ),
    // The first change of a sale is its recording, whose position is its id.
    ...decidedAgain.flatMap((row) => changesOf('sale', row, [null, row.decided_at])),
  ]
}

function changesOf(kind: Change['kind'], row: { id: string }, moments: readonly (number | null)[]): Change[] {
  return moments.flatMap((at, step) =>
    at === null ? [] : ({ position: positionAt(at, step, row.id), at, step, kind, row } as Change),
  )
}

/** Reads what else the changes show; returns what is sent of each. */
async function eventsOf(platform: Platform, { role }: Actor, scope: OwnScope, changes: readonly Change[]) {
  // A stream looks every few seconds, and usually finds nothing new.
  if (changes.length === 0) return () => null
  const db = platform.database.reader
  const ids = [...new Set(changes.flatMap(({ kind, row }) => (kind === 'sale' ? row.id : [])))]
  const found = await findSales(db, scope, { ids, limit: ids.length, before: null })
  const sales = byId(await withNames(platform, found))
  const changed = changes.flatMap((change) => (change.kind === 'billing_cycle' ? change.row : []))
  const cycles = byId(await shownCycles(platform, db, changed))
  return ({ kind, row, at, step }: Change): LiveEvent | null => {
    if (kind === 'payout') {
      const payout = 'part' in row ? wirePart(row) : wirePayout(row)
      return { kind, at: isoTime(at), change: PAYOUT_STEPS[step] ?? row.state, payout }
    }
    if (kind === 'sale') {
      const sale = sales.get(row.id)
      const decidedAt = step === 0 ? sale?.created_at : at
      return sale ? { kind, at: isoTime(decidedAt ?? at), sale: wireNamedSale(sale, role) } : null
    }
    const [cycle, change] = [cycles.get(row.id), CYCLE_STEPS[step]]
    return cycle && change
      ? { kind, at: isoTime(at), change, billing_cycle: wireCycle(platform, cycle) }
      : null
  }
}

function byId<Row extends { id: string }>(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [row.id, row]))
}
