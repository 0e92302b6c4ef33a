import { Refusal } from './refusal.ts'

interface Waiting<Item, Result> {
  item: Item
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

export interface GroupCommitOptions<Item, Result> {
  /** Writes all items in one transaction and answers a result for each, in order. */
  write: (items: Item[]) => Promise<Result[]>
  /** The most items of one write. */
  maxBatch: number
  /** The most items that may wait; past it `add` refuses at once instead of growing. */
  maxWaiting: number
  /** How long an item may wait for its answer, in ms, before its caller is told `unavailable`. */
  patienceMs: number
}

/**
 * Gathers what concurrent requests want to write into one transaction, and answers each once it has committed. There
 * is one write in flight; what comes meanwhile forms the next, so batches size themselves by the load.
 */
export class GroupCommit<Item, Result> {
  readonly #options: GroupCommitOptions<Item, Result>
  #waiting: Waiting<Item, Result>[] = []
  #running: Promise<void> | null = null

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options
  }

  /**
   * Resolves when the item is on disk. Refuses with `unavailable` when too much waits already or the database does
   * not answer in time. An item whose write had begun by then may still be written, which its own id makes harmless;
   * one that had not is dropped, so that a database that comes back serves those who still wait.
   */
  add(item: Item): Promise<Result> {
    if (this.#waiting.length >= this.#options.maxWaiting) {
      return Promise.reject(unavailable('too many writes are waiting'))
    }
    return new Promise<Result>((resolve, reject) => {
      const timer = setTimeout(() => {
        const place = this.#waiting.indexOf(waiting)
        if (place >= 0) this.#waiting.splice(place, 1)
        reject(unavailable('the database did not answer in time'))
      }, this.#options.patienceMs)
      const waiting: Waiting<Item, Result> = {
        item,
        resolve: (result) => {
          clearTimeout(timer)
          resolve(result)
        },
        reject: (error) => {
          clearTimeout(timer)
          reject(error)
        },
      }
      this.#waiting.push(waiting)
      this.#running ??= this.#run()
    })
  }

  /** How many items wait for the next write. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running
  }

  async #run(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#options.maxBatch)
      try {
        const results = await this.#options.write(batch.map((waiting) => waiting.item))
        batch.forEach((waiting, index) => {
          waiting.resolve(results[index] as Result)
        })
      } catch (error) {
        for (const waiting of batch) waiting.reject(error)
      }
    }
    this.#running = null
  }
}

function unavailable(internalDetail: string): Refusal {
  return new Refusal('unavailable', 'The service cannot store this right now. Try again shortly.', {
    internalDetail,
    retryAfter: 1,
  })
}
