import { type CycleRow, shownCycles } from '../billing/billing.service.ts'
import type { PayoutPart, PayoutRow } from '../payouts/payouts.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Queries } from '../platform/database/database.ts'
import { firstIdAt } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import type { SaleWithSlug } from '../sales/sales.service.ts'
import { isSessionActive } from '../users/sessions.service.ts'
import { displayNamesOf } from '../users/users.service.ts'
import {
  type CycleMoments,
  cyclesById,
  cyclesChangedSince,
  hasAcceptedSale,
  type PayoutMoments,
  payoutPartsById,
  payoutsById,
  payoutsChangedSince,
  saleIdsAfter,
  salesById,
  salesDecidedAgainSince,
} from './live.store.ts'
import { LiveNews } from './live-news.ts'
import { liveStreams } from './live-streams.ts'
import {
  cursorOf,
  isNew,
  LATE_MS,
  type LiveWindow,
  momentOf,
  positionAt,
  startAt,
  windowOf,
  withPassed,
  withTold,
} from './live-window.rule.ts'
import type { OwnScope } from './summaries.store.ts'

/** How often a stream looks by itself, ms: the news may come from another process, and the session may have ended. */
const LOOK_EVERY_MS = 2000
/** How often a stream checks its session, ms. On PostgreSQL a suspension by another process is news; on SQLite nothing says so. */
const CHECK_SESSION_EVERY_MS = { sqlite: 500, postgresql: LOOK_EVERY_MS }
/** How soon after a look the next one is worth it, however much news there is. */
const REST_MS = 100
const SALES_AT_ONCE = 100

const CYCLE_STEPS = ['opened', 'closed', 'invoiced', 'charged'] as const
type CycleStep = (typeof CYCLE_STEPS)[number]

/** What is sent; `at` in epoch ms. */
export type LiveNewsItem =
  | { kind: 'start'; at: number }
  | { kind: 'sale'; at: number; sale: SaleWithSlug }
  | { kind: 'payout'; at: number; change: PayoutRow['state']; payout: PayoutRow | PayoutPart }
  | { kind: 'billing_cycle'; at: number; change: CycleStep; cycle: CycleRow }

export interface LiveMessage {
  /** What to give as `lastEventId` to go on after this message. */
  id: string
  item: LiveNewsItem
}

/** A change that was found, still without the rows that show it. */
interface Change {
  position: string
  kind: 'sale' | 'payout' | 'billing_cycle'
  subjectId: string
  at: number
  step: number
}

/**
 * Sends a merchant or creator each change of their own sales, payouts and billing cycles once, from now on or after `lastEventId`. Changes
 * are read from the database; signals only say when. Ends when `signal` is aborted. Refuses with
 * `validation_failed` an id that is none, with `rate_limited` and `unavailable` when there are too many streams, and, at the
 * beginning or later, with `unauthenticated` when the session has ended.
 */
export async function* followChanges(
  platform: Platform,
  actor: Actor,
  options: { lastEventId: string | null; signal: AbortSignal },
): AsyncGenerator<LiveMessage> {
  const { lastEventId, signal } = options
  const resumed = lastEventId === null ? null : windowOf(lastEventId)
  if (lastEventId !== null && resumed === null) throw badEventId()
  const scope: OwnScope =
    actor.role === 'merchant' ? { merchantId: actor.userId } : { creatorId: actor.userId }
  const isActive = await hasAcceptedSale(platform.database.reader, scope)
  const leave = liveStreams(platform).enter(actor.userId, isActive)
  const news = new LiveNews(platform, actor.userId, signal)
  try {
    await refuseEndedSession(platform, actor)
    let window = resumed ?? (await presentWindow(platform, scope))
    if (!resumed) {
      yield { id: cursorOf(window), item: { kind: 'start', at: platform.clock.now() } }
    }
    while (!signal.aborted) {
      news.forget()
      const bound = lateBound(platform)
      for await (const { message, after } of untold(platform, scope, window, bound)) {
        window = after
        if (message) yield message
        if (signal.aborted) return
      }
      window = withPassed(window, bound)
      await pause(REST_MS, signal)
      const every = CHECK_SESSION_EVERY_MS[platform.database.dialect]
      for (let waited = 0, heard = false; !heard && waited < LOOK_EVERY_MS; waited += every) {
        heard = await news.wait(every)
        if (!signal.aborted) await refuseEndedSession(platform, actor)
      }
    }
  } finally {
    news.close()
    leave()
  }
}

function badEventId(): Refusal {
  return new Refusal('validation_failed', 'The event id is not one that this stream gave out.', {
    issues: [{ path: 'lastEventId', message: 'must be the id of an event of this stream' }],
  })
}

async function refuseEndedSession(platform: Platform, actor: Actor): Promise<void> {
  if (await isSessionActive(platform, actor)) return
  throw new Refusal('unauthenticated', 'The session has ended: log in again.')
}

function lateBound(platform: Platform): string {
  return firstIdAt(platform.clock.now() - LATE_MS)
}

/** A new stream begins with what exists counted as sent. */
async function presentWindow(platform: Platform, scope: OwnScope): Promise<LiveWindow> {
  const bound = lateBound(platform)
  let window = startAt(bound)
  for await (const batch of changesAfter(platform.database.reader, scope, bound)) {
    for (const { position } of batch) window = withTold(window, position, bound)
  }
  return window
}

