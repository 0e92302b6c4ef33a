import { enforceClickRetention } from '../clicks/click-retention.service.ts'
import { rollUpClicks } from '../clicks/clicks.service.ts'
import { removeOldVisitors } from '../clicks/shared-visitors.service.ts'
import { type EventSource, nextEventDueAt, removeOldBodies } from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import { INBOX_TOPIC } from '../platform/topics.ts'
import { nextAttemptDueAt } from '../processor/attempts.service.ts'
import type { ProcessorEventRules } from '../processor/events.settings.ts'
import type { Processor } from '../processor/processor.ts'
import { watchMarketplace } from '../watches/watches.service.ts'
import { processorEventApplier } from './apply-processor-events.ts'
import { applyStoreEvents } from './apply-store-events.ts'
import { FIRST_BATCH, MOST_BATCH, nextBatchSize } from './batch-size.rule.ts'
import { type ApplyEvents, drainEvents } from './drain-events.ts'
import { startExportLoops } from './export-loops.ts'
import { Loop } from './loop.ts'
import { startMailLoops } from './mail-loop.ts'
import { createOrderReader, type OrderReader } from './order-reader.ts'
import { makeDueCalls } from './processor-calls.ts'
import { notifyUntilIdle, removeOldNotifications, startWebhookLoops } from './webhook-loops.ts'

/** Where nothing waits for the event loop: larger batches cost less. */
const BATCH_SIZES = { sqlite: MOST_BATCH, postgresql: 500 } as const
const ROLL_UP_EVERY_MS = 5000
const WATCH_EVERY_MS = 60_000
const RETENTION_EVERY_MS = 3_600_000

export interface WorkerParts {
  platform: Platform
  processor: Processor
  eventRules: ProcessorEventRules
}

export interface DrainOptions {
  /** Reads orders ahead. The caller closes it. */
  reader?: OrderReader | undefined
  /** Of store events. */
  batchSize?: number
}

/** Applies all due events, makes all due calls and sends all due webhooks until none is left: for tests and commands. */
export async function drainUntilIdle(
  { platform, processor, eventRules }: WorkerParts,
  { reader, batchSize }: DrainOptions = {},
): Promise<void> {
  const applyProcessorEvents = processorEventApplier(eventRules)
  const size = BATCH_SIZES[platform.database.dialect]
  for (;;) {
    const done =
      (await drainEvents(platform, 'store', batchSize ?? size, applyStoreEvents, reader)) +
      (await drainEvents(platform, 'processor', size, applyProcessorEvents)) +
      (await makeDueCalls(platform, processor)) +
      (await notifyUntilIdle(platform))
    if (done === 0) return
  }
}

/**
 * Returns a function that drains one batch. On SQLite a batch holds the event loop from its first statement to its last: beside the web
 * server its size follows from the processor time that the last ones took.
 */
function createDrain(platform: Platform, source: EventSource, apply: ApplyEvents, reader?: OrderReader) {
  const { database, config } = platform
  if (database.dialect === 'postgresql' || !config.ROLES.includes('web'))
    return () => drainEvents(platform, source, BATCH_SIZES[database.dialect], apply, reader)
  let size = FIRST_BATCH
  return async (): Promise<number> => {
    const before = process.threadCpuUsage()
    const claimed = await drainEvents(platform, source, size, apply, reader)
    const { user, system } = process.threadCpuUsage(before)
    size = nextBatchSize(size, { claimed, ms: (user + system) / 1000 })
    return claimed
  }
}

export interface Worker {
  /** Finishes the work under way and stops. */
  stop(): Promise<void>
}

/** Starts the worker: one loop for each kind of work, woken by its signal and by the time at which work is due. */
export function startWorker({ platform, processor, eventRules }: WorkerParts): Worker {
  const reader = createOrderReader(platform)
  const loops = [
    new Loop(platform, {
      name: 'store events',
      signals: [INBOX_TOPIC],
      run: createDrain(platform, 'store', applyStoreEvents, reader),
      nextDueAt: () => nextEventDueAt(platform, 'store'),
    }),
    new Loop(platform, {
      name: 'processor events',
      signals: [INBOX_TOPIC],
      run: createDrain(platform, 'processor', processorEventApplier(eventRules)),
      nextDueAt: () => nextEventDueAt(platform, 'processor'),
    }),
    new Loop(platform, {
      name: 'processor calls',
      signals: ['attempts'],
      run: () => makeDueCalls(platform, processor),
      nextDueAt: () => nextAttemptDueAt(platform),
    }),
    new Loop(platform, {
      name: 'click counts',
      run: () => rollUpClicks(platform).then(() => 0),
      longestSleepMs: ROLL_UP_EVERY_MS,
    }),
    new Loop(platform, {
      name: 'click retention',
      isLong: true,
      async run() {
        await enforceClickRetention(platform)
        await removeOldVisitors(platform)
        return 0
      },
      longestSleepMs: RETENTION_EVERY_MS,
    }),
    new Loop(platform, {
      name: 'retention',
      isLong: true,
      run: async () => {
        await removeOldBodies(platform)
        await removeOldNotifications(platform)
        return 0
      },
      longestSleepMs: RETENTION_EVERY_MS,
    }),
    startModerationLoop(platform),
    startExportLoops(platform),
    startMailLoops(platform),
    startWebhookLoops(platform),
  ]
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()))
      await reader.close()
    },
  }
}

/** Starts checking the marketplace for what a moderator must see. */
export function startModerationLoop(platform: Platform): Loop {
  return new Loop(platform, {
    name: 'moderation',
    isLong: true,
    async run() {
      await rollUpClicks(platform)
      return watchMarketplace(platform)
    },
    longestSleepMs: WATCH_EVERY_MS,
  })
}
