import { randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'
import { type Clock, systemClock } from './clock.ts'

/** The only source of ids: UUIDv7. */
export interface Ids {
  next(): string
}

/** Randomness is fetched for 256 ids together: fetching it for each id would take longer than the rest of a redirect. */
const randomness = new Uint8Array(256 * 16)
let used = randomness.length

function nextRandomness(): Uint8Array {
  if (used === randomness.length) {
    randomFillSync(randomness)
    used = 0
  }
  used += 16
  return randomness.subarray(used - 16, used)
}

/** Ids by this clock, in ascending order: within a millisecond, a counter with a random start follows the time. */
export function createIds(clock: Clock): Ids {
  let msecs = 0
  let seq = 0
  return {
    next() {
      const random = nextRandomness()
      const now = clock.now()
      if (now > msecs) {
        msecs = now
        seq = new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1
      } else seq += 1
      return v7({ random, msecs, seq })
    },
  }
}

/** The ids of this process. */
export const systemIds: Ids = createIds(systemClock)

/** The owner of the platform's own accounts in the journal. */
export const NIL_ID = '00000000-0000-0000-0000-000000000000'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a text from outside is a UUID; PostgreSQL fails on a comparison with anything else. */
export function isId(text: string): boolean {
  return UUID.test(text)
}

/** The latest time that fits into a UUIDv7. */
const MAX_TIME = 2 ** 48 - 1

/** Far more than lies between the moment of a row and its id, which are made one after the other, ms. */
export const ID_SLACK_MS = 3_600_000

/** The smallest UUIDv7 that can be made at `time` (epoch ms): a bound for scans along the key. */
export function firstIdAt(time: number): string {
  const hex = Math.min(Math.max(0, time), MAX_TIME).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7000-8000-000000000000`
}

/** When a UUIDv7 was made, epoch ms. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
