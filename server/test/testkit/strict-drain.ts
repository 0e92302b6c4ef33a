import { type EventSource, LeaseLost } from '../../inbox/inbox.service.ts'
import { type ApplyEvents, drainEvents } from '../../jobs/drain-events.ts'
import type { OrderReader } from '../../jobs/order-reader.ts'
import type { Platform } from '../../platform/platform.ts'

/** `drainEvents` that throws the error of the first event that could not be applied. */
export async function drainStrictly(
  platform: Platform,
  source: EventSource,
  limit: number,
  apply: ApplyEvents,
  reader?: OrderReader,
): Promise<number> {
  const errors: unknown[] = []
  const watched: ApplyEvents = (own, events, read) =>
    apply(own, events, read).catch((error) => {
      if (events.length === 1 && !(error instanceof LeaseLost)) errors.push(error)
      throw error
    })
  const events = await drainEvents(platform, source, limit, watched, reader)
  if (errors.length > 0) throw errors[0]
  return events
}
