import { LRUCache } from 'lru-cache'
import { inTime } from './in-time.ts'

const MAX_ENTRIES = 50_000
/** Other processes' changes show within this time; this process drops what it changes at once. */
const LIFETIME_MS = 1500

/** Named read caches for the hot paths, bounded in number and age. What is not there is cached as `null`. */
export class Caches {
  readonly #caches = new Map<string, LRUCache<string, { value: unknown }>>()
  /** Counts the drops, so that a value which was being loaded meanwhile is not kept. */
  #drops = 0

  /**
   * The cached value, or what `load` finds, kept for a moment. Refuses with `unavailable` when the load takes too long:
   * whoever asks a cache needs the answer now.
   */
  async get<V>(name: string, key: string, load: () => Promise<V>): Promise<V> {
    const cache = this.#named(name)
    const kept = cache.get(key)
    if (kept) return kept.value as V
    const drops = this.#drops
    const value = await inTime(load())
    if (drops === this.#drops) cache.set(key, { value })
    return value
  }

  drop(name: string, key: string): void {
    this.#drops += 1
    this.#named(name).delete(key)
  }

  clear(name: string): void {
    this.#drops += 1
    this.#named(name).clear()
  }

  #named(name: string): LRUCache<string, { value: unknown }> {
    const cache = this.#caches.get(name) ?? new LRUCache({ max: MAX_ENTRIES, ttl: LIFETIME_MS })
    this.#caches.set(name, cache)
    return cache
  }
}
