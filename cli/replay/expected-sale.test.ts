import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../fixtures/fill-fixture.ts'
import { percentToBasisPoints } from '../../shared/rates.ts'
import { expectSale, type FilledOrder } from './expected-sale.ts'
import { readFixture, readFixtures, type StoreFixture } from './fixture-files.ts'

const CLICKED_AT = Date.UTC(2026, 10, 1)
const { storeSales } = await readFixtures()

async function filled(fixture: StoreFixture): Promise<FilledOrder> {
  const text = await readFixture('store-sales', fixture.file)
  const values = {
    click: 'click',
    creatorEmail: 'sana@reels.example',
    productId: FIXTURE_PRODUCT_ID,
    coupon: 'SANA10',
  }
  const { created_at } = JSON.parse(fillFixture(text, { ...values, clickAt: CLICKED_AT }))
  const { commission_rate_percent, attribution_window_days, product_ids } = fixture.terms
  const terms = {
    commission_rate: percentToBasisPoints(commission_rate_percent) ?? 0,
    attribution_window_days,
    product_ids,
  }
  return {
    terms: /\{\{(click|coupon)\}\}/.test(text) ? terms : null,
    byCoupon: text.includes('{{coupon}}'),
    linkOfSender: true,
    clickedAt: CLICKED_AT,
    orderedAt: Date.parse(created_at),
    productId: FIXTURE_PRODUCT_ID,
    platformFeeRate: 1000,
  }
}

test('on the terms of the manifest, each order leads to what the manifest says', async () => {
  for (const fixture of storeSales) {
    assert.equal(expectSale(fixture, await filled(fixture)), fixture.expect, fixture.name)
  }
})

test('other terms change reason and amounts', async () => {
  const cases: [string, Partial<FilledOrder['terms']>, Partial<FilledOrder>, unknown[]][] = [
    ['other-product', { product_ids: null }, {}, [null, '1850.00', '185.00']],
    ['gift-card', { product_ids: ['1'] }, {}, ['product_not_in_offer', '0.00', '0.00']],
    ['outside-attribution-window', { attribution_window_days: 60 }, {}, [null, '5100.00', '510.00']],
    ['self-purchase', {}, { linkOfSender: false }, ['other_merchants_link', '2999.00', '0.00']],
    ['test-order', { attribution_window_days: 0 }, {}, ['test_order', '1500.00', '0.00']],
  ]
  for (const [name, terms, change, expected] of cases) {
    const fixture = storeSales.find((one) => one.name === name) as StoreFixture
    const order = await filled(fixture)
    const changed = { ...order, terms: order.terms && { ...order.terms, ...terms }, ...change }
    const { rejection_reason, net_amount, commission } = expectSale(fixture, changed)
    assert.equal([rejection_reason, net_amount, commission], expected, name)
  }
})

test.run()
