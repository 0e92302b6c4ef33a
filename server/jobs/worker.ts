import { HOUR_MS } from '../../shared/durations.ts'
import { enforceClickRetention } from '../clicks/click-retention.service.ts'
import { rollUpClicks } from '../clicks/clicks.service.ts'
import { removeOldVisitors } from '../clicks/shared-visitors.service.ts'
import { exportStorage } from '../exports/exports.service.ts'
import { nextExportDueAt, runNextExport, sweepExports } from '../exports/run-export.service.ts'
import { type EventSource, nextEventDueAt, removeOldBodies } from '../inbox/inbox.service.ts'
import {
  mailChannel,
  mailDeliverer,
  removeOldMails,
} from '../notifications/channels/mail/deliver-mails.service.ts'
import { MAIL_SIGNAL } from '../notifications/channels/mail/mail.service.ts'
import { webhookDeliverer } from '../notifications/channels/webhooks/deliver.service.ts'
import {
  DELIVERY_SIGNAL,
  removeOldDeliveries,
  webhookChannel,
} from '../notifications/channels/webhooks/deliveries.service.ts'
import {
  type Channel,
  distributeEvents,
  OUTBOX_SIGNAL,
  removeOldEvents,
} from '../notifications/outbox.service.ts'
import { removeOldAnswers } from '../platform/api/idempotency.ts'
import { mailMode } from '../platform/config.ts'
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
import { type LoopWork, startLoops, type Worker } from './loop.ts'
import { createOrderReader, type OrderReader } from './order-reader.ts'
import { makeDueCalls } from './processor-calls.ts'

/** Where nothing waits for the event loop: larger batches cost less. */
const BATCH_SIZES = { sqlite: MOST_BATCH, postgresql: 500 } as const

export interface WorkerParts {
  platform: Platform
  processor: Processor
  eventRules: ProcessorEventRules
}

interface DrainOptions {
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

/** Starts the worker: one loop for each kind of work, woken by its signal and by the time at which work is due. */
export function startWorker(parts: WorkerParts): Worker {
  const { platform } = parts
  return startLoops(platform, [
    ...moneyLoops(parts),
    ...houseKeeping(platform),
    ...exportLoops(platform),
    ...(mailMode(platform.config) === 'off'
      ? []
      : [deliveryLoop('mails', MAIL_SIGNAL, mailDeliverer(platform))]),
    ...webhookLoops(platform),
  ])
}

function moneyLoops({ platform, processor, eventRules }: WorkerParts): LoopWork[] {
  const reader = createOrderReader(platform)
  const events = (source: EventSource, run: LoopWork['run']): LoopWork => ({
    name: `${source} events`,
    signals: [INBOX_TOPIC],
    run,
    nextDueAt: () => nextEventDueAt(platform, source),
  })
  return [
    {
      ...events('store', createDrain(platform, 'store', applyStoreEvents, reader)),
      end: () => reader.close(),
    },
    events('processor', createDrain(platform, 'processor', processorEventApplier(eventRules))),
    {
      name: 'processor calls',
      signals: ['attempts'],
      run: () => makeDueCalls(platform, processor),
      nextDueAt: () => nextAttemptDueAt(platform),
    },
  ]
}

type Chore = (platform: Platform) => Promise<unknown>

/** Work that is done every so often. */
export function houseKeeping(platform: Platform): LoopWork[] {
  const every = (longestSleepMs: number, name: string, isLong: boolean, ...work: Chore[]): LoopWork => ({
    name,
    isLong,
    async run() {
      for (const chore of work) await chore(platform)
      return 0
    },
    longestSleepMs,
  })
  return [
    every(5000, 'click counts', false, rollUpClicks),
    every(HOUR_MS, 'click retention', true, enforceClickRetention, removeOldVisitors),
    every(
      HOUR_MS,
      'retention',
      true,
      ...[removeOldBodies, removeOldDeliveries, removeOldEvents, removeOldMails, removeOldAnswers],
    ),
    {
      name: 'moderation',
      isLong: true,
      async run() {
        await rollUpClicks(platform)
        return watchMarketplace(platform)
      },
      longestSleepMs: 60_000,
    },
  ]
}

/** How many exports a process writes together, so that a long one does not hold up short ones of other users. */
const EXPORTS_TOGETHER = 2

/** Writes exports and removes expired files. An export that is aborted is released, and the next worker starts it again. */
export function exportLoops(platform: Platform): LoopWork[] {
  const storage = () => exportStorage(platform.config)
  const writers = Array.from({ length: EXPORTS_TOGETHER }, (_, index) => ({
    name: `exports ${index + 1}`,
    isLong: true,
    signals: ['exports'],
    run: async (stopping: AbortSignal) => Number(await runNextExport(platform, await storage(), stopping)),
    nextDueAt: () => nextExportDueAt(platform),
  }))
  const sweep = {
    name: 'expired exports',
    run: async () => sweepExports(platform, await storage()),
    longestSleepMs: 600_000,
  }
  return [...writers, sweep]
}

/** Delivers what is due, and what comes due, of one channel. */
function deliveryLoop(
  name: string,
  signal: string,
  deliverer: Pick<ReturnType<typeof webhookDeliverer>, 'start' | 'nextDueAt' | 'stop'>,
): LoopWork {
  return {
    name,
    signals: [signal],
    run: () => deliverer.start(),
    nextDueAt: () => deliverer.nextDueAt(),
    end: () => deliverer.stop(),
  }
}

/** The ways in which accounts are notified of events. */
const CHANNELS: readonly Channel[] = [webhookChannel, mailChannel]

/** Gives events to their channels, and sends webhooks. */
export function webhookLoops(platform: Platform): LoopWork[] {
  return [
    { name: 'outbox', signals: [OUTBOX_SIGNAL], run: () => distributeEvents(platform, CHANNELS) },
    deliveryLoop('webhook deliveries', DELIVERY_SIGNAL, webhookDeliverer(platform)),
  ]
}

/** Distributes all events and makes all due deliveries: for tests and commands. Returns how many there were. */
export async function notifyUntilIdle(platform: Platform): Promise<number> {
  const deliverer = webhookDeliverer(platform)
  let done = 0
  try {
    for (;;) {
      const some = (await distributeEvents(platform, CHANNELS)) + (await deliverer.untilIdle())
      if (some === 0) return done
      done += some
    }
  } finally {
    await deliverer.stop()
  }
}
