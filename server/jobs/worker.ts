import { enforceClickRetention } from '../clicks/click-retention.service.ts'
import { rollUpClicks } from '../clicks/clicks.service.ts'
import { removeOldVisitors } from '../clicks/shared-visitors.service.ts'
import { type EventSource, nextEventDueAt, removeOldBodies } from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import { INBOX_TOPIC } from '../platform/signals.ts'
import { nextAttemptDueAt } from '../processor/attempts.service.ts'
import type { ProcessorEventRules } from '../processor/events.settings.ts'
import type { Processor } from '../processor/processor.ts'
import { watchMarketplace } from '../watches/watches.service.ts'
import { processorEventApplier } from './apply-processor-events.ts'
import { applyStoreEvents } from './apply-store-events.ts'
import { FIRST_BATCH, nextBatchSize } from './batch-size.rule.ts'
import { type ApplyEvents, drainEvents } from './drain-events.ts'
import { startExportLoops } from './export-loops.ts'
import { Loop } from './loop.ts'
import { startMailLoops } from './mail-loop.ts'
import { makeDueCalls } from './processor-calls.ts'
import { notifyUntilIdle, removeOldNotifications, startWebhookLoops } from './webhook-loops.ts'

/** PostgreSQL does the work of a batch in another process, and the event loop runs meanwhile. */
const POSTGRES_BATCH = 500
const ROLL_UP_EVERY_MS = 5000
const WATCH_EVERY_MS = 60_000
const RETENTION_EVERY_MS = 3_600_000

export interface WorkerParts {
  platform: Platform
  processor: Processor
  eventRules: ProcessorEventRules
}

export interface DrainOptions {
  /** Of store events. */
  batchSize?: number
}

/** Applies all due events, makes all due calls and sends all due webhooks until none is left: for tests and commands. */
export async function drainUntilIdle(
  { platform, processor, eventRules }: WorkerParts,
  { batchSize }: DrainOptions = {},
): Promise<void> {
  const drainStore = createDrain(platform, 'store', applyStoreEvents, batchSize)
  const drainProcessor = createDrain(platform, 'processor', processorEventApplier(eventRules))
  for (;;) {
    const done =
      (await drainStore()) +
      (await drainProcessor()) +
      (await makeDueCalls(platform, processor)) +
      (await notifyUntilIdle(platform))
    if (done === 0) return
  }
}

/**
 * Returns a function that drains one batch. On SQLite a batch holds the event loop from its first statement to its last, so its size
 * follows from the time that the last ones took; with `fixedSize` it does not.
 */
function createDrain(platform: Platform, source: EventSource, apply: ApplyEvents, fixedSize?: number) {
  const isFixed = fixedSize !== undefined || platform.database.dialect === 'postgresql'
  let size = fixedSize ?? (isFixed ? POSTGRES_BATCH : FIRST_BATCH)
  return async (): Promise<number> => {
    const before = performance.eventLoopUtilization()
    const claimed = await drainEvents(platform, source, size, apply)
    const ms = performance.eventLoopUtilization(before).active
    if (!isFixed) size = nextBatchSize(size, { claimed, ms })
    return claimed
  }
}

export interface Worker {
  /** Finishes the work under way and stops. */
  stop(): Promise<void>
}

/** Starts the worker: one loop for each kind of work, woken by its signal and by the time at which work is due. */
export function startWorker({ platform, processor, eventRules }: WorkerParts): Worker {
  const loops = [
    new Loop(platform, {
      name: 'store events',
      signals: [INBOX_TOPIC],
      run: createDrain(platform, 'store', applyStoreEvents),
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
