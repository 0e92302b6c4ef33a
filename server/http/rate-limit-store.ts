import type { FastifyRateLimitStore, FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../platform/clock.ts'

/** Counters that one limit keeps; past it the one that was used longest ago is forgotten. About 10 MB when full. */
export const MAX_COUNTERS = 50_000

interface Counter {
  current: number
  /** Epoch ms. */
  since: number
}

/** Counts by key from the first call of a window to its end, by our clock. Each limit has a store of its own. */
export function rateLimitStore(clock: Clock): FastifyRateLimitStoreCtor {
  return class RateLimitStore implements FastifyRateLimitStore {
    /** Takes its memory at the first call: a start waits for nothing that it may never need. */
    #counters: LRUCache<string, Counter> | undefined

    incr(
      key: string,
      answer: (error: Error | null, result?: { current: number; ttl: number }) => void,
      windowMs: number,
    ): void {
      const now = clock.now()
      this.#counters ??= new LRUCache({ max: MAX_COUNTERS })
      const kept = this.#counters.get(key)
      const counter = kept && now - kept.since < windowMs ? kept : { current: 0, since: now }
      counter.current += 1
      this.#counters.set(key, counter)
      answer(null, { current: counter.current, ttl: counter.since + windowMs - now })
    }

    child(): FastifyRateLimitStore {
      return new RateLimitStore()
    }
  }
}
