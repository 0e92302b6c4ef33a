import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'
import { admitStream, type StreamLimits } from './live-places.rule.ts'

/** The live streams that a process holds open: so many and no more, of all users and of each. */
export class LiveStreams {
  readonly #limits: StreamLimits
  readonly #open = new Map<string, number>()
  #count = 0
  /** Of them, those of accounts without activity. */
  #inactive = 0
  #waiting: (() => void)[] = []

  constructor(limits: StreamLimits) {
    this.#limits = limits
  }

  get count(): number {
    return this.#count
  }

  /**
   * Takes a place until the answered function is called. Refuses with `rate_limited` the user who has too many, and with
   * `unavailable` when there is no place for the account in this process, since another process may have one.
   */
  enter(userId: string, isActive: boolean): () => void {
    const own = this.#open.get(userId) ?? 0
    const facts = { isActive, own, inactive: this.#inactive, open: this.#count }
    const decision = admitStream(facts, this.#limits)
    if (decision === 'own_limit') {
      throw new Refusal('rate_limited', `At most ${this.#limits.perUser} live streams at a time.`, {
        retryAfter: 60,
      })
    }
    if (decision === 'full') {
      throw new Refusal('unavailable', 'No more live streams can be opened right now. Try again shortly.', {
        retryAfter: 10,
      })
    }
    this.#open.set(userId, own + 1)
    this.#count += 1
    if (!isActive) this.#inactive += 1
    let left = false
    return () => {
      if (left) return
      left = true
      if (!isActive) this.#inactive -= 1
      this.#leave(userId)
    }
  }

  /** Resolves when no stream is open. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #leave(userId: string): void {
    const own = this.#open.get(userId) ?? 0
    if (own > 1) this.#open.set(userId, own - 1)
    else this.#open.delete(userId)
    this.#count -= 1
    if (this.#count === 0) for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

const ofPlatform = new WeakMap<Platform, LiveStreams>()

/** The streams of this process. */
export function liveStreams(platform: Platform): LiveStreams {
  const { LIVE_STREAMS, LIVE_STREAMS_PER_USER } = platform.config
  const streams =
    ofPlatform.get(platform) ?? new LiveStreams({ all: LIVE_STREAMS, perUser: LIVE_STREAMS_PER_USER })
  ofPlatform.set(platform, streams)
  return streams
}
