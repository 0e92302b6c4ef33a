import * as assert from 'uvu/assert'
import { SALE_REJECTION_REASONS } from '../../shared/rejection-reasons.ts'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { removeStore } from '../stores/remove-store.service.ts'
import { connectStore } from '../stores/stores.service.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { type Marketplace, openCycleOf, type Trade } from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { addUser, outcomeOf, requestOf } from '../test/testkit/people.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { MINUTE } from '../test/testkit/testbed.ts'
import { SALE_RULE_VERSION } from './accept-sale.rule.ts'
import { explainSale, findOrder } from './sale-explanation.service.ts'
import { salesRouter } from './sales.procedures.ts'

const PRODUCT = '8123456789012'
const OTHER_LINES = [
  { product_id: 77, title: 'Secret gift for Bushra', quantity: 2, price: '900.00' },
  { product_id: 8_123_456_789_012, title: 'Voucher', quantity: 1, price: '500.00', gift_card: true },
]

for (const { it } of marketSuites('a sale explained', { shared: true, dialects: proofDialects() })) {
  let market: Marketplace
  let trade: Trade
  /** Of the sale of 16,000.00 with two lines that do not count. */
  let id: string

  const salesFor = (actor: Actor) => salesRouter.createCaller(requestOf(market.platform, actor))
  const explained = async (sale = id) => ({
    merchants: await salesFor(trade.shop.actor).get({ id: sale }),
    creators: await salesFor(trade.creator).get({ id: sale }),
  })

  it.before(async (context) => {
    market = context.market
    const [shop, creator] = [await market.addShop('Chenab Lawn'), await market.addCreator('Sana Mirza')]
    const link = await market.addLink(shop, creator, { title: 'Lawn suit', product_ids: [PRODUCT] })
    trade = { shop, creator, link }
    const click = await market.click(link)
    market.clock.pass(MINUTE)
    const placed = { price: 1_600_000, click, createdAt: market.clock.now(), id: '42', name: '#77' }
    const order = JSON.parse(orderBody(placed))
    order.line_items.push(...OTHER_LINES)
    await market.deliver(shop, JSON.stringify(order))
    await market.drainUntilIdle()
    id = (await findOrder(market.platform, '42', null))[0]?.id ?? ''
  })

  it('has the same click, terms, checks and arithmetic for both parties', async () => {
    const { merchants, creators } = await explained()
    for (const { merchant, creator, offer, receipt, outcome } of [merchants, creators]) {
      assert.equal(
        [merchant.display_name, creator?.display_name, offer?.title],
        ['Chenab Lawn', 'Sana Mirza', 'Lawn suit'],
      )
      assert.equal(
        [receipt.rule_version, receipt.checks.length, receipt.commission_rate, receipt.commission],
        [SALE_RULE_VERSION, SALE_REJECTION_REASONS.length, 12.5, '2000.00'],
      )
      assert.equal([receipt.attribution_window_days, receipt.product_ids], [30, [PRODUCT]])
      assert.ok((receipt.terms_locked_at ?? '') <= (receipt.clicked_at ?? ''))
      assert.equal(receipt.lines[0], {
        ...{ title: 'Kurta', product_id: PRODUCT, quantity: 1, unit_price: '16000.00', gross: '16000.00' },
        ...{ discount: '0.00', tax: '0.00', net: '16000.00', counted: true, why_not: null },
      })
      assert.equal([outcome.billing_cycle?.state, outcome.payouts], ['open', []])
    }
    const { receipt } = merchants
    assert.equal(
      [receipt.platform_fee, receipt.platform_fee_rate, merchants.platform_fee],
      ['200.00', 10, '200.00'],
    )
    assert.equal(pluck(receipt.lines, 'why_not'), [null, 'other_product', 'gift_card'])
    assert.equal([receipt.lines_left_out, creators.receipt.lines_left_out], [0, 2])
    assert.is(creators.receipt.lines.length, 1)
    const { creator, click } = await explainSale(market.platform, 'all', id)
    assert.is(click?.link.locked_at, trade.link.created_at)
    assert.is(creator?.email, `${trade.creator.userId}@example.com`, 'operators see addresses')
  })

  it('goes on to the invoice for the merchant, and to every payout for both, with the terms of its approval', async () => {
    const { platform, clock } = market
    clock.set(new Date((await openCycleOf(platform, trade.shop)).period_end).toISOString())
    await closeDueCycles(platform)
    market.processor.answers = ['refuse']
    await market.drainUntilIdle()
    const { cycle: refused } = await explainSale(platform, 'all', id)
    assert.equal([refused?.state, refused?.processor_invoice_id], ['closed', null])
    assert.match(refused?.invoiceProblem ?? '', /no such account/)
    const order = await market.sell(trade.shop, trade.link, 1_600_000)
    await market.earn(trade.shop, trade.link, 1_000_000)
    id = (await findOrder(platform, JSON.parse(order).name, null))[0]?.id ?? ''
    for (const word of ['failed', 'confirmed'] as const) {
      clock.pass(MINUTE)
      await market.payOut(word)
    }
    const { merchants, creators } = await explained()
    const { billing_cycle: cycle, payouts } = merchants.outcome
    assert.equal(
      [cycle?.state, cycle?.creator_share, cycle?.amount_due, cycle?.credit_total],
      ['charged', '3250.00', '3575.00', '0.00'],
    )
    assert.ok(cycle?.processor_invoice_id && cycle.processor_payment_reference && cycle.charged_at)
    assert.equal(pluckAll(payouts, 'state', 'share', 'replaces_payout_id'), [
      ['failed', '3250.00', null],
      ['paid', '3250.00', payouts[0]?.id],
    ])
    assert.equal(pluckAll(creators.outcome.payouts, 'state', 'amount', 'failure_reason'), [
      ['failed', '3250.00', 'returned by the bank'],
      ['paid', '3250.00', null],
    ])
  })

  it('keeps from each what is private to the other, and the buyer from both', async () => {
    const { shop, creator } = trade
    const ofMerchant = [`${shop.merchantId}@`, 'platform_fee', 'amount_due', 'credit_total', 'inv_', 'pay_']
    const ofCreator = [`${creator.userId}@`, 'PK36', '6702', 'A CREATOR', 'returned by the bank', 'po_']
    const ofBuyer = ['bushra.buyer', 'Buyerova', '923331234567']
    const sold = (await findOrder(market.platform, '42', null))[0]?.id ?? ''
    for (const sale of [sold, id]) {
      const { merchants, creators } = await explained(sale)
      for (const [shown, texts] of [
        [merchants, [...ofCreator, ...ofBuyer]],
        [creators, [...ofMerchant, ...ofBuyer, 'Secret gift', 'Voucher', '900.00', 'Bushra']],
      ] as const)
        for (const text of texts) assert.not(JSON.stringify(shown).includes(text), text)
    }
  })

  it('of a sale that was rejected ends with the reason; no one else’s link is named in it', async () => {
    const other = await market.addShop('Other')
    await market.sell(other, trade.link, 100_000)
    const [sale] = (await salesFor(other.actor).list({})).items
    const rejected = await salesFor(other.actor).get({ id: sale?.id ?? '' })
    const { rejection_reason, creator, offer, receipt, outcome } = rejected
    assert.equal(
      [rejection_reason, creator, offer, receipt.clicked_at, receipt.product_ids],
      ['other_merchants_link', null, null, null, null],
    )
    assert.equal(outcome, { billing_cycle: null, payouts: [] })
    assert.not(JSON.stringify(rejected).includes(trade.creator.userId))
    assert.is(await outcomeOf(salesFor(trade.creator).get({ id: sale?.id ?? '' })), 'not_found')
  })

  it('is found by its order’s id before its name, also in a removed store by its domain', async () => {
    const { platform, clock } = market
    const [one, two] = [await market.addShop(), await market.addShop()]
    const order = (name: string, id: string) => orderBody({ price: 100, createdAt: clock.now(), name, id })
    await market.deliver(one, order('#5001', '900001'))
    await market.deliver(one, order('900001', '900002'))
    await market.deliver(two, order('#5001', '900001'))
    await market.drainUntilIdle()
    const meant = async (text: string, store: string | null = null) =>
      pluckAll(await findOrder(platform, text, store), 'store_id', 'order_id')
    const domain = `s${two.merchantId}.myshopify.com`
    assert.equal(await meant('900001', one.storeId), [[one.storeId, '900001']])
    assert.equal((await meant('5001')).length, 2)
    assert.equal(await meant(' #5001 ', domain.toUpperCase()), [[two.storeId, '900001']])
    await removeStore(platform, two.merchantId, two.storeId)
    const [sale] = await findOrder(platform, '#5001', domain)
    assert.is(sale?.shopDomain, domain)
    assert.equal(await meant(sale?.id ?? ''), [[two.storeId, '900001']])
    // Another merchant's claim on the domain has orders of its own, by the same names.
    const { userId: squatter } = await addUser(platform, 'merchant')
    const claim = { shop_domain: domain, webhook_secret: 'secret-of-squatter' }
    const { id: storeId } = await connectStore(platform, squatter, claim)
    await market.deliver({ ...one, storeId, merchantId: squatter }, order('#5001', '900001'))
    await market.drainUntilIdle()
    assert.is((await meant('#5001', domain)).length, 2)
    assert.equal(await meant('#5001', storeId), [[storeId, '900001']])
    for (const [text, store] of [
      ['nothing', null],
      ['#5001', 'unknown.pk'],
      [sale?.id ?? '', one.storeId],
    ] as const)
      assert.is(await outcomeOf(findOrder(platform, text, store)), 'not_found')
    assert.is(await outcomeOf(explainSale(platform, 'all', platform.ids.next())), 'not_found')
  })

  it.run()
}
