import type { Platform } from '../platform/platform.ts'

export interface LoopWork {
  name: string
  /** The signals that there is work at once. */
  signals: readonly string[]
  /** Does what is due; answers how much that was. Runs again at once while it is more than nothing. */
  run(): Promise<number>
  /** When work falls due next (epoch ms), `null` when nothing is known to. */
  nextDueAt(): Promise<number | null>
  /** A quarter of a second unless given: another process may bring work without our hearing a signal. */
  longestSleepMs?: number
}

const LONGEST_SLEEP_MS = 250
const AFTER_AN_ERROR_MS = 1000
/** What is due and cannot be had is in another worker's hands: asking for it all the time would only be in its way. */
const HELD_BY_ANOTHER_MS = 250

/** Runs one kind of work over and over: at once when signalled, else when it falls due, and never twice at a time. */
export class Loop {
  readonly #platform: Platform
  readonly #work: LoopWork
  readonly #unsubscribe: (() => void)[]
  #stopped = false
  #signalled = false
  #wake: (() => void) | null = null
  readonly #finished: Promise<void>

  constructor(platform: Platform, work: LoopWork) {
    this.#platform = platform
    this.#work = work
    this.#unsubscribe = work.signals.map((signal) => platform.signals.on(signal, () => this.#nudge()))
    this.#finished = this.#runForever()
  }

  /** Waits for the run that is under way, then ends. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#nudge()
    await this.#finished
  }

  #nudge(): void {
    this.#signalled = true
    this.#wake?.()
  }

  async #runForever(): Promise<void> {
    while (!this.#stopped) {
      this.#signalled = false
      await this.#sleep(await this.#runOnce())
    }
  }

  /** Answers how long to sleep, ms. */
  async #runOnce(): Promise<number> {
    try {
      if ((await this.#work.run()) > 0) return 0
      const due = await this.#work.nextDueAt()
      const longest = this.#work.longestSleepMs ?? LONGEST_SLEEP_MS
      const wait = due === null ? longest : due - this.#platform.clock.now()
      return wait > 0 ? Math.min(wait, longest) : HELD_BY_ANOTHER_MS
    } catch (error) {
      this.#platform.log.error({ err: error, loop: this.#work.name }, 'the worker tries again shortly')
      return AFTER_AN_ERROR_MS
    }
  }

  #sleep(ms: number): Promise<void> {
    if (ms === 0 || this.#signalled || this.#stopped) return Promise.resolve()
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
