import {
  type ClaimedEvent,
  claimEvents,
  type EventSource,
  type Lane,
  LeaseLost,
  peekEvents,
} from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'

/** Applies a batch of claimed events, effects and settlements in one transaction. */
export type ApplyEvents = (platform: Platform, events: readonly ClaimedEvent[]) => Promise<void>

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
  lane: Lane | null = null,
): Promise<number> {
  if (source === 'store' && platform.database.dialect === 'sqlite')
    return drainUnleased(platform, batchSize, apply, giveBack)
  const events = await claimEvents(platform, source, batchSize, lane)
  const batches = source === 'processor' ? events.map((event) => [event]) : events.length > 0 ? [events] : []
  for (const batch of batches) await applyInHalves(platform, batch, apply, giveBack)
  return events.length
}

/** A batch of a store's on SQLite, which takes a lease only when it could not be applied as a whole without one. */
async function drainUnleased(
  platform: Platform,
  batchSize: number,
  apply: ApplyEvents,
  giveBack: GiveBack,
): Promise<number> {
  const events = await peekEvents(platform, 'store', batchSize)
  if (events.length === 0) return 0
  try {
    await apply(platform, events)
    return events.length
  } catch (error) {
    if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
    const claimed = await claimEvents(platform, 'store', batchSize)
    const same = claimed.length > 0 && claimed.every((event, index) => event.id === events[index]?.id)
    // What has just failed is not tried as a whole again.
    if (same && !(error instanceof LeaseLost)) await afterFailure(platform, claimed, error, apply, giveBack)
    else if (claimed.length > 0) await applyInHalves(platform, claimed, apply, giveBack)
    return claimed.length
  }
}

/** The halves one after the other: a store's events keep their order. */
async function applyInHalves(
  platform: Platform,
  events: readonly ClaimedEvent[],
  apply: ApplyEvents,
  giveBack: GiveBack,
): Promise<void> {
  try {
    await apply(platform, events)
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
