import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { PROOF_FORM } from '../test/testkit/proof-size.ts'
import { fc } from '../test/testkit/property.ts'
import {
  type BillingPeriodLength,
  boundaryAfter,
  calendarPeriodAt,
  nextCyclePeriod,
} from './billing-period.rule.ts'

const KARACHI = 'Asia/Karachi'
const LONDON = 'Europe/London'
const HOUR = 3_600_000
const at = (text: string) => Date.parse(text)
const written = (period: { start: number; end: number }) =>
  [period.start, period.end].map((moment) => new Date(moment).toISOString().replace('.000Z', 'Z'))
const periodAt = (text: string, length: BillingPeriodLength, zone: string) =>
  written(calendarPeriodAt(at(text), length, zone))

test('a Karachi month begins at 19:00 UTC of the day before', () => {
  const november = ['2026-10-31T19:00:00Z', '2026-11-30T19:00:00Z']
  assert.equal(periodAt('2026-11-20T17:30:00Z', 'monthly', KARACHI), november)
  assert.equal(periodAt('2026-10-31T19:00:00Z', 'monthly', KARACHI), november)
  assert.equal(periodAt('2026-11-30T18:59:59.999Z', 'monthly', KARACHI), november)
  assert.equal(periodAt('2026-10-31T18:59:59.999Z', 'monthly', KARACHI)[1], november[0])
  assert.equal(periodAt('2026-11-30T19:00:00Z', 'monthly', KARACHI)[0], november[1])
})

test('February has 29 days in leap years only', () => {
  const ends = ['2028', '2027', '2100'].map((year) =>
    periodAt(`${year}-02-15T00:00:00Z`, 'monthly', KARACHI)[1]?.slice(0, 10),
  )
  assert.equal(ends, ['2028-02-29', '2027-02-28', '2100-02-28'])
})

test('months of 28 to 31 days follow one another from a 31st', () => {
  const ends: string[] = []
  let moment = at('2026-01-30T20:00:00Z')
  for (let month = 0; month < 5; month += 1) {
    moment = boundaryAfter(moment, 'monthly', KARACHI)
    ends.push(new Date(moment).toISOString().slice(0, 10))
  }
  assert.equal(ends, ['2026-01-31', '2026-02-28', '2026-03-31', '2026-04-30', '2026-05-31'])
})

