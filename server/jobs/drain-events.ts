import { type ClaimedEvent, claimEvents, type EventSource, LeaseLost } from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'

/** Applies a batch of claimed events, effects and settlements in one transaction. */
export type ApplyEvents = (platform: Platform, events: readonly ClaimedEvent[]) => Promise<void>

/**
 * Claims due events of a source and applies them. When the batch as a whole fails, each event is applied alone, so
 * that one that cannot be applied holds up nobody else. Answers how many were claimed.
 */
export async function drainEvents(
  platform: Platform,
  source: EventSource,
  batchSize: number,
  apply: ApplyEvents,
  giveBack: (event: ClaimedEvent, error: unknown) => Promise<void>,
): Promise<number> {
  const events = await claimEvents(platform, source, batchSize)
  if (events.length === 0) return 0
  try {
    await apply(platform, events)
  } catch (error) {
    if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
    if (events.length > 1)
      platform.log.warn({ err: error, source }, 'a batch of events is applied one by one')
    for (const event of events) await applyAlone(platform, event, apply, giveBack)
  }
  return events.length
}

async function applyAlone(
  platform: Platform,
  event: ClaimedEvent,
  apply: ApplyEvents,
  giveBack: (event: ClaimedEvent, error: unknown) => Promise<void>,
): Promise<void> {
  try {
    await apply(platform, [event])
  } catch (error) {
    if (platform.database.faultOf(error)?.kind === 'unavailable') throw error
    if (error instanceof LeaseLost) return
    platform.log.error({ err: error, event: event.id }, 'an event could not be applied')
    await giveBack(event, error).catch((lost: unknown) => {
      if (!(lost instanceof LeaseLost)) throw lost
    })
  }
}
