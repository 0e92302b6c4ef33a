/** The only source of time, in epoch milliseconds. Passed in, so tests can set it. */
export interface Clock {
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** A time (epoch ms) in RFC 3339, UTC, with milliseconds; `null` for `null`. */
export function isoTime(time: number): string
export function isoTime(time: number | null): string | null
export function isoTime(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString()
}

/** A period of wire times, in epoch ms; `null` for a missing end. */
export function periodOf({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  return { from: from === undefined ? null : Date.parse(from), to: to === undefined ? null : Date.parse(to) }
}
