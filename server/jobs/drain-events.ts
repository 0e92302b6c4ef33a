import {
  type ClaimedEvent,
  claimEvents,
  type EventSource,
  hasNoAttemptsLeft,
  LeaseLost,
  refuseForged,
  releaseEvents,
  settle,
} from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import type { OrderReader } from './order-reader.ts'
import { NOTHING_READ, type ReadOrders } from './read-order.ts'

/** Applies claimed events and settles them in one transaction. The bodies of the events in `read` are not loaded. */
export type ApplyEvents = (
  platform: Platform,
  events: readonly ClaimedEvent[],
  read: ReadOrders,
) => Promise<void>

/** The reason of an event that is set aside after the process has stopped in each attempt. */
const STOPPED =
  'The process stopped in every attempt at this event; it may have run out of memory. Check the body before you retry it.'

/**
 * Claims due events of a source and applies them. When a batch of store events fails, it is applied in halves, and those in halves, so that
 * an event that cannot be applied delays no other. The processor's events are applied one by one. Returns how many events were claimed.
 * `reader` reads the orders of the next batch in a thread.
 */
export async function drainEvents(
  platform: Platform,
  source: EventSource,
  limit: number,
  apply: ApplyEvents,
  reader?: OrderReader | undefined,
): Promise<number> {
  const read = reader?.read() ?? NOTHING_READ
  const claimed = await claimEvents(platform, source, { limit, read })
  const events = claimed.filter(({ problem }) => problem === null)
  const [first] = events
  try {
    await refuseForged(platform, claimed)
    if (!first) return claimed.length
    const stopped = { kind: 'set_aside', reason: STOPPED } as const
    if (hasNoAttemptsLeft(first))
      await platform.database.transaction((tx) => settle(platform, tx, first, stopped))
    else if (source === 'store') {
      // A single order is not worth a thread.
      if (claimed.length === limit) reader?.readOn(events)
      await applyInHalves(platform, events, apply, read)
    } else {
      for (const event of events) await applyInHalves(platform, [event], apply, read)
    }
  } catch (error) {
    // The database is unavailable, which is not the events' fault.
    await releaseEvents(platform, claimed)
    throw error
  }
  return claimed.length
}

/** One half after the other, so that a store's events keep their order. */
async function applyInHalves(
  platform: Platform,
  events: readonly ClaimedEvent[],
  apply: ApplyEvents,
  read: ReadOrders,
): Promise<void> {
  try {
    await apply(platform, events, read)
  } catch (error) {
    if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
    const [first] = events
    if (first && events.length === 1) return requeue(platform, first, error)
    platform.log.warn(
      { err: error, events: events.length },
      'a batch of events failed; applying it in halves',
    )
    const middle = Math.ceil(events.length / 2)
    await applyInHalves(platform, events.slice(0, middle), apply, read)
    await applyInHalves(platform, events.slice(middle), apply, read)
  }
}

/** Makes a failed event due again later; after its last attempt it is set aside. */
async function requeue(platform: Platform, event: ClaimedEvent, error: unknown): Promise<void> {
  if (error instanceof LeaseLost) return
  platform.log.error({ err: error, event: event.id }, 'an event could not be applied')
  // A message can quote the event, and PostgreSQL does not store a NUL.
  const message = String(error instanceof Error ? error.message : error).replace(/\p{Cc}+/gu, ' ')
  // The cut can split a surrogate pair.
  const reason = message.slice(0, 500).toWellFormed()
  try {
    await platform.database.transaction((tx) => settle(platform, tx, event, { kind: 'retry', reason }))
  } catch (failure) {
    if (!(failure instanceof LeaseLost)) throw failure
  }
}
