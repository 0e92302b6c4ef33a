/** The only source of time: passed in, so that a test can hold it still. Epoch milliseconds. */
export interface Clock {
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** RFC 3339 in UTC with milliseconds, as the wire wants it. */
export function toWireTime(moment: number): string {
  return new Date(moment).toISOString()
}
