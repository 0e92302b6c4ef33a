import {
  bringBack,
  type ClaimedEvent,
  claimEvents,
  type EventSource,
  holdEvents,
  type Lane,
  LeaseLost,
  peekEvents,
} from '../inbox/inbox.service.ts'
import type { Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { OrderReader } from './order-reader.ts'
import { NOTHING_READ, type ReadOrders } from './read-order.ts'

/**
 * Applies a batch of claimed events, effects and settlements in one transaction: in `tx`, or in one of its own. Of those in `read`
 * it is not asked what came in.
 */
export type ApplyEvents = (
  platform: Platform,
  events: readonly ClaimedEvent[],
  tx: Tx | null,
  read?: ReadOrders,
) => Promise<void>

/** `lane`: only those of a part of the stores. `reader`: reads orders before it is their turn, while much waits. */
export interface How {
  lane?: Lane
  reader?: OrderReader
}

type GiveBack = (event: ClaimedEvent, error: unknown) => Promise<void>

/**
 * Claims due events of a source and applies them. When a batch of a store's fails as a whole, its halves are applied, and
 * theirs, so that one that cannot be applied holds up nobody else, at the price of a few transactions. The processor's are applied
 * one by one from the start: each commits on its own, so that a half would meet again what is settled already. Answers how
 * many were claimed.
 */
export async function drainEvents(
  platform: Platform,
  source: EventSource,
  batchSize: number,
  apply: ApplyEvents,
  giveBack: GiveBack,
  how: How = {},
): Promise<number> {
  if (source === 'store') return drainUnleased(platform, batchSize, apply, giveBack, how)
  const events = await claimEvents(platform, source, batchSize, how.lane)
  for (const event of events) await applyInHalves(platform, [event], apply, giveBack)
  return events.length
}

/** A batch of a store's, which takes a lease only when it could not be applied as a whole without one. */
async function drainUnleased(
  platform: Platform,
  batchSize: number,
  apply: ApplyEvents,
  giveBack: GiveBack,
  how: How,
): Promise<number> {
  const batch: Batch = { size: batchSize, events: [], ...how }
  try {
    await (platform.database.dialect === 'sqlite' ? applyPeeked : applyHeld)(platform, apply, batch)
    return batch.events.length
  } catch (error) {
    if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
    const claimed = await claimEvents(platform, 'store', batchSize, how.lane)
    const same = claimed.length > 0 && claimed.every((event, index) => event.id === batch.events[index]?.id)
    // What has just failed is not tried as a whole again.
    if (same && !(error instanceof LeaseLost)) await afterFailure(platform, claimed, error, apply, giveBack)
    else if (claimed.length > 0) await applyInHalves(platform, claimed, apply, giveBack)
    return claimed.length
  }
}

/** A batch as it is tried; whoever must see to it when that has failed finds its events here. */
interface Batch extends How {
  size: number
  events: readonly ClaimedEvent[]
}

/** On SQLite a transaction keeps everybody else from writing: nothing is read in it that can be read before. */
async function applyPeeked(platform: Platform, apply: ApplyEvents, batch: Batch): Promise<void> {
  const read = batch.reader?.read() ?? NOTHING_READ
  batch.events = await peekEvents(platform, 'store', batch.size, read)
  await applyTried(platform, apply, batch, null, read)
}

async function applyHeld(platform: Platform, apply: ApplyEvents, batch: Batch): Promise<void> {
  const lane = batch.lane ?? null
  await platform.database.transaction(async (tx) => {
    const read = batch.reader?.read() ?? NOTHING_READ
    batch.events = await holdEvents(platform, tx, 'store', batch.size, lane, read)
    await applyTried(platform, apply, batch, tx, read)
  })
  if (batch.events.length === 0 && (await bringBack(platform, 'store')))
    await applyHeld(platform, apply, batch)
}

async function applyTried(
  platform: Platform,
  apply: ApplyEvents,
  { reader, size, events }: Batch,
  tx: Tx | null,
  read: ReadOrders,
): Promise<void> {
  if (events.length === 0) return
  // An order that comes alone must not pay for a thread.
  if (events.length === size) reader?.readOn(events)
  await apply(platform, events, tx, read)
}

/** The halves one after the other: a store's events keep their order. */
async function applyInHalves(
  platform: Platform,
  events: readonly ClaimedEvent[],
  apply: ApplyEvents,
  giveBack: GiveBack,
): Promise<void> {
  try {
    await apply(platform, events, null)
  } catch (error) {
    if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
    await afterFailure(platform, events, error, apply, giveBack)
  }
}

async function afterFailure(
  platform: Platform,
  events: readonly ClaimedEvent[],
  error: unknown,
  apply: ApplyEvents,
  giveBack: GiveBack,
): Promise<void> {
  const [first] = events
  if (first && events.length === 1) return setBack(platform, first, error, giveBack)
  platform.log.warn({ err: error, events: events.length }, 'a batch of events is applied in halves')
  const middle = Math.ceil(events.length / 2)
  await applyInHalves(platform, events.slice(0, middle), apply, giveBack)
  await applyInHalves(platform, events.slice(middle), apply, giveBack)
}

async function setBack(
  platform: Platform,
  event: ClaimedEvent,
  error: unknown,
  giveBack: GiveBack,
): Promise<void> {
  if (error instanceof LeaseLost) return
  platform.log.error({ err: error, event: event.id }, 'an event could not be applied')
  await giveBack(event, error).catch((lost: unknown) => {
    if (!(lost instanceof LeaseLost)) throw lost
  })
}