type Case = [moment: string, length: BillingPeriodLength, zone: string, start: string, end: string]
const PERIODS: Record<string, Case[]> = {
  'weeks begin on Monday, also across the turn of the year': [
    ['2026-11-22T18:59:59Z', 'weekly', KARACHI, '2026-11-15T19:00:00Z', '2026-11-22T19:00:00Z'],
    ['2026-11-22T19:00:00Z', 'weekly', KARACHI, '2026-11-22T19:00:00Z', '2026-11-29T19:00:00Z'],
    ['2027-01-01T12:00:00Z', 'weekly', KARACHI, '2026-12-27T19:00:00Z', '2027-01-03T19:00:00Z'],
  ],
  'days of 23 to 25 hours, weeks and months follow a clock with summer time': [
    ['2026-03-29T12:00:00Z', 'daily', LONDON, '2026-03-29T00:00:00Z', '2026-03-29T23:00:00Z'],
    ['2026-10-25T12:00:00Z', 'daily', LONDON, '2026-10-24T23:00:00Z', '2026-10-26T00:00:00Z'],
    ['2026-07-01T12:00:00Z', 'daily', LONDON, '2026-06-30T23:00:00Z', '2026-07-01T23:00:00Z'],
    ['2026-03-31T22:59:59Z', 'monthly', LONDON, '2026-03-01T00:00:00Z', '2026-03-31T23:00:00Z'],
    ['2026-10-25T01:30:00Z', 'weekly', LONDON, '2026-10-18T23:00:00Z', '2026-10-26T00:00:00Z'],
  ],
  // Amman 2021-10-29: 01:00 +03 → 00:00 +02. Havana 2026-11-01: 01:00 -04 → 00:00 -05. St. John's 2010-11-07: 00:01 -02:30 → 23:01 -03:30.
  'a midnight that comes twice opens its day the first time': [
    ['2021-10-28T21:30:00Z', 'daily', 'Asia/Amman', '2021-10-28T21:00:00Z', '2021-10-29T22:00:00Z'],
    ['2021-10-28T22:30:00Z', 'daily', 'Asia/Amman', '2021-10-28T21:00:00Z', '2021-10-29T22:00:00Z'],
    ['2026-11-01T04:30:00Z', 'monthly', 'America/Havana', '2026-11-01T04:00:00Z', '2026-12-01T05:00:00Z'],
    ['2026-11-01T05:30:00Z', 'monthly', 'America/Havana', '2026-11-01T04:00:00Z', '2026-12-01T05:00:00Z'],
    ['2010-11-07T02:45:00Z', 'daily', 'America/St_Johns', '2010-11-07T02:30:00Z', '2010-11-08T03:30:00Z'],
  ],
  // Cairo 2026-04-24: 00:00 +02 → 01:00 +03. Apia left out the whole of 2011-12-30.
  'a midnight that is skipped opens its day at the end of the gap': [
    ['2026-04-24T10:00:00Z', 'daily', 'Africa/Cairo', '2026-04-23T22:00:00Z', '2026-04-24T21:00:00Z'],
    ['2011-12-30T09:59:59Z', 'daily', 'Pacific/Apia', '2011-12-29T10:00:00Z', '2011-12-30T10:00:00Z'],
    ['2011-12-30T10:00:00Z', 'daily', 'Pacific/Apia', '2011-12-30T10:00:00Z', '2011-12-31T10:00:00Z'],
  ],
  // Toronto 1919-03-30: 23:30 -05 → 00:30 -04, so that the 31st begins at 05:00 UTC, when the clock shows 01:00.
  'a moment between a skipped midnight and its stand-in belongs to the day before': [
    ['1919-03-31T04:45:00Z', 'daily', 'America/Toronto', '1919-03-30T05:00:00Z', '1919-03-31T05:00:00Z'],
    ['1919-03-31T05:00:00Z', 'daily', 'America/Toronto', '1919-03-31T05:00:00Z', '1919-04-01T04:00:00Z'],
  ],
}
for (const [title, cases] of Object.entries(PERIODS)) {
  test(title, () => {
    for (const [text, unit, place, ...period] of cases) assert.equal(periodAt(text, unit, place), period)
  })
}

test('a boundary is strictly after the moment', () => {
  const midnight = at('2026-11-20T19:00:00Z')
  assert.is(boundaryAfter(midnight - 1, 'daily', KARACHI), midnight)
  assert.is(boundaryAfter(midnight, 'daily', KARACHI), midnight + 24 * HOUR)
})

test('an unknown zone or an impossible moment is a bug, not a period', () => {
  assert.throws(() => calendarPeriodAt(0, 'daily', 'Asia/Karachee'), /no calendar/)
  assert.throws(() => calendarPeriodAt(9e15, 'daily', KARACHI), /no calendar/)
})

test('the first cycle is a calendar period; a later one begins where the former ended and reaches over quiet periods', () => {
  const august = '2026-08-31T19:00:00Z'
  for (const [former, acceptedAt, ...period] of [
    [null, '2026-11-20T12:00:00Z', '2026-10-31T19:00:00Z', '2026-11-30T19:00:00Z'],
    [august, '2026-09-03T00:00:00Z', august, '2026-09-30T19:00:00Z'],
    [august, '2026-11-20T00:00:00Z', august, '2026-11-30T19:00:00Z'],
    [august, '2026-09-30T19:00:00Z', august, '2026-10-31T19:00:00Z'],
    // A clock that was put back.
    [august, '2026-08-30T00:00:00Z', august, '2026-09-30T19:00:00Z'],
  ] as const) {
    const facts = { formerPeriodEnd: former && at(former), acceptedAt: at(acceptedAt) }
    assert.equal(written(nextCyclePeriod({ ...facts, length: 'monthly', zone: KARACHI })), period)
  }
})

