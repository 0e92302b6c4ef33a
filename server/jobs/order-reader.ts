import {
  MessageChannel,
  type MessagePort,
  type ResourceLimits,
  receiveMessageOnPort,
  Worker,
} from 'node:worker_threads'
import type { ClaimedEvent } from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import type { ReaderMessage, ReadOn, ThreadSettings } from './order-reader-thread.ts'
import { KEPT_BYTES, type KeptOrder, NOTHING_READ, type ReadOrders } from './read-order.ts'

/**
 * Reads and parses the next orders in a thread. A stored body never changes, so any worker may use the result. A worker parses itself
 * what the thread has not read.
 */
export interface OrderReader {
  /** What has been read so far and not been taken up. */
  read(): ReadOrders
  /** These are about to be applied, and much waits: what is due behind them is to be read meanwhile. */
  readOn(taken: readonly ClaimedEvent[]): void
  close(): Promise<void>
}

/** Events that it looks at: two batches of SQLite, four of PostgreSQL. */
const LOOK_AHEAD = 2000
/** The most orders that are kept, besides `KEPT_BYTES`, the newest: another worker may have applied the others. */
const KEPT = 3000
/** Without work for this long the thread ends, and what it has read is dropped, ms. */
const IDLE_MS = 10_000
/** After a failure of the thread the worker reads alone for this long, ms. */
const REST_MS = 60_000
/** A thread that needs more memory than this ends alone, without its process. */
const ROOM: ResourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 }
/** Beside this file, in the sources and in what is made of them. */
const THREAD = new URL(import.meta.url.replace(/order-reader(\.[jt]s)$/, 'order-reader-thread$1'))

/** `idleMs`, `thread` and its `room`: other than usual, for tests. */
export function createOrderReader(
  platform: Platform,
  {
    idleMs = IDLE_MS,
    thread = THREAD,
    room = ROOM,
  }: { idleMs?: number; thread?: URL; room?: ResourceLimits } = {},
): OrderReader {
  const orders = new Map<string, KeptOrder>()
  let keptBytes = 0
  let running: { worker: Worker; port: MessagePort } | null = null
  let ending: Promise<unknown> = Promise.resolve()
  let idle: NodeJS.Timeout | null = null
  let restUntil = 0

  function begin() {
    if (performance.now() < restUntil) return null
    const { port1: port, port2 } = new MessageChannel()
    const { TRACKING_PARAMETER, FEE_TITLES, ...config } = platform.config
    // Poolers refuse the option that makes its connection read-only.
    const url = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL
    const workerData: ThreadSettings = { url, names: { TRACKING_PARAMETER, FEE_TITLES }, port: port2 }
    const worker = new Worker(thread, { workerData, transferList: [port2], resourceLimits: room })
    worker.unref()
    worker.on('error', (error) => {
      if (running?.worker === worker) fail(error)
    })
    return { worker, port }
  }

  /** Without waiting for a turn of the loop: on SQLite a worker with much to do leaves it none between two batches. */
  function receive(): void {
    for (;;) {
      const received = running && receiveMessageOnPort(running.port)
      if (!received) return
      const message: ReaderMessage = JSON.parse(received.message)
      if (message.kind === 'failed') fail(message.message)
      else keep(message.orders)
    }
  }

  function keep(found: readonly [eventId: string, KeptOrder][]): void {
    for (const [id, read] of found) {
      forget(id)
      orders.set(id, read)
      keptBytes += read.bytes
    }
    for (const id of orders.keys()) {
      if (orders.size <= KEPT && keptBytes <= KEPT_BYTES) break
      forget(id)
    }
  }

  function forget(id: string): void {
    keptBytes -= orders.get(id)?.bytes ?? 0
    orders.delete(id)
  }

  function fail(error: unknown): void {
    platform.log.warn({ err: error }, 'orders are not read ahead for a minute: the thread for it has failed')
    restUntil = performance.now() + REST_MS
    end()
  }

  function end(): void {
    clearTimeout(idle ?? undefined)
    idle = null
    orders.clear()
    keptBytes = 0
    running?.port.close()
    ending = Promise.all([ending, running?.worker.terminate()])
    running = null
  }

  return {
    read() {
      receive()
      return orders.size === 0 ? NOTHING_READ : new Map(orders)
    },
    readOn(taken) {
      receive()
      for (const { id } of taken) forget(id)
      running ??= begin()
      if (running === null) return
      const ask: ReadOn = { now: platform.clock.now(), limit: LOOK_AHEAD, taken: taken.map(({ id }) => id) }
      running.port.postMessage(ask)
      idle = idle?.refresh() ?? setTimeout(end, idleMs).unref()
    },
    async close() {
      restUntil = Number.POSITIVE_INFINITY
      end()
      await ending
    },
  }
}
