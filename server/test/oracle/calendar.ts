/** A calendar of the oracle's own. Pakistan is five hours ahead of UTC all year round. Times are epoch ms. */

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
const AHEAD_OF_UTC = 5 * HOUR
/** 1 January 1970 was a Thursday, three days after a Monday. */
const DAYS_AFTER_MONDAY = 3

export type PeriodLength = 'monthly' | 'weekly' | 'daily'

export interface Span {
  start: number
  /** Belongs to the next one. */
  end: number
}

function isLeap(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}

/** Days from 1 January 1970 to the first of a month, counted month by month. */
function firstOfMonth(year: number, month: number): number {
  let days = 0
  for (let y = 1970; y < year; y++) days += isLeap(y) ? 366 : 365
  for (let m = 1; m < month; m++) days += daysInMonth(year, m)
  return days
}

/** Midnight UTC of a date, or `null` for a day that the calendar does not have. */
export function midnightOf(year: number, month: number, day: number): number | null {
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null
  return (firstOfMonth(year, month) + day - 1) * DAY
}

interface CivilDate {
  year: number
  month: number
  day: number
}

function dateOfDay(dayNumber: number): CivilDate {
  let year = 1970
  let month = 1
  let left = dayNumber
  while (left >= (isLeap(year) ? 366 : 365)) {
    left -= isLeap(year) ? 366 : 365
    year += 1
  }
  while (left >= daysInMonth(year, month)) {
    left -= daysInMonth(year, month)
    month += 1
  }
  return { year, month, day: left + 1 }
}

function karachiDay(moment: number): number {
  return Math.floor((moment + AHEAD_OF_UTC) / DAY)
}

/** The calendar month, week (from Monday) or day in Karachi that holds a moment. */
export function periodAt(moment: number, length: PeriodLength): Span {
  const today = karachiDay(moment)
  const span = (first: number, next: number) => ({
    start: first * DAY - AHEAD_OF_UTC,
    end: next * DAY - AHEAD_OF_UTC,
  })
  if (length === 'daily') return span(today, today + 1)
  if (length === 'weekly') {
    const monday = today - ((today + DAYS_AFTER_MONDAY) % 7)
    return span(monday, monday + 7)
  }
  const { year, month } = dateOfDay(today)
  const first = firstOfMonth(year, month)
  return span(first, first + daysInMonth(year, month))
}

/** A moment on Karachi's clock, for people: `2028-02-29 23:59:59.999`. */
export function clockText(moment: number): string {
  const { year, month, day } = dateOfDay(karachiDay(moment))
  const inDay = moment + AHEAD_OF_UTC - karachiDay(moment) * DAY
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  const time = `${two(inDay / HOUR)}:${two((inDay % HOUR) / MINUTE)}:${two((inDay % MINUTE) / 1000)}`
  const ms = inDay % 1000
  return `${year}-${two(month)}-${two(day)} ${time}${ms === 0 ? '' : `.${String(ms).padStart(3, '0')}`}`
}