const zone = fc.constantFrom(
  KARACHI,
  LONDON,
  'UTC',
  'America/Havana',
  'America/St_Johns',
  'America/Sao_Paulo',
  'Asia/Amman',
  'Asia/Beirut',
  'Africa/Cairo',
  'Pacific/Apia',
  'Atlantic/Azores',
)
const length = fc.constantFrom('monthly', 'weekly', 'daily')
const moment = fc.integer({ min: at('1990-01-01'), max: at('2100-01-01') })
/** Within a day and a half of a clock change in one of these zones. */
const nearChange = fc
  .tuple(
    fc.constantFrom(
      ...['2021-10-28T21:00:00Z', '2026-11-01T04:00:00Z', '2010-11-07T02:31:00Z'],
      ...['2026-03-28T22:00:00Z', '2026-04-23T22:00:00Z', '2011-12-30T10:00:00Z'],
    ),
    fc.integer({ min: -36 * 60, max: 36 * 60 }),
  )
  .map(([change, minutes]) => at(change) + minutes * 60_000)

test('property: periods tile time, and every moment is in exactly one', () => {
  fc.assert(
    fc.property(fc.oneof(moment, nearChange), length, zone, (now, unit, place) => {
      const period = calendarPeriodAt(now, unit, place)
      assert.ok(period.start <= now && now < period.end)
      assert.equal(calendarPeriodAt(period.start, unit, place), period)
      assert.equal(calendarPeriodAt(period.end - 1, unit, place), period)
      assert.is(calendarPeriodAt(period.end, unit, place).start, period.end)
      assert.is(calendarPeriodAt(period.start - 1, unit, place).end, period.start)
      assert.is(boundaryAfter(now, unit, place), period.end)
    }),
    { numRuns: PROOF_FORM ? 1500 : 300 },
  )
})

test('property: a boundary in Karachi is a midnight there by another calendar (Intl), on a 1st or a Monday', () => {
  const clock = new Intl.DateTimeFormat('en-GB', {
    timeZone: KARACHI,
    weekday: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  })
  fc.assert(
    fc.property(fc.integer({ min: at('2010-01-01'), max: at('2100-01-01') }), length, (now, unit) => {
      const parts = new Map(
        clock.formatToParts(boundaryAfter(now, unit, KARACHI)).map((part) => [part.type, part.value]),
      )
      assert.equal([parts.get('hour'), parts.get('minute'), parts.get('second')], ['00', '00', '00'])
      if (unit === 'monthly') assert.is(parts.get('day'), '1')
      if (unit === 'weekly') assert.is(parts.get('weekday'), 'Mon')
    }),
    { numRuns: 250 },
  )
})

test("property: a merchant's cycles tile time and each holds the acceptance that opened it", () => {
  fc.assert(
    fc.property(
      fc.array(moment, { minLength: 1, maxLength: 12 }),
      length,
      zone,
      (acceptances, unit, place) => {
        let formerPeriodEnd: number | null = null
        for (const acceptedAt of acceptances.sort((a, b) => a - b)) {
          if (formerPeriodEnd !== null && acceptedAt < formerPeriodEnd) continue
          const cycle = nextCyclePeriod({ formerPeriodEnd, acceptedAt, length: unit, zone: place })
          if (formerPeriodEnd !== null) assert.is(cycle.start, formerPeriodEnd)
          assert.ok(cycle.start <= acceptedAt && acceptedAt < cycle.end)
          assert.is(calendarPeriodAt(cycle.end, unit, place).start, cycle.end)
          formerPeriodEnd = cycle.end
        }
      },
    ),
    { numRuns: 200 },
  )
})

test.run()
