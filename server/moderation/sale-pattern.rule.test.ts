// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  askedForCommission,
  conversionDropped,
  isBurstOfRejections,
  pausedInTraffic,
  rejectsMoreThanBefore,
  unusualConversion,
} from './sale-pattern.rule.ts'

test("a shop's everyday orders ask for no commission", () => {
  const asked = (rejection_reason: string | null, link_id: string | null = null) =>
    askedForCommission({ rejection_reason, link_id })
  assert.not(asked('no_tracking_reference'))
  assert.not(asked('not_paid'))
  assert.ok(asked('not_paid', 'a link'))
  assert.ok(asked('unknown_tracking_reference'))
  assert.ok(asked('other_merchants_link'))
  assert.ok(asked(null))
})

test('a burst is many rejections and a large part of all', () => {
  const limits = { rejections: 20, rate: 5000 }
  assert.ok(isBurstOfRejections({ asked: 40, rejected: 20 }, limits))
  assert.not(isBurstOfRejections({ asked: 42, rejected: 20 }, limits))
  assert.not(isBurstOfRejections({ asked: 19, rejected: 19 }, limits))
  assert.ok(isBurstOfRejections({ asked: 20, rejected: 20 }, { ...limits, rate: 10_000 }))
})

test('a conversion is out of the ordinary in either direction, among enough visits', () => {
  const limits = { rate: 3000, leastVisits: 50, visitsWithoutSale: 5000 }
  const verdict = (visits: number, sales: number) =>
    unusualConversion({ visits, clicks: visits, sales }, limits)
  assert.is(verdict(50, 15), 'too_high')
  assert.is(verdict(50, 14), null)
  assert.is(verdict(49, 49), null)
  assert.is(verdict(5000, 0), 'none')
  assert.is(verdict(4999, 0), null)
  assert.is(verdict(5000, 1), null)
  assert.is(
    unusualConversion({ visits: 9999, clicks: 9999, sales: 0 }, { ...limits, visitsWithoutSale: 0 }),
    null,
  )
  assert.is(
    unusualConversion({ visits: 50, clicks: 50, sales: 0 }, { ...limits, rate: 0 }),
    null,
    'no sale is not too high',
  )
})

test('more sales than clicks are out of the ordinary at any volume', () => {
  const limits = { rate: 3000, leastVisits: 50, visitsWithoutSale: 5000 }
  assert.is(unusualConversion({ visits: 1, clicks: 1, sales: 2 }, limits), 'more_sales_than_clicks')
  assert.is(unusualConversion({ visits: 1, clicks: 1, sales: 1 }, limits), null)
  // Browsers of apps count as bots, and their visitors buy.
  assert.is(unusualConversion({ visits: 0, clicks: 2, sales: 2 }, limits), null)
})

test('a few rejections are many for a store that had none before', () => {
  const limits = { least: 5, times: 4 }
  const verdict = (asked: number, rejected: number, pastAsked: number, pastRejected: number) =>
    rejectsMoreThanBefore({ asked, rejected }, { asked: pastAsked, rejected: pastRejected }, limits)
  assert.ok(verdict(10, 5, 100, 0))
  assert.not(verdict(10, 4, 100, 0), 'too few')
  assert.not(verdict(10, 5, 19, 0), 'too short a past')
  // One in ten before, and four in ten or more now.
  assert.ok(verdict(20, 9, 99, 9))
  assert.not(verdict(20, 7, 99, 9))
  assert.not(
    rejectsMoreThanBefore({ asked: 9, rejected: 9 }, { asked: 99, rejected: 0 }, { ...limits, least: 0 }),
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

test('an offer is paused in traffic when it had enough of either sort', () => {
  assert.ok(pausedInTraffic({ tracked: 50, untracked: 50 }, 50))
  assert.not(pausedInTraffic({ tracked: 49, untracked: 500 }, 50))
  assert.not(pausedInTraffic({ tracked: 500, untracked: 49 }, 50))
  assert.not(pausedInTraffic({ tracked: 500, untracked: 500 }, 0))
})

test.run()
