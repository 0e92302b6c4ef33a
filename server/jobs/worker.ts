import { enforceClickRetention } from '../clicks/click-retention.service.ts'
import { rollUpClicks } from '../clicks/clicks.service.ts'
import {
  type ClaimedEvent,
  type EventSource,
  type Lane,
  lanesOf,
  nextEventDueAt,
  removeOldBodies,
  settle,
} from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import { nextAttemptDue } from '../processor/attempts.service.ts'
import type { ProcessorEventRules } from '../processor/events.rule.ts'
import type { Processor } from '../processor/processor.ts'
import { processorEventApplier } from './apply-processor-events.ts'
import { applyStoreEvents } from './apply-store-events.ts'
import { type ApplyEvents, drainEvents } from './drain-events.ts'
import { startExportLoops } from './export-loop.ts'
import { Loop } from './loop.ts'
import { startModerationLoop } from './moderation-loop.ts'
import { createOrderReader, type OrderReader } from './order-reader.ts'
import { makeDueCalls } from './processor-calls.ts'

/**
 * On SQLite a batch is one transaction, at whose end the disk is synced and the log is worked into the file: larger ones do less of
 * it, and one of these keeps other writers waiting for some fifth of a second, by what an order costs. On PostgreSQL there are lanes instead.
 */
const BATCH_SIZES = { sqlite: 1000, postgresql: 500 } as const
const LANES = 2
/** Few enough that a worker which is told to stop does so within a second or two. */
const BATCHES_A_LANE = 4
const ROLL_UP_EVERY_MS = 5000
const RETENTION_EVERY_MS = 3_600_000

export interface WorkerParts {
  platform: Platform
  processor: Processor
  eventRules: ProcessorEventRules
}

/**
 * Applies everything that is due now, until nothing is; for tests and commands that want the end state. With a `reader`, of
 * which the caller disposes, orders are read ahead. `batchSize`: of the stores' events, another one than usual.
 */
export async function drainUntilIdle(
  { platform, processor, eventRules }: WorkerParts,
  reader?: OrderReader,
  batchSize?: number,
): Promise<void> {
  for (;;) {
    const done =
      (await drainSource(platform, 'store', applyStoreEvents, reader, batchSize)) +
      (await drainSource(platform, 'processor', processorEventApplier(eventRules))) +
      (await makeDueCalls(platform, processor))
    if (done === 0) return
  }
}

async function drainSource(
  platform: Platform,
  source: EventSource,
  apply: ApplyEvents,
  reader?: OrderReader,
  size: number = BATCH_SIZES[platform.database.dialect],
): Promise<number> {
  const { dialect } = platform.database
  const requeue = (event: ClaimedEvent, error: unknown) => requeueEvent(platform, event, error)
  const drain = (lane?: Lane) =>
    drainEvents(platform, source, size, apply, requeue, { ...(lane && { lane }), ...(reader && { reader }) })
  const done = await drain()
  if (source !== 'store' || dialect === 'sqlite' || done < size) return done
  return done + (await drainInLanes(await lanesOf(platform, source, size, LANES), size, drain))
}

/**
 * Half of what waits each: while one waits for the database, the other decides. Only where much has piled up. To
 * each other they are like two workers.
 */
async function drainInLanes(
  lanes: readonly Lane[],
  size: number,
  drain: (lane: Lane) => Promise<number>,
): Promise<number> {
  const runs = lanes.map(async (lane) => {
    let done = 0
    for (let batch = 0; batch < BATCHES_A_LANE; batch += 1) {
      const some = await drain(lane)
      done += some
      if (some < size) break
    }
    return done
  })
  // All of them to their ends, also when one has failed: nothing may go on behind the back of whoever stops the worker.
  await Promise.allSettled(runs)
  return (await Promise.all(runs)).reduce((sum, done) => sum + done, 0)
}

/** An event that could not be applied comes again later, and is set aside after its last try. */
export function requeueEvent(platform: Platform, event: ClaimedEvent, error: unknown): Promise<void> {
  // A message can quote the event itself, and PostgreSQL refuses to store a NUL.
  const said = String(error instanceof Error ? error.message : error).replace(/\p{Cc}+/gu, ' ')
  // The cut can go through a surrogate pair.
  const reason = said.slice(0, 500).toWellFormed()
  return platform.database.transaction((tx) => settle(platform, tx, event, { kind: 'retry', reason }))
}

export interface Worker {
  /** Finishes what is under way and stops. */
  stop(): Promise<void>
}

/** Starts the worker: one loop a kind of work, each woken by its signal and by what falls due. */
export function startWorker(parts: WorkerParts): Worker {
  const { platform } = parts
  const applyProcessorEvents = processorEventApplier(parts.eventRules)
  const reader = createOrderReader(platform)
  const loops = [
    new Loop(platform, {
      name: 'store events',
      signals: ['inbox'],
      run: () => drainSource(platform, 'store', applyStoreEvents, reader),
      nextDueAt: () => nextEventDueAt(platform, 'store'),
    }),
    new Loop(platform, {
      name: 'processor events',
      signals: ['inbox'],
      run: () => drainSource(platform, 'processor', applyProcessorEvents),
      nextDueAt: () => nextEventDueAt(platform, 'processor'),
    }),
    new Loop(platform, {
      name: 'processor calls',
      signals: ['attempts'],
      run: () => makeDueCalls(platform, parts.processor),
      nextDueAt: () => nextAttemptDue(platform),
    }),
    new Loop(platform, {
      name: 'click counts',
      signals: [],
      run: () => rollUpClicks(platform).then(() => 0),
      nextDueAt: async () => null,
      longestSleepMs: ROLL_UP_EVERY_MS,
    }),
    new Loop(platform, {
      name: 'click retention',
      signals: [],
      run: () => enforceClickRetention(platform).then(() => 0),
      nextDueAt: async () => null,
      longestSleepMs: RETENTION_EVERY_MS,
    }),
    new Loop(platform, {
      name: 'retention',
      signals: [],
      run: () => removeOldBodies(platform).then(() => 0),
      nextDueAt: async () => null,
      longestSleepMs: RETENTION_EVERY_MS,
    }),
    startModerationLoop(platform),
    startExportLoops(platform),
  ]
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()))
      await reader.close()
    },
  }
}
