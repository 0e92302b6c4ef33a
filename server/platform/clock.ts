/** The only source of time, in epoch milliseconds. Passed in, so tests can set it. */
export interface Clock {
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/**
 * The last millisecond of the second of `time`, both epoch ms. Stores write an order's time in whole seconds, so what happened within that
 * second counts as before the order.
 */
export function endOfSecond(time: number): number {
  return time - (time % 1000) + 999
}

/** A time (epoch ms) in RFC 3339, UTC, with milliseconds. */
export function isoTime(time: number): string {
  return new Date(time).toISOString()
}
