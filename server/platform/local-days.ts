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
