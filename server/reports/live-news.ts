import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'

/** Waits for news of one user. News between two waits is not lost: the next wait then ends immediately. */
export class LiveNews {
  readonly #leave: () => void
  readonly #signal: AbortSignal
  readonly #onAbort = () => this.#wake?.()
  #heard = false
  #wake: (() => void) | null = null

  constructor(platform: Platform, userId: string, signal: AbortSignal) {
    this.#signal = signal
    this.#leave = platform.topics.on(userTopic(userId), () => {
      this.#heard = true
      this.#wake?.()
    })
    signal.addEventListener('abort', this.#onAbort)
  }

  /** To be called before looking: what is heard from then on is a reason to look again. */
  forget(): void {
    this.#heard = false
  }

  /** Resolves with true on news or when the stream is over, with false after `ms` without. */
  wait(ms: number): Promise<boolean> {
    if (this.#heard || this.#signal.aborted) return Promise.resolve(true)
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#wake = null
        resolve(this.#heard || this.#signal.aborted)
      }
      const timer = setTimeout(done, ms)
      this.#wake = done
    })
  }

  close(): void {
    this.#leave()
    this.#signal.removeEventListener('abort', this.#onAbort)
  }
}
