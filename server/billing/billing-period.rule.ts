import { DateTime } from 'luxon'

export const BILLING_PERIODS = ['monthly', 'weekly', 'daily'] as const

export type BillingPeriodLength = (typeof BILLING_PERIODS)[number]

/** Epoch milliseconds; `start` belongs to the period, `end` to the next one. */
export interface Period {
  start: number
  end: number
}

const UNIT = { monthly: 'month', weekly: 'week', daily: 'day' } as const

/**
 * The calendar period of `zone` that holds `moment` (epoch ms): a month, a week from Monday (ISO 8601) or a day, from
 * midnight to midnight on that zone's clock. The periods of a zone tile time: every moment is in exactly one.
 */
export function calendarPeriodAt(moment: number, length: BillingPeriodLength, zone: string): Period {
  const local = DateTime.fromMillis(moment, { zone })
  if (!local.isValid) throw new Error(`no calendar for ${moment} in zone ${zone}`)
  const unit = UNIT[length]
  // Whole days are counted on a plain UTC calendar, where each has 24 hours; only their midnights meet the zone's clock.
  const first = DateTime.utc(local.year, local.month, local.day).startOf(unit)
  const boundary = (steps: number) => midnight(first.plus({ [unit]: steps }), zone)
  let steps = 0
  let start = boundary(steps)
  // A clock that is put back or forward around midnight can show a date on the other side of that date's beginning.
  while (start > moment) start = boundary(--steps)
  let end = boundary(++steps)
  while (end <= moment) [start, end] = [end, boundary(++steps)]
  return { start, end }
}

/**
 * The moment at which a date begins in `zone`: the earlier one when the clock shows midnight twice; when it skips
 * midnight, the moment that midnight would have been on the clock as it stood before. Built with setZone because
 * luxon's fromObject settles such cases by the offset of the present day.
 */
function midnight(date: DateTime, zone: string): number {
  const candidates = date.setZone(zone, { keepLocalTime: true }).getPossibleOffsets()
  return Math.min(...candidates.map((candidate) => candidate.toMillis()))
}

/** The first calendar boundary strictly after `moment` (epoch ms). */
export function boundaryAfter(moment: number, length: BillingPeriodLength, zone: string): number {
  return calendarPeriodAt(moment, length, zone).end
}

export interface NextCycleFacts {
  /** The end of the merchant's former cycle (epoch ms); `null` when there is none. */
  formerPeriodEnd: number | null
  /** When the sale that opens the cycle was accepted (epoch ms). */
  acceptedAt: number
  length: BillingPeriodLength
  zone: string
}

/**
 * The period of the cycle that an accepted sale opens. It begins where the former cycle ended, so that a merchant's cycles
 * tile time however long nothing was sold in between, and ends at the first boundary after the acceptance. The first
 * cycle is the calendar period of its first acceptance. An acceptance before the former end (a clock put back)
 * counts as one at that end.
 */
export function nextCyclePeriod(facts: NextCycleFacts): Period {
  const { formerPeriodEnd, acceptedAt, length, zone } = facts
  if (formerPeriodEnd === null) return calendarPeriodAt(acceptedAt, length, zone)
  return {
    start: formerPeriodEnd,
    end: boundaryAfter(Math.max(acceptedAt, formerPeriodEnd), length, zone),
  }
}
