import { LRUCache } from 'lru-cache'
import { withStatementTimeout } from '../database/database.ts'
import { withTimeout } from '../with-timeout.ts'

const MAX_ENTRIES = 50_000
/** Other processes' changes are visible after this time at the latest. */
const LIFETIME_MS = 1500

/** `key` is `null` for the whole cache, `name` for all caches. */
type InvalidationListener = (name: string | null, key: string | null) => void

interface Entry {
  value: unknown
  /** In terms of performance.now(). */
  expiresAt: number
}

/**
 * Named read caches for the hot paths, limited in size and lifetime. Cache `null` for what does not exist. A process invalidates what it
 * changes; on PostgreSQL the other processes are notified.
 */
export class Caches {
  readonly #caches = new Map<string, LRUCache<string, Entry>>()
  /** Loads under way, shared by concurrent callers. An invalidation empties it, so that later callers get a new load. */
  readonly #loads = new Map<string, Promise<unknown>>()
  readonly #listeners: InvalidationListener[] = []
  readonly #lifetimeMs: number
  readonly #maxEntries: number

  /** A cache reserves memory for `maxEntries` at its first use. */
  constructor({ lifetimeMs = LIFETIME_MS, maxEntries = MAX_ENTRIES } = {}) {
    this.#lifetimeMs = lifetimeMs
    this.#maxEntries = maxEntries
  }

  /**
   * The cached value, or the result of `load`, which is then cached; a cache of large values passes a lower `maxEntries`. Refuses
   * with `unavailable` when `load` takes too long.
   */
  async get<V>(name: string, key: string, load: () => Promise<V>, maxEntries = this.#maxEntries): Promise<V> {
    const cache = this.#named(name, maxEntries)
    const entry = currentEntry(cache, key)
    if (entry) return entry.value as V
    const loadKey = `${name} ${key}`
    const loading = this.#loads.get(loadKey) ?? this.#load(cache, loadKey, key, load)
    return loading as Promise<V>
  }

  /** The cached value; `undefined` if there is none. */
  peek<V>(name: string, key: string): V | undefined {
    const cache = this.#caches.get(name)
    return cache && (currentEntry(cache, key)?.value as V | undefined)
  }

  /** The cached value, even if its lifetime is over; `undefined` if there is none. */
  peekOutdated<V>(name: string, key: string): V | undefined {
    return this.#caches.get(name)?.get(key)?.value as V | undefined
  }

  #load(
    cache: LRUCache<string, Entry>,
    loadKey: string,
    key: string,
    load: () => Promise<unknown>,
  ): Promise<unknown> {
    // The value may be as old as the start of the load.
    const expiresAt = performance.now() + this.#lifetimeMs
    const loading: Promise<unknown> = withTimeout(withStatementTimeout(load))
      .then((value) => {
        if (this.#loads.get(loadKey) === loading) cache.set(key, { value, expiresAt })
        return value
      })
      .finally(() => {
        if (this.#loads.get(loadKey) === loading) this.#loads.delete(loadKey)
      })
    this.#loads.set(loadKey, loading)
    return loading
  }

  /** Drops one value, here and in other processes; without a key it empties the cache, without a name every cache. */
  drop(name: string | null = null, key: string | null = null): void {
    this.invalidate(name, key)
    for (const listener of this.#listeners) listener(name, key)
  }

  /** Calls `listener` for each `drop` of this process. */
  onInvalidation(listener: InvalidationListener): void {
    this.#listeners.push(listener)
  }

  /** Drops values in this process only: without a key the whole cache, without a name every cache. */
  invalidate(name: string | null, key: string | null): void {
    this.#loads.clear()
    if (name === null) for (const cache of this.#caches.values()) cache.clear()
    else if (key === null) this.#caches.get(name)?.clear()
    else this.#caches.get(name)?.delete(key)
  }

  #named(name: string, maxEntries: number): LRUCache<string, Entry> {
    const cache = this.#caches.get(name) ?? new LRUCache<string, Entry>({ max: maxEntries })
    this.#caches.set(name, cache)
    return cache
  }
}

/** lru-cache's own `ttl` sets a timer at nearly every access. */
function currentEntry(cache: LRUCache<string, Entry>, key: string): Entry | undefined {
  const entry = cache.get(key)
  return entry && entry.expiresAt > performance.now() ? entry : undefined
}
