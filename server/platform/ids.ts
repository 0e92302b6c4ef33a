import { randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'

/** The only source of ids: UUIDv7, in the order in which they were made. */
export interface Ids {
  next(): string
}

const RANDOM_BYTES = 16
/** Randomness is fetched for so many ids at once: a request makes two, and fetching it is half of their work. */
const pool = new Uint8Array(256 * RANDOM_BYTES)
let used = pool.length

function nextRandom(): Uint8Array {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += RANDOM_BYTES
  return pool.subarray(used - RANDOM_BYTES, used)
}

let msecs = 0
let seq = 0

/** As the library does it by itself: a random start in each millisecond, counted on from there. */
function nextInOrder(): string {
  const random = nextRandom()
  const now = Date.now()
  if (now > msecs) {
    msecs = now
    const [a = 0, b = 0, c = 0, d = 0] = random.subarray(6, 10)
    seq = ((a & 0x7f) << 24) | (b << 16) | (c << 8) | d
  } else {
    seq = (seq + 1) | 0
    if (seq === 0) msecs += 1
  }
  return v7({ random, msecs, seq })
}

export const systemIds: Ids = { next: nextInOrder }

/** The owner of the platform's own accounts in the journal. */
export const NIL_ID = '00000000-0000-0000-0000-000000000000'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a text from outside can be one of our ids at all: PostgreSQL refuses to compare anything else. */
export function isId(text: string): boolean {
  return UUID.test(text)
}

/** The last that a UUIDv7 has room for; far beyond any time on the wire. */
const LAST_MOMENT = 2 ** 48 - 1

/** The smallest UUIDv7 that can be made at `moment` (epoch ms): a bound for scans along the key. */
export function firstIdAt(moment: number): string {
  const hex = Math.min(Math.max(0, moment), LAST_MOMENT).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7000-8000-000000000000`
}
