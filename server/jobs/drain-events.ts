import {
  type ClaimedEvent,
  claimEvents,
  type EventSource,
  hasNoTriesLeft,
  type Lane,
  LeaseLost,
  releaseEvents,
  settle,
} from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import type { OrderReader } from './order-reader.ts'
import { NOTHING_READ, type ReadOrders } from './read-order.ts'

/**
 * Applies claimed events and settles them in one transaction. The events in `read` are claimed without their bodies, because those
 * have been read already.
 */
export type ApplyEvents = (
  platform: Platform,
  events: readonly ClaimedEvent[],
  read: ReadOrders,
) => Promise<void>

export interface DrainOptions {
  /** PostgreSQL only: these scopes only. */
  lane?: Lane
  /** Reads orders of the next batch in a thread, while much waits. */
  reader?: OrderReader
}

/** Has an event that failed tried again later. */
type Requeue = (event: ClaimedEvent, error: unknown) => Promise<void>

const STOPPED =
  'Each try ended with the process, which may have run out of memory: look at its body before a retry.'

/**
 * Claims due events of a source and applies them. When a batch of store events fails, its halves are applied, and theirs, so that one
 * that cannot be applied delays no other. The processor's events are applied one by one. Returns how many were claimed.
 */
export async function drainEvents(
  platform: Platform,
  source: EventSource,
  limit: number,
  apply: ApplyEvents,
  requeue: Requeue,
  { lane, reader }: DrainOptions = {},
): Promise<number> {
  const read = reader?.read() ?? NOTHING_READ
  const events = await claimEvents(platform, source, { limit, lane, read })
  const [first] = events
  if (!first) return 0
  try {
    if (hasNoTriesLeft(first)) await setAside(platform, first)
    else if (source === 'store') {
      // A single order is not worth a thread.
      if (events.length === limit) reader?.readOn(events)
      await applyInHalves(platform, events, apply, requeue, read)
    } else {
      for (const event of events) await applyInHalves(platform, [event], apply, requeue, read)
    }
  } catch (error) {
    // The database is away: not the events' fault. Where this fails as well, their leases run out.
    await releaseEvents(platform, events).catch(() => {})
    throw error
  }
  return events.length
}

function setAside(platform: Platform, event: ClaimedEvent): Promise<void> {
  return platform.database.transaction((tx) =>
    settle(platform, tx, event, { kind: 'set_aside', reason: STOPPED }),
  )
}

/** The halves one after the other: a store's events keep their order. */
async function applyInHalves(
  platform: Platform,
  events: readonly ClaimedEvent[],
  apply: ApplyEvents,
  requeue: Requeue,
  read: ReadOrders,
): Promise<void> {
  try {
    await apply(platform, events, read)
  } catch (error) {
    if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
    const [first] = events
    if (first && events.length === 1) return requeueFailed(platform, first, error, requeue)
    platform.log.warn({ err: error, events: events.length }, 'a batch of events is applied in halves')
    const middle = Math.ceil(events.length / 2)
    await applyInHalves(platform, events.slice(0, middle), apply, requeue, read)
    await applyInHalves(platform, events.slice(middle), apply, requeue, read)
  }
}

async function requeueFailed(
  platform: Platform,
  event: ClaimedEvent,
  error: unknown,
  requeue: Requeue,
): Promise<void> {
  if (error instanceof LeaseLost) return
  platform.log.error({ err: error, event: event.id }, 'an event could not be applied')
  await requeue(event, error).catch((lost: unknown) => {
    if (!(lost instanceof LeaseLost)) throw lost
  })
}
