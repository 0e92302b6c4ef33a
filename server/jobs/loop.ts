import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { withLongStatements } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'

export interface LoopWork {
  name: string
  /** Signals that there is work now. */
  signals?: readonly string[]
  /**
   * Does what is due and returns how much that was. Runs again, after a turn of the event loop, while that is more than 0. Long work ends
   * when `stopping` aborts: another worker takes it up.
   */
  run(stopping: AbortSignal): Promise<number>
  /** When work is due next (epoch ms); `null` while none is known. */
  nextDueAt?(): Promise<number | null>
  /** Whether its statements may go over many rows: see `withLongStatements`. */
  isLong?: boolean
  /** Defaults to 250 ms, because another process can bring work without a signal here. */
  longestSleepMs?: number
  /** Called once the loop has ended. */
  end?(): Promise<void> | void
}

const LONGEST_SLEEP_MS = 250
const AFTER_AN_ERROR_MS = 1000
/** The pause while work is due that another worker holds. */
const HELD_BY_ANOTHER_MS = 250

/** Repeats one kind of work, one run at a time: immediately after a signal, otherwise when work is due. */
export class Loop {
  readonly #platform: Platform
  readonly #work: LoopWork
  readonly #unsubscribe: (() => void)[]
  readonly #stopping = new AbortController()
  #signaled = false
  #sleeping = new AbortController()
  readonly #finished: Promise<void>

  constructor(platform: Platform, work: LoopWork) {
    this.#platform = platform
    this.#work = work
    this.#unsubscribe = (work.signals ?? []).map((signal) => platform.topics.on(signal, () => this.#nudge()))
    this.#finished = this.#runForever()
  }

  /** Waits for the run under way, then ends. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#nudge()
    await this.#finished
    await this.#work.end?.()
  }

  #nudge(): void {
    this.#signaled = true
    this.#sleeping.abort()
  }

  async #runForever(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#signaled = false
      const ms = await this.#runOnce()
      if (ms === 0 || this.#signaled) await turnOfEventLoop()
      else {
        this.#sleeping = new AbortController()
        await pause(ms, undefined, { signal: this.#sleeping.signal }).catch(() => undefined)
      }
    }
  }

  /** Returns how long to sleep, ms. */
  async #runOnce(): Promise<number> {
    const { name, isLong, longestSleepMs: longest = LONGEST_SLEEP_MS } = this.#work
    try {
      const run = () => this.#work.run(this.#stopping.signal)
      if ((await (isLong ? withLongStatements(run) : run())) > 0) return 0
      const due = (await this.#work.nextDueAt?.()) ?? null
      const wait = due === null ? longest : due - this.#platform.clock.now()
      return wait > 0 ? Math.min(wait, longest) : HELD_BY_ANOTHER_MS
    } catch (error) {
      this.#platform.log.error({ err: error, loop: name }, 'the worker failed; it tries again shortly')
      return AFTER_AN_ERROR_MS
    }
  }
}

/** On SQLite a run may hold the event loop. The first turn takes in the requests that came meanwhile, the second commits what they write. */
async function turnOfEventLoop(): Promise<void> {
  await nextTurn()
  await nextTurn()
}

export interface Worker {
  /** Finishes the work under way and stops. */
  stop(): Promise<void>
}

export function startLoops(platform: Platform, works: readonly LoopWork[]): Worker {
  const running = works.map((work) => new Loop(platform, work))
  return {
    async stop() {
      await Promise.all(running.map((loop) => loop.stop()))
    },
  }
}
