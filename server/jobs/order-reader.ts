import {
  MessageChannel,
  type MessagePort,
  type ResourceLimits,
  receiveMessageOnPort,
  Worker,
} from 'node:worker_threads'
import type { ClaimedEvent } from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import { MalformedOrder } from '../shopify/fields.ts'
import type { ReaderMessage, ReadOn, ThreadSettings } from './order-reader-thread.ts'
import { KEPT_BYTES, NOTHING_READ, type ReadOrder, type ReadOrders } from './read-order.ts'

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
const ROOM = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 }

interface Thread {
  worker: Worker
  port: MessagePort
}

/** `idleMs`, `thread` and its `room`: other than usual, for tests. */
export function createOrderReader(platform: Platform, unusual: Partial<ReaderSettings> = {}): OrderReader {
  return new Reader(platform, { idleMs: IDLE_MS, thread: threadFile(), room: ROOM, ...unusual })
}

interface ReaderSettings {
  idleMs: number
  thread: URL
  room: ResourceLimits
}

/** Beside this file, in the sources and in what is made of them. */
function threadFile(): URL {
  return new URL(import.meta.url.replace(/order-reader(\.[jt]s)$/, 'order-reader-thread$1'))
}

class Reader implements OrderReader {
  readonly #platform: Platform
  readonly #settings: ReaderSettings
  readonly #orders = new Map<string, { order: ReadOrder; bodyHash: string }>()
  readonly #bytes = new Map<string, number>()
  #keptBytes = 0
  #thread: Thread | null = null
  #ending: Promise<unknown> = Promise.resolve()
  #idle: NodeJS.Timeout | null = null
  #restUntil = 0
  #closed = false

  constructor(platform: Platform, settings: ReaderSettings) {
    this.#platform = platform
    this.#settings = settings
  }

  read(): ReadOrders {
    this.#receive()
    return this.#orders.size === 0 ? NOTHING_READ : new Map(this.#orders)
  }

  readOn(taken: readonly ClaimedEvent[]): void {
    this.#receive()
    for (const { id } of taken) this.#forget(id)
    this.#thread ??= this.#begin()
    if (this.#thread === null) return
    const now = this.#platform.clock.now()
    const ask: ReadOn = { now, limit: LOOK_AHEAD, taken: taken.map(({ id }) => id) }
    this.#thread.port.postMessage(ask)
    this.#idle = this.#idle?.refresh() ?? setTimeout(() => this.#end(), this.#settings.idleMs).unref()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#end()
    await this.#ending
  }

  #begin(): Thread | null {
    if (this.#closed || performance.now() < this.#restUntil) return null
    const { port1: port, port2 } = new MessageChannel()
    const { TRACKING_PARAMETER: trackingParameter, ...config } = this.#platform.config
    // Poolers refuse the option that makes its connection read-only.
    const url = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL
    const workerData: ThreadSettings = { url, trackingParameter, port: port2 }
    const { thread, room: resourceLimits } = this.#settings
    const worker = new Worker(thread, { workerData, transferList: [port2], resourceLimits })
    worker.unref()
    worker.on('error', (error) => this.#fail(worker, error))
    return { worker, port }
  }

  /** Without waiting for a turn of the loop: on SQLite a worker with much to do leaves it none between two batches. */
  #receive(): void {
    for (;;) {
      const received = this.#thread && receiveMessageOnPort(this.#thread.port)
      if (!received || this.#thread === null) break
      const message: ReaderMessage = JSON.parse(received.message)
      if (message.kind === 'failed') this.#fail(this.#thread.worker, message.message)
      else this.#keep(message.orders)
    }
  }

  #keep(orders: Extract<ReaderMessage, { kind: 'read' }>['orders']): void {
    for (const [id, read, bytes, bodyHash] of orders) {
      this.#forget(id)
      const order = 'malformed' in read ? new MalformedOrder(read.malformed, read.names) : read
      this.#orders.set(id, { order, bodyHash })
      this.#bytes.set(id, bytes)
      this.#keptBytes += bytes
    }
    for (const id of this.#orders.keys()) {
      if (this.#orders.size <= KEPT && this.#keptBytes <= KEPT_BYTES) break
      this.#forget(id)
    }
  }

  #forget(id: string): void {
    this.#orders.delete(id)
    this.#keptBytes -= this.#bytes.get(id) ?? 0
    this.#bytes.delete(id)
  }

  #fail(worker: Worker, error: unknown): void {
    if (this.#thread?.worker !== worker) return
    this.#platform.log.warn(
      { err: error },
      'orders are not read ahead for a minute: the thread for it has failed',
    )
    this.#restUntil = performance.now() + REST_MS
    this.#end()
  }

  #end(): void {
    clearTimeout(this.#idle ?? undefined)
    this.#idle = null
    this.#orders.clear()
    this.#bytes.clear()
    this.#keptBytes = 0
    const thread = this.#thread
    this.#thread = null
    if (thread === null) return
    thread.port.close()
    this.#ending = Promise.all([this.#ending, thread.worker.terminate()])
  }
}
