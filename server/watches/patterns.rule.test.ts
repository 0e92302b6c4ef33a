// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import {
  claimsCommission,
  conversionDropped,
  countVisit,
  isBurstOfRejections,
  isRobotic,
  type JudgedSale,
  missesCoupon,
  rejectsMoreThanBefore,
  unusualConversion,
  type VisitWindow,
  visitsWithin,
} from './patterns.rule.ts'

test("a shop's ordinary orders claim no commission", () => {
  const claims = (rejection_reason: JudgedSale['rejection_reason'], link_id: string | null = null) =>
    claimsCommission({ rejection_reason, link_id })
  assert.not(claims('no_tracking_reference'))
  assert.not(claims('not_paid'))
  assert.ok(claims('not_paid', 'a link'))
  assert.ok(claims('unknown_tracking_reference'))
  assert.ok(claims('other_merchants_link'))
  assert.ok(claims(null))
})

test('a burst is many rejections and a large share of all', () => {
  const limits = { rejections: 20, rate: 5000 }
  assert.ok(isBurstOfRejections({ claims: 40, rejected: 20 }, limits))
  assert.not(isBurstOfRejections({ claims: 42, rejected: 20 }, limits))
  assert.not(isBurstOfRejections({ claims: 19, rejected: 19 }, limits))
  assert.ok(isBurstOfRejections({ claims: 20, rejected: 20 }, { ...limits, rate: 10_000 }))
})

test('a conversion is unusual in either direction, with enough visits', () => {
  const limits = { rate: 3000, minVisits: 50, visitsWithoutSale: 5000 }
  const verdict = (visits: number, sales: number, other: Partial<typeof limits> = {}) =>
    unusualConversion({ visits, clicks: visits, sales }, { ...limits, ...other })
  assert.is(verdict(50, 15), 'too_high')
  assert.is(verdict(50, 14), null)
  assert.is(verdict(49, 49), null)
  assert.is(verdict(5000, 0), 'none')
  assert.is(verdict(4999, 0), null)
  assert.is(verdict(5000, 1), null)
  assert.is(verdict(9999, 0, { visitsWithoutSale: 0 }), null)
  assert.is(verdict(50, 0, { rate: 0 }), null, 'no sale is not too high')
  assert.is(unusualConversion({ visits: 1, clicks: 1, sales: 2 }, limits), 'more_sales_than_clicks')
  assert.is(unusualConversion({ visits: 1, clicks: 1, sales: 1 }, limits), null)
  // Browsers of apps count as bots, and their visitors buy.
  assert.is(unusualConversion({ visits: 0, clicks: 2, sales: 2 }, limits), null)
})

test('a few rejections are many for a store that had none before', () => {
  const limits = { least: 5, times: 4 }
  const verdict = (claims: number, rejected: number, pastClaims: number, pastRejected: number) =>
    rejectsMoreThanBefore({ claims, rejected }, { claims: pastClaims, rejected: pastRejected }, limits)
  assert.ok(verdict(10, 5, 100, 0))
  assert.not(verdict(10, 4, 100, 0), 'too few')
  assert.not(verdict(10, 5, 19, 0), 'too short a past')
  // One in ten before, and four in ten or more now.
  assert.ok(verdict(20, 9, 99, 9))
  assert.not(verdict(20, 7, 99, 9))
  assert.not(
    rejectsMoreThanBefore({ claims: 9, rejected: 9 }, { claims: 99, rejected: 0 }, { ...limits, least: 0 }),
  )
})

test('a conversion has dropped when a tenth of the expected sales is left', () => {
  const dropped = (visits: number, sales: number, pastVisits = 200, pastSales = 20, least = 10) =>
    conversionDropped({ visits, sales, pastVisits, pastSales }, least)
  assert.ok(dropped(100, 1))
  assert.not(dropped(100, 2))
  assert.not(dropped(99, 0), 'nine sales were expected')
  assert.not(dropped(1000, 0, 200, 9), 'it had not sold enough before')
  assert.not(dropped(1000, 0, 0, 20))
  assert.not(dropped(1000, 0, 200, 20, 0), 'off')
})

const SPAN_MS = 600_000

test('visits of one span count less and less over the next', () => {
  let window: VisitWindow | undefined
  for (let visit = 0; visit < 10; visit += 1) window = countVisit(window, 1000 + visit, SPAN_MS)
  assert.ok(window)
  assert.is(visitsWithin(window, 2000, SPAN_MS), 10)
  const next = countVisit(window, 1000 + SPAN_MS, SPAN_MS)
  assert.is(visitsWithin(next, 1000 + SPAN_MS, SPAN_MS), 11)
  assert.is(visitsWithin(next, 1000 + SPAN_MS + SPAN_MS / 2, SPAN_MS), 6)
  assert.is(visitsWithin(countVisit(next, 1000 + 3 * SPAN_MS, SPAN_MS), 1000 + 3 * SPAN_MS, SPAN_MS), 1)
})

test('a clock that is set back loses no visit', () => {
  const window = countVisit(countVisit(undefined, 5000, SPAN_MS), 1000, SPAN_MS)
  assert.is(visitsWithin(window, 1000, SPAN_MS), 2)
})

test('the estimate is between the visits of the last span and of the last two', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(SPAN_MS), { minLength: 1, maxLength: 60 }), (gaps) => {
      let at = 0
      const times = gaps.map((gap) => (at += gap))
      let window: VisitWindow | undefined
      for (const time of times) window = countVisit(window, time, SPAN_MS)
      const counted = visitsWithin(window as VisitWindow, at, SPAN_MS)
      assert.ok(counted >= 1)
      assert.ok(counted <= times.filter((time) => time > at - 2 * SPAN_MS).length)
      if (at < SPAN_MS) assert.is(counted, times.length)
    }),
    { numRuns: 500 },
  )
})

test('an order misses the coupon code of an offer if none of its codes was in force', () => {
  const at = 1_790_000_000_000
  const coupon = (offer_id: string, offer_status: 'live' | 'paused') => ({
    code: 'SANA10',
    starts_at: 0,
    ends_at: null,
    offer_status,
    link: { offer_id },
  })
  const misses = (...coupons: ReturnType<typeof coupon>[]) =>
    missesCoupon({ order: { created_at: at }, coupons }, 'offer 1')
  const [paused, live] = [coupon('offer 1', 'paused'), coupon('offer 1', 'live')]
  assert.ok(misses(paused))
  assert.ok(misses({ ...live, starts_at: at + 1000 }))
  assert.not(misses(live))
  assert.not(misses(paused, coupon('offer 2', 'live')))
  assert.not(misses(coupon('offer 2', 'paused')))
  assert.not(misses())
})

test('many visits from one address need a second sign', () => {
  const tally = (visits: number, sales: number) => ({ visits, clicks: visits, sales })
  assert.ok(isRobotic({ dataCenter: true, settled: undefined }, 300))
  assert.ok(isRobotic({ dataCenter: true, settled: tally(10, 5) }, 0))
  assert.ok(isRobotic({ dataCenter: false, settled: tally(300, 0) }, 300))
  for (const settled of [undefined, tally(299, 0), tally(5000, 1)]) {
    assert.not.ok(isRobotic({ dataCenter: false, settled }, 300))
  }
  assert.not.ok(isRobotic({ dataCenter: false, settled: tally(5000, 0) }, 0))
})

test.run()
