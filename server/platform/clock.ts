/** The only source of time: passed in, so that a test can hold it still. Epoch milliseconds. */
export interface Clock {
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

const SECOND_MS = 1000
let lastSecond = Number.NaN
let upToSecond = ''

/** RFC 3339 in UTC with milliseconds, as the wire wants it. Rows of a page often come from the same second, and `Date` is slow to write. */
export function toWireTime(moment: number): string {
  const second = Math.floor(moment / SECOND_MS)
  if (second !== lastSecond) {
    upToSecond = new Date(second * SECOND_MS).toISOString().slice(0, -'000Z'.length)
    lastSecond = second
  }
  return `${upToSecond}${String(moment - second * SECOND_MS).padStart(3, '0')}Z`
}
