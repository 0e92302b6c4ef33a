import { Refusal } from './refusal.ts'
import { withStatementPatience } from './statement-patience.ts'

/** Who waits for one item. Neither may throw; one of them is called, once. */
export interface Told<Result> {
  /** The item is on disk. */
  done(result: Result): void
  /** It may not be. */
  failed(error: unknown): void
}

interface Waiting<Item, Result> {
  item: Item
  bytes: number
  /** By performance.now(). */
  deadline: number
  /** `null` once told. */
  told: Told<Result> | null
}

export interface GroupCommitOptions<Item, Result> {
  /** Writes all items in one transaction and answers a result for each, in order. */
  write: (items: Item[]) => Promise<Result[]>
  /** The most items of one write. */
  maxBatch: number
  /** The most items that may wait; past it they are refused at once instead of growing. */
  maxWaiting: number
  /** The size of an item; without it items have none. */
  bytesOf?: (item: Item) => number
  /** The most bytes of one write; a single item may be larger. */
  maxBatchBytes?: number
  /** The most bytes that may wait. */
  maxWaitingBytes?: number
  /** How many need not wait for more to join them, 1 unless told: see `#gather`. */
  enough?: number
  /** How many turns of the loop they may wait for them, 6 unless told. */
  turns?: number
  /** How many must wait for a second write to begin beside the one in flight; never unless told. */
  beside?: number
  /** How long an item may wait for its answer, in ms, before its caller is told `unavailable`. */
  patienceMs: number
}

/**
 * How many turns those wait whose write is on this very thread, as SQLite's is: who is there belongs together. A turn of the loop takes on
 * one new connection, and with a write at each turn the last of many that come at once had waited for as many writes. But the
 * last few dozen of many hardly make an item's share smaller, and who comes in with the next write can be on the way
 * meanwhile: how many are `enough` is the writer's to say.
 */
export const TURNS_ON_THIS_THREAD = 16

/** How often within the patience it is looked for those whose patience is over. */
const LOOKS = 20
/** Turns of the loop that a batch may wait for more to join it. */
const TURNS = 6

/**
 * Gathers what concurrent requests want to write into one transaction, and answers each once it has committed. There
 * is one write in flight, or a second one beside it where that is wanted; what comes meanwhile forms the next, so batches
 * size themselves by the load.
 */
