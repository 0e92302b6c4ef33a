import { type EventSource, LeaseLost } from '../../inbox/inbox.service.ts'
import { type ApplyEvents, drainEvents } from '../../jobs/drain-events.ts'
import type { OrderReader } from '../../jobs/order-reader.ts'
import type { Platform } from '../../platform/platform.ts'

/** `drainEvents` that throws the first error, by default that of the first event which could not be applied by itself. */
export async function drainStrictly(
  platform: Platform,
  source: EventSource,
  limit: number,
  apply: ApplyEvents,
  reader?: OrderReader,
  isFault = (events: readonly unknown[], error: unknown) =>
    events.length === 1 && !(error instanceof LeaseLost),
): Promise<number> {
  const errors: unknown[] = []
  const watched: ApplyEvents = (own, events, read) =>
    apply(own, events, read).catch((error) => {
      if (isFault(events, error)) errors.push(error)
      throw error
    })
  const events = await drainEvents(platform, source, limit, watched, reader)
  if (errors.length > 0) throw errors[0]
  return events
}