/** One reading: every change after the window in order, sent or not, with the window as it is after it. */
async function* untold(
  platform: Platform,
  scope: OwnScope,
  from: LiveWindow,
  bound: string,
): AsyncGenerator<{ message: LiveMessage | null; after: LiveWindow }> {
  const { reader } = platform.database
  let window = from
  for await (const batch of changesAfter(reader, scope, from.settled)) {
    const fresh = batch.filter((change) => isNew(window, change.position))
    const items = await itemsOf(platform, scope, fresh)
    for (const change of batch) {
      const item = items.get(change.position)
      window = withTold(window, change.position, bound)
      yield { message: item ? { id: cursorOf(window), item } : null, after: window }
    }
  }
}

/** All changes after a position in their order, in batches. */
async function* changesAfter(db: Queries, scope: OwnScope, position: string): AsyncGenerator<Change[]> {
  for (let after = position; ; ) {
    const sales = await saleIdsAfter(db, scope, after, SALES_AT_ONCE)
    // With more sales behind, other changes are known to be in order only as far as these sales go.
    const last = sales.length < SALES_AT_ONCE ? undefined : sales.at(-1)
    const others = await otherChanges(db, scope, momentOf(after))
    const batch = [...sales.map(saleChange), ...others]
      .filter((change) => change.position > after && (last === undefined || change.position <= last))
      .sort((a, b) => (a.position < b.position ? -1 : 1))
    yield batch
    if (last === undefined) return
    after = last
  }
}

function saleChange(id: string): Change {
  return { position: id, kind: 'sale', subjectId: id, at: momentOf(id), step: 0 }
}

async function otherChanges(db: Queries, scope: OwnScope, since: number): Promise<Change[]> {
  const payouts = await payoutsChangedSince(db, scope, since)
  const cycles = 'merchantId' in scope ? await cyclesChangedSince(db, scope.merchantId, since) : []
  const decidedAgain = await salesDecidedAgainSince(db, scope, since)
  return [
    ...payouts.flatMap(payoutChanges),
    ...cycles.flatMap(cycleChanges),
    ...decidedAgain.map(secondDecision),
  ]
}

/** The first change of a sale is its recording, whose position is its id. */
function secondDecision({ id, decided_at }: { id: string; decided_at: number }): Change {
  return { position: positionAt(decided_at, 1, id), kind: 'sale', subjectId: id, at: decided_at, step: 1 }
}

function payoutChanges({ id, created_at, submitted_at, settled_at }: PayoutMoments): Change[] {
  return changesAt('payout', id, [created_at, submitted_at, settled_at])
}

function cycleChanges({ id, created_at, closed_at, invoiced_at, charged_at }: CycleMoments): Change[] {
  return changesAt('billing_cycle', id, [created_at, closed_at, invoiced_at, charged_at])
}

function changesAt(kind: Change['kind'], id: string, moments: readonly (number | null)[]): Change[] {
  return moments.flatMap((at, step) =>
    at === null ? [] : [{ position: positionAt(at, step, id), kind, subjectId: id, at, step }],
  )
}

/** What is sent of each change, by its position. */
async function itemsOf(
  platform: Platform,
  scope: OwnScope,
  changes: readonly Change[],
): Promise<Map<string, LiveNewsItem>> {
  const db = platform.database.reader
  const idsOf = (kind: Change['kind']) => [
    ...new Set(changes.filter((change) => change.kind === kind).map((change) => change.subjectId)),
  ]
  const sales = await salesById(db, scope, idsOf('sale'))
  const payouts = await ownPayouts(db, scope, idsOf('payout'))
  const cycles = 'merchantId' in scope ? await cyclesById(db, scope.merchantId, idsOf('billing_cycle')) : []
  const shown = new Map((await shownCycles(platform, db, cycles)).map((cycle) => [cycle.id, cycle]))
  const items = new Map<string, LiveNewsItem>()
  for (const { position, kind, subjectId, at, step } of changes) {
    const [sale, payout, cycle] = [sales.get(subjectId), payouts.get(subjectId), shown.get(subjectId)]
    if (kind === 'sale' && sale) items.set(position, { kind, at: step === 0 ? sale.created_at : at, sale })
    if (kind === 'payout' && payout) {
      items.set(position, { kind, at, change: payoutStep(step, payout), payout })
    }
    const change = CYCLE_STEPS[step]
    if (kind === 'billing_cycle' && cycle && change) items.set(position, { kind, at, change, cycle })
  }
  return items
}

function payoutStep(step: number, payout: PayoutRow): PayoutRow['state'] {
  if (step === 0) return 'pending'
  return step === 1 ? 'submitted' : payout.state
}

async function ownPayouts(
  db: Queries,
  scope: OwnScope,
  ids: readonly string[],
): Promise<Map<string, PayoutRow | PayoutPart>> {
  if ('creatorId' in scope) return payoutsById(db, scope.creatorId, ids)
  const parts = await payoutPartsById(db, scope.merchantId, ids)
  const names = await displayNamesOf(
    db,
    [...parts.values()].map((part) => part.creator_id),
  )
  return new Map(
    [...parts].map(([id, part]) => [id, { ...part, creatorName: names.get(part.creator_id) ?? '' }]),
  )
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}
