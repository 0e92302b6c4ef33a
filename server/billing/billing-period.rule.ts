import { DateTime } from 'luxon'

/** Epoch ms, `end` exclusive. */
export interface Period {
  start: number
  end: number
}

const UNIT = { monthly: 'month', weekly: 'week', daily: 'day' } as const

export type BillingPeriodLength = keyof typeof UNIT

/**
 * The calendar period in `zone` that contains `moment` (epoch ms): a month, a week from Monday (ISO 8601) or a day, from midnight to
 * midnight local time. Every moment is in exactly one period.
 */
export function calendarPeriodAt(moment: number, length: BillingPeriodLength, zone: string): Period {
  const local = DateTime.fromMillis(moment, { zone })
  if (!local.isValid) throw new Error(`no calendar for ${moment} in zone ${zone}`)
  const unit = UNIT[length]
  // Days are counted on a UTC calendar, where each has 24 hours. Only their midnights are converted to the zone.
  const first = DateTime.utc(local.year, local.month, local.day).startOf(unit)
  const boundary = (steps: number) => midnight(first.plus({ [unit]: steps }), zone)
  let steps = 0
  let start = boundary(steps)
  // Near a clock change at midnight the local date can differ from the period that contains the moment.
  while (start > moment) start = boundary(--steps)
  let end = boundary(++steps)
  while (end <= moment) [start, end] = [end, boundary(++steps)]
  return { start, end }
}

/**
 * When a date begins in `zone` (epoch ms). If midnight occurs twice, the earlier one. If the clock skips midnight, midnight by the
 * offset before the change. Uses setZone, because luxon's fromObject resolves these cases with today's offset.
 */
function midnight(date: DateTime, zone: string): number {
  const candidates = date.setZone(zone, { keepLocalTime: true }).getPossibleOffsets()
  return Math.min(...candidates.map((candidate) => candidate.toMillis()))
}

/** The first calendar boundary strictly after `moment` (epoch ms). */
export function boundaryAfter(moment: number, length: BillingPeriodLength, zone: string): number {
  return calendarPeriodAt(moment, length, zone).end
}

interface NextCycleFacts {
  /** The end of the merchant's previous cycle (epoch ms); `null` for the first one. */
  formerPeriodEnd: number | null
  /** When the sale that opens the cycle was accepted (epoch ms). */
  acceptedAt: number
  length: BillingPeriodLength
  zone: string
}

/**
 * The period of the cycle that an accepted sale opens. It starts where the previous cycle ended, so a merchant's cycles have no gaps,
 * and ends at the first boundary after the acceptance. The first cycle is the calendar period of its first acceptance. An acceptance
 * before the previous end (the clock was set back) counts as one at that end.
 */
export function nextCyclePeriod(facts: NextCycleFacts): Period {
  const { formerPeriodEnd, acceptedAt, length, zone } = facts
  if (formerPeriodEnd === null) return calendarPeriodAt(acceptedAt, length, zone)
  return {
    start: formerPeriodEnd,
    end: boundaryAfter(Math.max(acceptedAt, formerPeriodEnd), length, zone),
  }
}
