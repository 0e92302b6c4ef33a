import { setImmediate as nextTurn } from 'node:timers/promises'
import { withLongStatements } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'

export interface LoopWork {
  name: string
  /** Signals that there is work now. */
  signals?: readonly string[]
  /** Does what is due and returns how much that was. Runs again, after a turn of the event loop, while that is more than 0. */
  run(): Promise<number>
  /** When work is due next (epoch ms); `null` while none is known. */
  nextDueAt?(): Promise<number | null>
  /** Whether its statements may go over many rows: see `withLongStatements`. */
  isLong?: boolean
  /** Defaults to 250 ms, because another process can bring work without a signal here. */
  longestSleepMs?: number
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
  #stopped = false
  #signaled = false
  #wake: (() => void) | null = null
  readonly #finished: Promise<void>

  constructor(platform: Platform, work: LoopWork) {
    this.#platform = platform
    this.#work = work
    this.#unsubscribe = (work.signals ?? []).map((signal) => platform.topics.on(signal, () => this.#nudge()))
    this.#finished = this.#runForever()
  }

  /** Waits for the run under way, then ends. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#nudge()
    await this.#finished
  }

  #nudge(): void {
    this.#signaled = true
    this.#wake?.()
  }

  async #runForever(): Promise<void> {
    while (!this.#stopped) {
      this.#signaled = false
      await this.#sleep(await this.#runOnce())
    }
  }

  /** Returns how long to sleep, ms. */
  async #runOnce(): Promise<number> {
    try {
      const { run, isLong } = this.#work
      if ((await (isLong ? withLongStatements(run) : run())) > 0) return 0
      const due = (await this.#work.nextDueAt?.()) ?? null
      const longest = this.#work.longestSleepMs ?? LONGEST_SLEEP_MS
      const wait = due === null ? longest : due - this.#platform.clock.now()
      return wait > 0 ? Math.min(wait, longest) : HELD_BY_ANOTHER_MS
    } catch (error) {
      this.#platform.log.error(
        { err: error, loop: this.#work.name },
        'the worker failed; it tries again shortly',
      )
      return AFTER_AN_ERROR_MS
    }
  }

  #sleep(ms: number): Promise<void> {
    if (ms === 0 || this.#signaled || this.#stopped) return turnOfEventLoop()
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms)
      const loop = this
      function done() {
        clearTimeout(timer)
        loop.#wake = null
        resolve()
      }
      this.#wake = done
    })
  }
}

/** On SQLite a run may hold the event loop. The first turn takes in the requests that came meanwhile, the second commits what they write. */
async function turnOfEventLoop(): Promise<void> {
  await nextTurn()
  await nextTurn()
}

/** Loops that start and stop together. */
export interface LoopGroup {
  loops: LoopWork[]
  /** Ends long runs, which are not waited for: another worker takes up their work. */
  abort?(): void
  /** Called once all loops have ended. */
  end?(): Promise<void> | void
}

export interface Worker {
  /** Finishes the work under way and stops. */
  stop(): Promise<void>
}

export function startLoops(platform: Platform, groups: readonly LoopGroup[]): Worker {
  const running = groups.flatMap(({ loops }) => loops).map((work) => new Loop(platform, work))
  return {
    async stop() {
      for (const group of groups) group.abort?.()
      await Promise.all(running.map((loop) => loop.stop()))
      await Promise.all(groups.map((group) => group.end?.()))
    },
  }
}
