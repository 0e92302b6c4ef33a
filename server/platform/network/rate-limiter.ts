import { createRequire } from 'node:module'
import { LRUCache } from 'lru-cache'
import type { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

/** From its own module: the package's root loads every store and slows the start down. */
const Memory: typeof RateLimiterMemory = createRequire(import.meta.url)(
  'rate-limiter-flexible/lib/RateLimiterMemory.js',
)

/** The keys that one limiter counts; beyond them it forgets the least recently used one. */
export const MAX_KEYS = 50_000

export interface RateLimit {
  /** Points in a window; 0 = no limit. */
  points: number
  /** The window starts at a key's first point. */
  seconds: number
}

/** The state of a key. Times in whole seconds, at least 1. */
export interface Standing {
  limit: number
  remaining: number
  resetsIn: number
  exceeded: boolean
}

/** Counts points by key, in the memory of this process: several web processes count separately. */
export class RateLimiter {
  readonly #limit: RateLimit
  readonly #points: RateLimiterMemory
  readonly #maxKeys: number
  /** Created at the first use, because it allocates memory for all its keys. */
  #keys: LRUCache<string, true> | undefined

  constructor(limit: RateLimit, { maxKeys = MAX_KEYS } = {}) {
    this.#limit = limit
    this.#maxKeys = maxKeys
    this.#points = new Memory({ points: limit.points, duration: limit.seconds })
  }

  /** Takes points from a key; `exceeded` if it had fewer. `null` without a limit. */
  async consume(key: string, points = 1): Promise<Standing | null> {
    if (this.#limit.points === 0) return null
    this.#keys ??= new LRUCache<string, true>({
      max: this.#maxKeys,
      dispose: (_used, oldest, reason) => {
        if (reason === 'evict') void this.#points.delete(oldest)
      },
    })
    this.#keys.set(key, true)
    try {
      return this.#standing(await this.#points.consume(key, points), false)
    } catch (error) {
      // Without points left the package throws the key's state, which is not an Error.
      if (error instanceof Error) throw error
      return this.#standing(error as RateLimiterRes, true)
    }
  }

  /** The state of a key without taking points; `exceeded` if none are left. `null` before its first point. */
  async peek(key: string): Promise<Standing | null> {
    const found = this.#limit.points === 0 ? null : await this.#points.get(key)
    return found && this.#standing(found, found.remainingPoints === 0)
  }

  /** Returns points for a call that must not count. */
  async reward(key: string, points = 1): Promise<void> {
    if (this.#limit.points > 0) await this.#points.reward(key, points)
  }

  async reset(key: string): Promise<void> {
    await this.#points.delete(key)
  }

  #standing({ remainingPoints, msBeforeNext }: RateLimiterRes, exceeded: boolean): Standing {
    return {
      limit: this.#limit.points,
      remaining: remainingPoints,
      resetsIn: Math.max(1, Math.ceil(msBeforeNext / 1000)),
      exceeded,
    }
  }
}
