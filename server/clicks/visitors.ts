import { hash, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { isRepeat, subscriberOf } from './visitor.rule.ts'

const KEY_LIFETIME_MS = 86_400_000
/**
 * Some 33 megabytes at most, where each link has one visitor, and less than half of that where they have many. A visitor who is
 * pushed out is counted anew, which takes as many other visitors.
 */
const ROOM = 50_000

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

interface CountedVisit {
  linkId: string
  visitor: string
}

/** Which visitors were counted on which link of late, in the memory of this process. */
export class CountedVisitors {
  /** When each was counted last. */
  readonly #counted = new LRUCache<string, number>({ maxSize: ROOM, sizeCalculation: () => 1 })

  /** Whether a visit only repeats a counted one. One that does not is taken as counted from now on. */
  repeats(linkId: string, visitor: string, at: number): boolean {
    const repeated = isRepeat(this.#counted.get(linkId + visitor), at)
    if (!repeated) this.#counted.set(linkId + visitor, at)
    return repeated
  }

  /** Those were not counted after all. */
  forget(visits: readonly CountedVisit[]): void {
    for (const { linkId, visitor } of visits) this.#counted.delete(linkId + visitor)
  }
}

/** Of a length with which key and address are one block for the hash: a second one takes as long again. */
function newKey(): string {
  return randomBytes(24).toString('base64url')
}
