import { hash, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { isRepeat, subscriberOf } from './visitor.rule.ts'

const KEY_LIFETIME_MS = 86_400_000
/** Some twelve megabytes at most. A visitor who is pushed out is counted anew, which takes as many other visitors. */
const MAX_COUNTED = 50_000

/**
 * Tells the addresses of visitors apart and keeps none: in the memory of this process an address is only ever a keyed hash,
 * under a key that no other process has and that lasts a day. One hash a click serves all who ask.
 */
export class AddressHashes {
  #key = { text: newKey(), madeAt: 0 }

  /** The secret in front does for a keyed hash here, at a twentieth of an HMAC's time: nobody is shown the whole of one. */
  of(address: string, at: number): string {
    if (at - this.#key.madeAt > KEY_LIFETIME_MS) this.#key = { text: newKey(), madeAt: at }
    return hash('sha256', this.#key.text + subscriberOf(address), 'base64url').slice(0, 12)
  }
}

/** Which visitors were counted on which link of late, in the memory of this process. */
export class CountedVisitors {
  /** When each was counted last. Takes its memory at the first visit: a process that only works jobs sees none. */
  #counted: LRUCache<string, number> | undefined

  /** Whether a visit only repeats a counted one. One that does not is taken as counted from now on. */
  repeats(visitor: string, at: number): boolean {
    this.#counted ??= new LRUCache({ max: MAX_COUNTED })
    const repeated = isRepeat(this.#counted.get(visitor), at)
    if (!repeated) this.#counted.set(visitor, at)
    return repeated
  }

  /** Those were not counted after all. */
  forget(visitors: readonly string[]): void {
    for (const visitor of visitors) this.#counted?.delete(visitor)
  }
}

/** Of a length with which key and address are one block for the hash: a second one takes as long again. */
function newKey(): string {
  return randomBytes(24).toString('base64url')
}
