import { type Refusal, unavailable } from '../api/refusal.ts'
import { withStatementTimeout } from './database.ts'

interface Waiting<Item, Result> {
  item: Item
  bytes: number
  /** By performance.now(). */
  deadline: number
  resolve(result: Result): void
  reject(error: unknown): void
}

export interface GroupCommitOptions<Item, Result> {
  /** Writes all items in one transaction; returns one result for each, in order. */
  write: (items: Item[]) => Promise<Result[]>
  /** The most items of one write. */
  maxBatch: number
  /** The most items that may wait; further ones are refused. */
  maxWaiting: number
  /** The size of an item; 0 by default. */
  bytesOf?: (item: Item) => number
  /** The most bytes of one write; a single item may be larger. */
  maxBatchBytes?: number
  /** The most bytes that may wait. */
  maxWaitingBytes?: number
  /** The most writes at a time; 1 by default. */
  concurrency?: number
  /** How long an item may wait for its result, ms. */
  timeoutMs: number
}

/** How often within the timeout expired items are looked for. */
const CHECKS_PER_TIMEOUT = 20

/**
 * Group commit: writes the items of concurrent requests in one transaction and resolves each after the commit. Items that arrive during
 * a write form the next batch, so batches grow with the load.
 */
export class GroupCommit<Item, Result> {
  readonly #options: GroupCommitOptions<Item, Result>
  #waiting: Waiting<Item, Result>[] = []
  #waitingBytes = 0
  readonly #writes = new Map<readonly Waiting<Item, Result>[], Promise<void>>()
  #scheduled = false
  /** One timer for all items: a timer for each would cost as much as its share of the write. */
  #timer: NodeJS.Timeout | null = null

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options
  }

  /**
   * Resolves when the item is on disk. Rejects with `unavailable` when too much is waiting or after the timeout: an item whose write has
   * begun may still be written then; any other is dropped.
   */
  add(item: Item): Promise<Result> {
    const { maxWaiting, maxWaitingBytes = Number.POSITIVE_INFINITY, bytesOf, timeoutMs } = this.#options
    const bytes = bytesOf?.(item) ?? 0
    if (this.#waiting.length >= maxWaiting || this.#waitingBytes + bytes > maxWaitingBytes) {
      return Promise.reject(cannotStore('too many writes are waiting'))
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, bytes, deadline: performance.now() + timeoutMs, resolve, reject })
      this.#waitingBytes += bytes
      this.#timer ??= setInterval(() => this.#expire(), Math.max(1, timeoutMs / CHECKS_PER_TIMEOUT))
      this.#schedule()
    })
  }

  /** The number of items that wait for the next write. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Resolves when nothing is waiting or being written. */
  async idle(): Promise<void> {
    while (this.#waiting.length > 0 || this.#writes.size > 0) {
      await Promise.all(this.#writes.values())
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Begins a write after the present turn of the event loop, with all that the turn still brings. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (this.#waiting.length === 0 || this.#writes.size >= (this.#options.concurrency ?? 1)) return
      const batch = this.#take()
      this.#writes.set(batch, this.#write(batch))
    })
  }

  async #write(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const items = batch.map(({ item }) => item)
      const results = await withStatementTimeout(async () => this.#options.write(items))
      for (const [place, { resolve }] of batch.entries()) resolve(results[place] as Result)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    } finally {
      this.#writes.delete(batch)
      if (this.#waiting.length > 0) this.#schedule()
    }
  }

  #take(): Waiting<Item, Result>[] {
    const { maxBatch, maxBatchBytes = Number.POSITIVE_INFINITY } = this.#options
    let bytes = 0
    const end = this.#waiting.findIndex((waiting, index) => {
      bytes += waiting.bytes
      return index === maxBatch || (index > 0 && bytes > maxBatchBytes)
    })
    return this.#remove(end === -1 ? this.#waiting.length : end)
  }

  #remove(count: number): Waiting<Item, Result>[] {
    const removed = this.#waiting.splice(0, count)
    for (const { bytes } of removed) this.#waitingBytes -= bytes
    return removed
  }

  /** Rejects the items whose deadline has passed; the waiting ones are in the order of their deadlines. */
  #expire(): void {
    const now = performance.now()
    const error = cannotStore('the database did not answer in time')
    for (const batch of this.#writes.keys()) {
      for (const { deadline, reject } of batch) if (deadline <= now) reject(error)
    }
    const next = this.#waiting.findIndex(({ deadline }) => deadline > now)
    for (const { reject } of this.#remove(next === -1 ? this.#waiting.length : next)) reject(error)
    if (this.#waiting.length > 0 || this.#writes.size > 0 || !this.#timer) return
    clearInterval(this.#timer)
    this.#timer = null
  }
}

function cannotStore(internalDetail: string): Refusal {
  return unavailable('The service cannot store this right now.', internalDetail)
}
