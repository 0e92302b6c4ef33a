import { createRequire } from 'node:module'
import { LRUCache } from 'lru-cache'
import type { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

/** Not from the package's root, which loads every store that it has: 50 ms of a start. */
const Memory: typeof RateLimiterMemory = createRequire(import.meta.url)(
  'rate-limiter-flexible/lib/RateLimiterMemory.js',
)

/** Keys that one limiter counts; past it the key that was used longest ago is forgotten. */
export const MAX_KEYS = 50_000

export interface RateLimit {
  /** Points in a window; 0 = no limit. */
  points: number
  /** The window starts at a key's first point. */
  seconds: number
}

/** Where a key stands. Times in whole seconds, at least 1. */
export interface Standing {
  limit: number
  remaining: number
  resetsIn: number
  exceeded: boolean
}

/**
 * Counts points by key. In this process' memory: with several web processes each counts for itself. All counting goes
 * through this class, so a store that processes share (the package has one for PostgreSQL) is chosen here.
 */
export class RateLimiter {
  readonly #limit: RateLimit
  readonly #points: RateLimiterMemory
  readonly #maxKeys: number
  /** Created at the first use: it takes memory for all its keys. */
  #keys: LRUCache<string, true> | undefined

  constructor(limit: RateLimit, { maxKeys = MAX_KEYS } = {}) {
    this.#limit = limit
    this.#maxKeys = maxKeys
    this.#points = new Memory({ points: limit.points, duration: limit.seconds })
  }

  /** Takes points from a key and says whether that was more than it has; `null` without a limit. */
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
      // The package throws where the key stands when it has no points left, and errors of a store as errors.
      if (error instanceof Error) throw error
      return this.#standing(error as RateLimiterRes, true)
    }
  }

  /** Where a key stands without taking points; `exceeded` means that it has none left. `null` before its first point. */
  async peek(key: string): Promise<Standing | null> {
    const found = this.#limit.points === 0 ? null : await this.#points.get(key)
    return found && this.#standing(found, found.remainingPoints === 0)
  }

  /** Gives back what was taken for something that is not to count. */
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
