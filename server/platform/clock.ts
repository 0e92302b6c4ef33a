/** The only source of time: passed in, so that a test can hold it still. Epoch milliseconds. */
export interface Clock {
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const TWO_DIGITS = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))
let lastDay = Number.NaN
let upToDay = ''

/** RFC 3339 in UTC with milliseconds, as the wire wants it. The rows of a page share few days, and `Date` is slow to write. */
export function toWireTime(moment: number): string {
  const day = Math.floor(moment / DAY_MS)
  if (day !== lastDay) {
    upToDay = new Date(day * DAY_MS).toISOString().slice(0, -'00:00:00.000Z'.length)
    lastDay = day
  }
  const ofDay = moment - day * DAY_MS
  const hours = TWO_DIGITS[Math.floor(ofDay / HOUR_MS)]
  const minutes = TWO_DIGITS[Math.floor(ofDay / MINUTE_MS) % 60]
  const seconds = TWO_DIGITS[Math.floor(ofDay / SECOND_MS) % 60]
  return `${upToDay}${hours}:${minutes}:${seconds}.${String(ofDay % SECOND_MS).padStart(3, '0')}Z`
}
