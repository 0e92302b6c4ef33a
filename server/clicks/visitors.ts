import { hash, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import { addressKey } from '../platform/network/client-address.ts'

/** Further visits of one visitor to one link within this time count as repeats. */
export const REPEAT_WITHIN_MS = HOUR_MS
/** A key by which addresses are hashed lasts this long. */
export const KEY_LIFETIME_MS = DAY_MS
/** At most about 33 megabytes. A visitor who is evicted counts again, which takes as many other visitors. */
const MAX_VISITORS = 50_000

export interface VisitorKey {
  text: string
  /** Epoch ms. */
  madeAt: number
}

/**
 * Keyed hashes of visitors' addresses. The key lasts a day. Without `readShared` it exists in the memory of this process only; with it the
 * processes share one; where it cannot be read the process has one of its own.
 */
export class AddressHashes {
  readonly #readShared: (() => Promise<VisitorKey>) | undefined
  #key: VisitorKey = { text: newKey(), madeAt: 0 }
  #reading: Promise<void> | undefined
  /** Whether the shared key was read, or could not be, once. */
  isReady: boolean

  constructor(readShared?: () => Promise<VisitorKey>) {
    this.#readShared = readShared
    this.isReady = readShared === undefined
    if (readShared) void this.ready()
  }

  /** Resolves when the shared key is read, or cannot be. */
  ready(): Promise<void> {
    this.#reading ??= this.#readShared?.()
      .then((key) => {
        this.#key = key
      })
      .catch(() => {})
      .finally(() => {
        this.#reading = undefined
        this.isReady = true
      })
    return this.#reading ?? Promise.resolve()
  }

  /** A hash with the key in front is as good as an HMAC here, because it is truncated, and much faster. */
  of(address: string, at: number): string {
    if (at - this.#key.madeAt > KEY_LIFETIME_MS) {
      if (this.#readShared) void this.ready()
      else this.#key = { text: newKey(), madeAt: at }
    }
    return hash('sha256', this.#key.text + addressKey(address), 'base64url').slice(0, 12)
  }
}

export function newKey(): string {
  return randomBytes(24).toString('base64url')
}

/** The visitors counted on each link within the last hour, in the memory of this process. */
export class CountedVisitors {
  /** When each was counted last. Created at first use: it reserves memory for all. */
  #counted: LRUCache<string, number> | undefined

  /**
   * Whether a visit at `at` (epoch ms) repeats a counted one; counts it otherwise. The hour starts at the counted visit, so a frequent visitor
   * counts once an hour. A clock that was set back by more than an hour counts again.
   */
  repeats(linkId: string, visitor: string, at: number): boolean {
    this.#counted ??= new LRUCache({ max: MAX_VISITORS })
    const countedAt = this.#counted.get(linkId + visitor)
    const repeated = countedAt !== undefined && Math.abs(at - countedAt) < REPEAT_WITHIN_MS
    if (!repeated) this.#counted.set(linkId + visitor, at)
    return repeated
  }

  /** Removes visits whose clicks were not stored. */
  remove(visits: readonly { link_id: string; visitor: string }[]): void {
    for (const { link_id, visitor } of visits) this.#counted?.delete(link_id + visitor)
  }
}
