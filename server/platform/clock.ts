/** The only source of time, in epoch milliseconds. Passed in, so tests can set it. */
export interface Clock {
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** A time (epoch ms) in RFC 3339, UTC, with milliseconds. */
export function isoTime(time: number): string {
  return new Date(time).toISOString()
}

export function isoTimeOrNull(time: number | null): string | null {
  return time === null ? null : isoTime(time)
}
