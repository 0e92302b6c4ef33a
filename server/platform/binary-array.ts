export type ArrayType = 'uuid' | 'text' | 'int' | 'bigint'

/** What PostgreSQL calls these types on the wire; the same on every server. */
const OIDS: Record<ArrayType, number> = { uuid: 2950, text: 25, int: 23, bigint: 20 }
/** Bytes of a value behind its size; a text has as many as it needs. */
const SIZES: Record<Exclude<ArrayType, 'text'>, number> = { uuid: 16, int: 4, bigint: 8 }
const HEAD = 20
const DIMENSIONS = 1
const FIRST_INDEX = 1
const NULL_SIZE = -1

/**
 * An array as PostgreSQL keeps it, for the hottest inserts: the server reads it in three quarters of the time that it takes for one
 * written out, whose every value it would have to look through for quotes.
 */
export function binaryArray(type: ArrayType, values: readonly unknown[]): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD + roomOf(type, values))
  putInt(bytes, 0, values.length === 0 ? 0 : DIMENSIONS)
  putInt(bytes, 4, values.includes(null) ? 1 : 0)
  putInt(bytes, 8, OIDS[type])
  putInt(bytes, 12, values.length)
  putInt(bytes, 16, FIRST_INDEX)
  const write = WRITERS[type]
  let end = HEAD
  for (const value of values) {
    const size = value === null ? NULL_SIZE : write(value, bytes, end + 4)
    putInt(bytes, end, size)
    end += 4 + Math.max(0, size)
  }
  // An empty array has no dimensions, and ends before it could say how long they are.
  return bytes.subarray(0, values.length === 0 ? 12 : end)
}

/** As much as they may take. */
function roomOf(type: ArrayType, values: readonly unknown[]): number {
  if (type !== 'text') return values.length * (4 + SIZES[type])
  const longest = 3
  return values.reduce<number>(
    (sum, text) => sum + 4 + longest * (text === null ? 0 : String(text).length),
    0,
  )
}

/** Write one value each and answer its size. */
const WRITERS: Record<ArrayType, (value: unknown, bytes: Buffer, at: number) => number> = {
  text: (value, bytes, at) => bytes.write(String(value), at),
  uuid: (value, bytes, at) => {
    writeUuid(String(value), bytes, at)
    return SIZES.uuid
  },
  int: (value, bytes, at) => {
    const number = Number(value)
    if (number !== (number | 0)) throw new Error('not a whole number of 32 bits')
    putInt(bytes, at, number)
    return SIZES.int
  },
  bigint: (value, bytes, at) => {
    writeBigint(Number(value), bytes, at)
    return SIZES.bigint
  },
}

/** The lowest 32 bits of a number, which Node's own `writeInt32BE` looks through first: that takes longer than to write them. */
function putInt(bytes: Buffer, at: number, number: number): void {
  bytes[at] = number >>> 24
  bytes[at + 1] = number >>> 16
  bytes[at + 2] = number >>> 8
  bytes[at + 3] = number
}

const UUID_LENGTH = 36
/** Where the digits of each byte stand in a written one. */
const DIGITS_AT = Uint8Array.of(0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34)
const DASH = '-'.charCodeAt(0)
const NO_DIGIT = 255
const DIGITS = new Uint8Array(128).fill(NO_DIGIT)
for (const digit of '0123456789abcdefABCDEF') DIGITS[digit.charCodeAt(0)] = Number.parseInt(digit, 16)

/** Nobody looks at it behind us: what is none would become another one in silence. */
function writeUuid(text: string, bytes: Buffer, at: number): void {
  let wrong = text.length === UUID_LENGTH && hasDashes(text) ? 0 : NO_DIGIT
  for (let next = 0; next < SIZES.uuid; next += 1) {
    const place = DIGITS_AT[next] as number
    const upper = digitAt(text, place)
    const lower = digitAt(text, place + 1)
    wrong |= upper | lower
    bytes[at + next] = (upper << 4) | lower
  }
  if (wrong >= 16) throw new Error('not a UUID')
}

function hasDashes(text: string): boolean {
  return (
    text.charCodeAt(8) === DASH &&
    text.charCodeAt(13) === DASH &&
    text.charCodeAt(18) === DASH &&
    text.charCodeAt(23) === DASH
  )
}

function digitAt(text: string, place: number): number {
  return DIGITS[text.charCodeAt(place)] ?? NO_DIGIT
}

const LOW = 2 ** 32

/** In halves: Node writes a whole one from a BigInt only, which takes five times as long. */
function writeBigint(value: number, bytes: Buffer, at: number): void {
  if (!Number.isSafeInteger(value)) throw new Error('not an exact whole number')
  putInt(bytes, at, Math.floor(value / LOW))
  putInt(bytes, at + 4, value | 0)
}
