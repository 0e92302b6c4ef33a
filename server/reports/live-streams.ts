import { Refusal } from '../platform/api/refusal.ts'
import type { Platform } from '../platform/platform.ts'

/**
 * The live streams that a process holds open. Active accounts, which have an accepted sale, take any free place. Accounts without activity,
 * which cost nothing to register, share half of the places, so that they can never take the other half from those who follow their sales.
 */
export class LiveStreams {
  readonly #limits: { all: number; perUser: number }
  readonly #open = new Set<{ userId: string; isActive: boolean }>()
  #waiting: (() => void)[] = []

  constructor(limits: { all: number; perUser: number }) {
    this.#limits = limits
  }

  get count(): number {
    return this.#open.size
  }

  /**
   * Takes a place until the answered function is called. Refuses with `rate_limited` the user who has too many, and with
   * `unavailable` when there is no place for the account in this process, since another process may have one.
   */
  enter(userId: string, isActive: boolean): () => void {
    const { all, perUser } = this.#limits
    const open = [...this.#open]
    if (open.filter((stream) => stream.userId === userId).length >= perUser) {
      throw new Refusal('rate_limited', `At most ${perUser} live streams at a time.`, { retryAfter: 60 })
    }
    const inactive = open.filter((stream) => !stream.isActive).length
    if (open.length >= all || (!isActive && inactive >= Math.ceil(all / 2))) {
      throw new Refusal('unavailable', 'No more live streams can be opened right now. Try again shortly.', {
        retryAfter: 10,
      })
    }
    const stream = { userId, isActive }
    this.#open.add(stream)
    return () => {
      this.#open.delete(stream)
      if (this.#open.size === 0) for (const resolve of this.#waiting.splice(0)) resolve()
    }
  }

  /** Resolves when no stream is open. */
  async idle(): Promise<void> {
    if (this.#open.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
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
