import type { EventSource } from '../../inbox/inbox.service.ts'
import { processorEventApplier } from '../../jobs/apply-processor-events.ts'
import { applyStoreEvents } from '../../jobs/apply-store-events.ts'
import { type ApplyEvents, drainEvents } from '../../jobs/drain-events.ts'
import { makeDueCalls } from '../../jobs/processor-calls.ts'
import type { Platform } from '../../platform/platform.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../../processor/events.settings.ts'
import type { Processor } from '../../processor/processor.ts'

const applyProcessorEvents = processorEventApplier(GENERIC_PROCESSOR_EVENTS)

/** What there is to look for. */
export interface Due {
  orders: boolean
  events: boolean
  calls: boolean
}

/**
 * What the workers do with everything that is due now: orders, the processor's events, calls. Unlike the workers it takes no error
 * for an answer, not even of a batch that could then be applied one by one.
 */
export async function drainOnce(
  platform: Platform,
  processor: Processor,
  batchSize: number,
  due: Due,
): Promise<void> {
  if (due.orders) await drain(platform, 'store', batchSize, applyStoreEvents)
  if (due.events) await drain(platform, 'processor', batchSize, applyProcessorEvents)
  if (due.calls) await sendAll(platform, processor)
}

async function drain(
  platform: Platform,
  source: EventSource,
  batchSize: number,
  apply: ApplyEvents,
): Promise<void> {
  const errors: unknown[] = []
  const watched: ApplyEvents = (...batch) =>
    apply(...batch).catch((error) => {
      errors.push(error)
      throw error
    })
  while ((await drainEvents(platform, source, batchSize, watched)) > 0) if (errors.length > 0) throw errors[0]
}

/**
 * How long something waits for its next try is left to chance, so that callers do not come back together. A story must go the same
 * way each time it runs: whatever waits is due the next time that the workers work, in the order of its coming.
 */
export async function evenWaits(platform: Platform): Promise<void> {
  const now = platform.clock.now()
  await platform.database.transaction(async (tx) => {
    await tx
      .updateTable('inbound_events')
      .set({ next_attempt_at: now })
      .where('state', '=', 'pending')
      .execute()
    await tx
      .updateTable('processor_attempts')
      .set({ next_try_at: now })
      .where('state', '=', 'waiting')
      .execute()
  })
}

async function sendAll(platform: Platform, processor: Processor): Promise<void> {
  while ((await makeDueCalls(platform, processor)) > 0);
}
