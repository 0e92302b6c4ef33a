import { randomFillSync } from 'node:crypto'

/** The only source of ids: UUIDv7, in the order in which they were made. */
export interface Ids {
  next(): string
}

/** Four bytes to start a millisecond with, six for the end of each id. */
const RANDOM_BYTES = 10
/** Randomness is fetched for so many ids at once: a request makes two, and fetching it is half of their work. */
const pool = new Uint8Array(256 * RANDOM_BYTES)
let used = pool.length

/** Where the next unused randomness begins. */
function nextRandom(): number {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += RANDOM_BYTES
  return used - RANDOM_BYTES
}

let msecs = 0
let seq = 0
/** The id that is being written. The milliseconds in front stay for all of one. */
const text = Buffer.alloc(36, '-')

function enter(moment: number): void {
  msecs = moment
  const hex = moment.toString(16).padStart(12, '0')
  text.write(`${hex.slice(0, 8)}-${hex.slice(8, 12)}`, 'latin1')
}

/**
 * As the `uuid` library does it by itself: a random start in each millisecond, counted on from there. Written out here,
 * which takes less time, since each event and each request makes one; from bytes, since a text that is put together of small ones
 * is put together once more where it is first read.
 */
function nextInOrder(): string {
  const at = nextRandom()
  const now = Date.now()
  if (now > msecs) {
    enter(now)
    seq = ((byteAt(at) & 0x7f) << 24) | (byteAt(at + 1) << 16) | (byteAt(at + 2) << 8) | byteAt(at + 3)
  } else {
    seq = (seq + 1) | 0
    if (seq === 0) enter(msecs + 1)
  }
  write(14, 0x70 | (seq >>> 28))
  write(16, seq >>> 20)
  write(19, 0x80 | ((seq >>> 14) & 0x3f))
  write(21, seq >>> 6)
  write(24, (seq << 2) | (byteAt(at + 4) & 3))
  for (let next = 0; next < 5; next += 1) write(26 + 2 * next, byteAt(at + 5 + next))
  return text.toString('latin1')
}

function byteAt(place: number): number {
  return pool[place] ?? 0
}

const DIGITS = Buffer.from('0123456789abcdef')

/** The lowest byte of a number, as two digits. */
function write(place: number, number: number): void {
  text[place] = DIGITS[(number >>> 4) & 15] as number
  text[place + 1] = DIGITS[number & 15] as number
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

/** When a UUIDv7 was made, epoch ms. */
export function momentOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
