import { DateTime } from 'luxon'
import { DAY_MS } from '../../shared/durations.ts'

/** The day of a time (epoch ms) on the calendar of a zone, counted from 1970-01-01. */
export function localDay(time: number, zone: string): number {
  return Math.floor((time + offsetAt(time, zone)) / DAY_MS)
}

/** How far the clock of a zone is ahead of UTC at a time (epoch ms), ms. */
export function offsetAt(time: number, zone: string): number {
  return DateTime.fromMillis(time, { zone }).offset * 60_000
}

/** `2026-11-20` for the day of that number. */
export function dateOfDay(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}

/** A zone's offset (ms) from a time on (epoch ms). */
interface OffsetStep {
  since: number
  offset: number
}

/** Clocks are set at such a time. */
const QUARTER_MS = 15 * 60_000

/** The offsets of a zone from `from` to `to` (epoch ms), in order; at most one change a day is found. */
export function offsetsWithin(from: number, to: number, zone: string): OffsetStep[] {
  let last = { since: from, offset: offsetAt(from, zone) }
  const steps = [last]
  for (let at = from; at < to; at += DAY_MS) {
    const offset = offsetAt(at + DAY_MS, zone)
    if (offset === last.offset) continue
    let before = Math.floor(at / QUARTER_MS)
    let after = Math.ceil((at + DAY_MS) / QUARTER_MS)
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2)
      if (offsetAt(middle * QUARTER_MS, zone) === last.offset) before = middle
      else after = middle
    }
    last = { since: after * QUARTER_MS, offset }
    steps.push(last)
  }
  return steps
}
