import { LRUCache } from 'lru-cache'
import { withStatementTimeout } from '../database/database.ts'
import { withTimeout } from '../with-timeout.ts'

const MAX_ENTRIES = 50_000
/**
 * Other processes' changes show within this time at the latest; this process drops what it changes at once, and on
 * PostgreSQL tells the others.
 */
const LIFETIME_MS = 1500

/** `key` is `null` when the whole cache of that name was dropped. */
export type DropListener = (name: string, key: string | null) => void

interface Kept {
  value: unknown
  /** By performance.now(). */
  until: number
}

/** Named read caches for the hot paths, bounded in number and age. What is not there is cached as `null`. */
export class Caches {
  readonly #caches = new Map<string, LRUCache<string, Kept>>()
  /** What is being loaded, for all who ask meanwhile; emptied at a drop, so that nobody then waits for what is out of date. */
  readonly #loads = new Map<string, Promise<unknown>>()
  readonly #listeners: DropListener[] = []
  readonly #lifetimeMs: number
  readonly #maxEntries: number

  /** A cache takes memory for `maxEntries` as soon as it is used. */
  constructor({ lifetimeMs = LIFETIME_MS, maxEntries = MAX_ENTRIES } = {}) {
    this.#lifetimeMs = lifetimeMs
    this.#maxEntries = maxEntries
  }

  /**
   * The cached value, or what `load` finds, kept for a moment; in a cache of large values `most` at a time. Refuses with
   * `unavailable` when the load takes too long: whoever asks a cache needs the answer now.
   */
  async get<V>(name: string, key: string, load: () => Promise<V>, most = this.#maxEntries): Promise<V> {
    const cache = this.#named(name, most)
    const kept = fresh(cache, key)
    if (kept) return kept.value as V
    const place = `${name} ${key}`
    const loading = this.#loads.get(place) ?? this.#load(cache, place, key, load)
    return loading as Promise<V>
  }

  /** What is kept already; `undefined` when it would have to be loaded. */
  peek<V>(name: string, key: string): V | undefined {
    const cache = this.#caches.get(name)
    return cache && (fresh(cache, key)?.value as V | undefined)
  }

  #load(
    cache: LRUCache<string, Kept>,
    place: string,
    key: string,
    load: () => Promise<unknown>,
  ): Promise<unknown> {
    // What a load finds may be as old as its start: a slow one counts towards the value's lifetime.
    const start = performance.now()
    const loading: Promise<unknown> = withTimeout(withStatementTimeout(load))
      .then((value) => {
        if (this.#loads.get(place) === loading) cache.set(key, { value, until: start + this.#lifetimeMs })
        return value
      })
      .finally(() => {
        if (this.#loads.get(place) === loading) this.#loads.delete(place)
      })
    this.#loads.set(place, loading)
    return loading
  }

  drop(name: string, key: string): void {
    this.forget(name, key)
    for (const listener of this.#listeners) listener(name, key)
  }

  clear(name: string): void {
    this.forget(name, null)
    for (const listener of this.#listeners) listener(name, null)
  }

  /** Has `listener` called at each drop of this process' own. */
  onDrop(listener: DropListener): void {
    this.#listeners.push(listener)
  }

  /** Drops what another process has changed: without a key all of a cache, without a name everything. */
  forget(name: string | null, key: string | null): void {
    this.#loads.clear()
    if (name === null) for (const cache of this.#caches.values()) cache.clear()
    else if (key === null) this.#caches.get(name)?.clear()
    else this.#caches.get(name)?.delete(key)
  }

  #named(name: string, most: number): LRUCache<string, Kept> {
    const cache = this.#caches.get(name) ?? new LRUCache<string, Kept>({ max: most })
    this.#caches.set(name, cache)
    return cache
  }
}

/** The library could tell the age of its entries itself, but sets a timer for that at nearly every look. */
function fresh(cache: LRUCache<string, Kept>, key: string): Kept | undefined {
  const kept = cache.get(key)
  return kept && kept.until > performance.now() ? kept : undefined
}
