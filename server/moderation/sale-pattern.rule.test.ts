// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { askedForCommission, isBurstOfRejections, unusualConversion } from './sale-pattern.rule.ts'

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
  const verdict = (visits: number, sales: number) => unusualConversion({ visits, sales }, limits)
  assert.is(verdict(50, 15), 'too_high')
  assert.is(verdict(50, 14), null)
  assert.is(verdict(49, 49), null)
  assert.is(verdict(5000, 0), 'none')
  assert.is(verdict(4999, 0), null)
  assert.is(verdict(5000, 1), null)
  assert.is(unusualConversion({ visits: 9999, sales: 0 }, { ...limits, visitsWithoutSale: 0 }), null)
  assert.is(
    unusualConversion({ visits: 50, sales: 0 }, { ...limits, rate: 0 }),
    null,
    'no sale is not too high',
  )
})

test.run()
