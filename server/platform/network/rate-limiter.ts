import { hash } from 'node:crypto'
import { createRequire } from 'node:module'
import { CompiledQuery } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import { type Database, withStatementTimeout } from '../database/database.ts'

/** Each store from its own module: the package's root loads all of them and slows the start down. */
const load = createRequire(import.meta.url)
const Memory: typeof RateLimiterMemory = load('rate-limiter-flexible/lib/RateLimiterMemory.js')

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

interface RateLimiterOptions {
  maxKeys?: number
  /** Counts together with the limiters of this name in all processes, where the database is PostgreSQL. */
  shared?: { name: string; database: Database } | undefined
}

/**
 * Counts points by key: in the memory of this process, so that several web processes count separately, or together with them in
 * PostgreSQL, which costs a write for each call.
 */
export class RateLimiter {
  readonly #limit: RateLimit
  readonly #points: RateLimiterMemory | RateLimiterPostgres
  readonly #isShared: boolean
  readonly #maxKeys: number
  /** Created at the first use, because it allocates memory for all its keys. */
  #keys: LRUCache<string, true> | undefined

  constructor(limit: RateLimit, { maxKeys = MAX_KEYS, shared }: RateLimiterOptions = {}) {
    this.#limit = limit
    this.#maxKeys = maxKeys
    this.#isShared = shared?.database.dialect === 'postgresql'
    this.#points =
      shared && this.#isShared
        ? sharedPoints(limit, shared)
        : new Memory({ points: limit.points, duration: limit.seconds })
  }

  /** Takes points from a key; `exceeded` if it had fewer. `null` without a limit. */
  async consume(key: string, points = 1): Promise<Standing | null> {
    if (this.#limit.points === 0) return null
    if (!this.#isShared) this.#remember(key)
    try {
      return this.#standing(await this.#points.consume(this.#keyOf(key), points), false)
    } catch (error) {
      // Without points left the package throws the key's state, which is not an Error.
      if (error instanceof Error) throw error
      return this.#standing(error as RateLimiterRes, true)
    }
  }

  /** The state of a key without taking points; `exceeded` if none are left. `null` before its first point. */
  async peek(key: string): Promise<Standing | null> {
    const found = this.#limit.points === 0 ? null : await this.#points.get(this.#keyOf(key))
    return found && this.#standing(found, found.remainingPoints === 0)
  }

  /** Returns points for a call that must not count. */
  async reward(key: string, points = 1): Promise<void> {
    if (this.#limit.points > 0) await this.#points.reward(this.#keyOf(key), points)
  }

  async reset(key: string): Promise<void> {
    await this.#points.delete(this.#keyOf(key))
  }

  /** Keys hold addresses and e-mails, which a table must not show. */
  #keyOf(key: string): string {
    return this.#isShared ? hash('sha256', key, 'base64url') : key
  }

  #remember(key: string): void {
    this.#keys ??= new LRUCache<string, true>({
      max: this.#maxKeys,
      dispose: (_used, oldest, reason) => {
        if (reason === 'evict') void this.#points.delete(oldest)
      },
    })
    this.#keys.set(key, true)
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

function sharedPoints(
  { points, seconds }: RateLimit,
  { name, database }: NonNullable<RateLimiterOptions['shared']>,
): RateLimiterPostgres {
  const Postgres: typeof RateLimiterPostgres = load('rate-limiter-flexible/lib/RateLimiterPostgres.js')
  return new Postgres({
    points,
    duration: seconds,
    keyPrefix: name,
    tableName: 'rate_limits',
    tableCreated: true,
    storeType: 'pool',
    storeClient: {
      async query({ text, values }: { text: string; values: unknown[] }) {
        const rows = await withStatementTimeout(() => database.executeBatch(CompiledQuery.raw(text, values)))
        return { rows, rowCount: rows.length }
      },
    },
  })
}