export class GroupCommit<Item, Result> {
  readonly #options: GroupCommitOptions<Item, Result>
  #waiting: Waiting<Item, Result>[] = []
  #waitingBytes = 0
  /** The batches that are being written; all of them had their deadlines set before anything that waits. */
  readonly #writing = new Set<readonly Waiting<Item, Result>[]>()
  #running: Promise<void> | null = null
  #beside: Promise<void> | null = null
  /** One for all, since a timer for each item costs as much as its share of the write. */
  #clock: NodeJS.Timeout | null = null

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options
  }

  /**
   * Resolves when the item is on disk. Refuses with `unavailable` when too much waits already or the database does
   * not answer in time. An item whose write had begun by then may still be written, which its own id makes harmless;
   * one that had not is dropped, so that a database that comes back serves those who still wait.
   */
  add(item: Item): Promise<Result> {
    return new Promise((done, failed) => this.put(item, { done, failed }))
  }

  /** The same for the hottest paths, where a promise and what awaits it cost as much as their share of the write. */
  put(item: Item, told: Told<Result>): void {
    const { maxWaiting, maxWaitingBytes = Number.POSITIVE_INFINITY, bytesOf } = this.#options
    const bytes = bytesOf?.(item) ?? 0
    if (this.#waiting.length >= maxWaiting || this.#waitingBytes + bytes > maxWaitingBytes) {
      told.failed(unavailable('too many writes are waiting'))
      return
    }
    const deadline = performance.now() + this.#options.patienceMs
    this.#waiting.push({ item, deadline, told, bytes })
    this.#waitingBytes += bytes
    this.#clock ??= setInterval(() => this.#giveUp(), Math.max(1, this.#options.patienceMs / LOOKS))
    this.#running ??= this.#run()
    if (this.#wantsSecond()) this.#beside ??= this.#runBeside()
  }

  /** How many items wait for the next write. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    while (this.#running || this.#beside) await Promise.all([this.#running, this.#beside])
  }

  async #run(): Promise<void> {
    await nextTurn()
    await this.#gather()
    while (this.#waiting.length > 0) {
      await this.#write(this.#take())
      await this.#gather()
    }
    this.#running = null
  }

  /** One write; the turn goes on first, for what else it brings. */
  async #runBeside(): Promise<void> {
    await nextTurn()
    if (this.#wantsSecond()) await this.#write(this.#take())
    this.#beside = null
  }

  #wantsSecond(): boolean {
    const { beside = Number.POSITIVE_INFINITY } = this.#options
    return this.#writing.size === 1 && this.#waiting.length >= beside
  }

  /**
   * Lets the loop turn until enough wait, as long as each turn brings more and a few times at most: what lies in the sockets by now has
   * to be read anyway, and of a write for twice as many each costs little more than half.
   */
  async #gather(): Promise<void> {
    const { enough = 1, turns = TURNS } = this.#options
    let before = 0
    for (let turn = 0; turn < turns; turn += 1) {
      const { length } = this.#waiting
      if (length === before || length >= enough) return
      before = length
      await nextTurn()
    }
  }

  async #write(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    this.#writing.add(batch)
    let results: Result[]
    try {
      results = await withStatementPatience(() => this.#options.write(batch.map(({ item }) => item)))
    } catch (error) {
      for (const waiting of batch) fail(waiting, error)
      return
    } finally {
      this.#writing.delete(batch)
    }
    let place = 0
    for (const waiting of batch) tell(waiting, results[place++] as Result)
  }

  #take(): Waiting<Item, Result>[] {
    const { maxBatch, maxBatchBytes = Number.POSITIVE_INFINITY } = this.#options
    if (this.#waiting.length <= maxBatch && this.#waitingBytes <= maxBatchBytes) {
      const all = this.#waiting
      this.#waiting = []
      this.#waitingBytes = 0
      return all
    }
    let bytes = 0
    const end = this.#waiting.findIndex((waiting, index) => {
      bytes += waiting.bytes
      return index === maxBatch || (index > 0 && bytes > maxBatchBytes)
    })
    const batch = this.#waiting.splice(0, end === -1 ? this.#waiting.length : end)
    for (const waiting of batch) this.#waitingBytes -= waiting.bytes
    return batch
  }

  /** Tells those whose patience is over; they stand in the order of their deadlines. */
  #giveUp(): void {
    const now = performance.now()
    for (const batch of this.#writing) {
      for (const waiting of batch) if (waiting.deadline <= now) fail(waiting, tooLate())
    }
    const patient = this.#waiting.findIndex(({ deadline }) => deadline > now)
    const gone = this.#waiting.splice(0, patient === -1 ? this.#waiting.length : patient)
    for (const waiting of gone) {
      this.#waitingBytes -= waiting.bytes
      fail(waiting, tooLate())
    }
    if (this.#waiting.length > 0 || this.#writing.size > 0 || !this.#clock) return
    clearInterval(this.#clock)
    this.#clock = null
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function tell<Result>(waiting: Waiting<unknown, Result>, result: Result): void {
  const { told } = waiting
  waiting.told = null
  told?.done(result)
}

function fail(waiting: Waiting<unknown, never>, error: unknown): void {
  const { told } = waiting
  waiting.told = null
  told?.failed(error)
}

function tooLate(): Refusal {
  return unavailable('the database did not answer in time')
}

function unavailable(internalDetail: string): Refusal {
  return new Refusal('unavailable', 'The service cannot store this right now. Try again shortly.', {
    internalDetail,
    retryAfter: 1,
  })
}
