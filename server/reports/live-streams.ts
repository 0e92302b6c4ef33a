import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'

interface StreamLimits {
  all: number
  perUser: number
}

/**
 * The live streams that a process holds open. Active accounts, which have an accepted sale, take any free place. Accounts without activity,
 * which cost nothing to register, share half of the places, so that they can never take the other half from those who follow their sales.
 */
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
   * Takes a place until the answered function is called, once. Refuses with `rate_limited` the user who has too many, and with
   * `unavailable` when there is no place for the account in this process, since another process may have one.
   */
  enter(userId: string, isActive: boolean): () => void {
    const { all, perUser } = this.#limits
    const own = this.#open.get(userId) ?? 0
    if (own >= perUser) {
      throw new Refusal('rate_limited', `At most ${perUser} live streams at a time.`, { retryAfter: 60 })
    }
    if (this.#count >= all || (!isActive && this.#inactive >= Math.ceil(all / 2))) {
      throw new Refusal('unavailable', 'No more live streams can be opened right now. Try again shortly.', {
        retryAfter: 10,
      })
    }
    this.#add(userId, isActive, 1)
    return () => this.#add(userId, isActive, -1)
  }

  #add(userId: string, isActive: boolean, streams: 1 | -1): void {
    const own = (this.#open.get(userId) ?? 0) + streams
    if (own > 0) this.#open.set(userId, own)
    else this.#open.delete(userId)
    if (!isActive) this.#inactive += streams
    this.#count += streams
    if (this.#count === 0) for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Resolves when no stream is open. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
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
