import * as assert from 'uvu/assert'
import { openFlags } from '../flags/flags.service.ts'
import { removeOldBodies } from '../inbox/inbox.service.ts'
import { setCoupon } from '../links/coupons.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import { setOfferStatus } from '../offers/offers.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { storesRouter } from '../stores/stores.procedures.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Shop } from '../test/testkit/marketplace.ts'
import { type OrderChanges, orderBody } from '../test/testkit/orders.ts'
import { requestOf, setSuspended } from '../test/testkit/people.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { DAY, HOUR, MINUTE } from '../test/testkit/testbed.ts'
import { salesRouter } from './sales.procedures.ts'

interface Context {
  shop: Shop
  sana: Actor
  bilal: Actor
  /** Sana's, at 12.5 %, with the code SANA10. */
  link: LinkRecord
  /** Bilal's, at 10 %, with the code BILAL10. */
  other: LinkRecord
  /** Bilal's, at 10 %, for the product 5 only, with the code NARROW5. */
  narrow: LinkRecord
  give(link: LinkRecord, code: string | null): Promise<unknown>
  /** Reports such an order of now; answers the newest sale. */
  send(order: Partial<OrderChanges>, changes?: object, topic?: string): ReturnType<typeof latest>
  /** The same of one line, with a good click. */
  report(changes: object, order?: Partial<OrderChanges>): ReturnType<typeof latest>
  /** Reports an order with these codes; answers the creator, or why there is none. */
  credited(codes: string[], order?: Partial<OrderChanges>): Promise<string | null>
}

type Changes = Record<string, unknown>

const as = (platform: Platform, actor: Actor) => salesRouter.createCaller(requestOf(platform, actor))

async function latest(platform: Platform, { actor }: Shop) {
  const [sale] = (await as(platform, actor).list({ limit: 1 })).items
  if (!sale) throw new Error('no sale')
  const { id, acceptance_status: status, rejection_reason: reason, attributed_by: by } = sale
  return {
    id,
    status,
    reason,
    by,
    creator: sale.creator_id,
    net: sale.net_amount,
    commission: sale.commission,
  }
}

/** An order of Rs 1,000 with these changes of its body. */
function bodyOf(order: Partial<OrderChanges> & { createdAt: number }, changes: object): string {
  return JSON.stringify({ ...JSON.parse(orderBody({ price: 100_000, ...order })), ...changes })
}

const LINE = { id: 71, product_id: 8_123_456_789_012, title: 'Kurta', quantity: 1, price: '1000.00' }
const NO_PRODUCT = { product_id: null, variant_id: null, product_exists: false }
const TIP = { ...NO_PRODUCT, title: 'Tip', quantity: 1, price: '500.00', tip_payment_gateway: 'manual' }
const FEE = { ...NO_PRODUCT, title: 'Cash on Delivery fee', quantity: 1, price: '200.00' }
const discrepancy = (amount: string) => [
  { refund_line_items: [], order_adjustments: [{ amount, kind: 'refund_discrepancy' }] },
]

for (const { it } of marketSuites<Context>('orders as stores send them', { verify: true })) {
  it.before.each(async (context) => {
    const { market, platform } = context
    const shop = await market.addShop()
    const [sana, bilal] = [await market.addCreator('Sana'), await market.addCreator('Bilal')]
    const link = await market.addLink(shop, sana)
    const narrow = await market.addLink(shop, bilal, { commission_rate: 1000, product_ids: ['5'] })
    const other = await market.addLink(shop, bilal, { commission_rate: 1000 })
    const give = (to: LinkRecord, code: string | null) =>
      setCoupon(platform, { slug: to.slug, actor: shop.merchantId, code })
    await give(link, 'SANA10')
    await give(other, 'BILAL10')
    await give(narrow, 'NARROW5')
    await market.after(MINUTE)
    const send = async (order: Partial<OrderChanges>, changes: object = {}, topic = 'orders/paid') => {
      await market.deliver(shop, bodyOf({ createdAt: market.clock.now(), ...order }, changes), { topic })
      await market.after(MINUTE)
      return latest(platform, shop)
    }
    const report = async (changes: object, order: Partial<OrderChanges> = {}) =>
      send({ click: await market.click(link), ...order }, { line_items: [LINE], ...changes })
    const credited = async (codes: string[], order: Partial<OrderChanges> = {}) => {
      const { reason, creator } = await send({ codes, ...order })
      return reason ?? creator
    }
    Object.assign(context, { shop, sana, bilal, link, other, narrow, give, send, report, credited })
  })

  const flagsAbout = async (platform: Platform, kind: 'order_unclear' | 'order_changed') =>
    (await openFlags(platform.database.reader, kind)).flatMap(
      ({ evidence }) => JSON.parse(evidence ?? '{}').latest_orders as Changes[],
    )

  it('counts goods only, at what was paid for them, and asks people where the body does not tell', async (context) => {
    const { platform, report } = context
    const older = { ...LINE, id: 72, fulfillable_quantity: 0 }
    const returned = [{ refund_line_items: [{ line_item_id: 72, quantity: 1 }] }]
    const custom = { line_items: [LINE, { ...FEE, title: 'Stitching' }], source_name: 'shopify_draft_order' }
    const takenOff = { line_items: [LINE, older], subtotal_price: '1000.00' }
    const partly = { financial_status: 'partially_refunded' }
    const paidBack = {
      ...{ ...partly, line_items: [{ ...LINE, price: '3000.00' }] },
      ...{ refunds: discrepancy('-1000.00'), current_total_price: '2000.00' },
    }
    const shipping = { total_discounts: '300.00', shipping_lines: [{ price: '300.00' }] }
    const rows: [what: string, changes: Changes, net: string, unclear?: string[]][] = [
      ['a tip', { line_items: [LINE, TIP], total_tip_received: '500.00' }, '1000.00'],
      ['a fee', { line_items: [LINE, FEE] }, '1000.00'],
      ['a custom item of staff', custom, '1200.00'],
      ['an item taken off, in an older API version', { ...takenOff, refunds: returned }, '1000.00'],
      ['an item taken off that only the subtotal shows', takenOff, '2000.00', ['subtotal']],
      ['an amount paid back', paidBack, '2000.00'],
      ['a discount of the line only', { line_items: [{ ...LINE, total_discount: '300.00' }] }, '700.00'],
      ['a discount of the order only', { total_discounts: '300.00' }, '700.00'],
      ['a discount that may be on shipping', shipping, '1000.00', ['discount']],
      ['a refund that is not shown', partly, '1000.00', ['refund']],
    ]
    const expected: string[][] = []
    for (const [what, changes, net, unclear] of rows) {
      const sale = await report(changes)
      assert.equal([sale.status, sale.net], ['accepted', net], what)
      const { receipt } = await as(platform, context.shop.actor).get({ id: sale.id })
      assert.equal(receipt.unclear, unclear, what)
      if (unclear) expected.push(unclear)
    }
    const flagged = await flagsAbout(platform, 'order_unclear')
    assert.equal(pluck(flagged, 'unclear'), expected)
  })

  it('shows on the receipt what was left out, spread, repaid', async ({ platform, shop, sana, report }) => {
    const sale = await report({
      line_items: [LINE, { ...LINE, id: 72 }, TIP, FEE],
      total_discounts: '500.00',
      subtotal_price: '1700.00',
      refunds: discrepancy('-220.00'),
    })
    const { receipt } = await as(platform, shop.actor).get({ id: sale.id })
    assert.equal([receipt.discount_spread, receipt.amount_refunded], ['500.00', '220.00'])
    // Discount: 500 × 1000 ÷ 2200. Refund: 220 × 772.73 ÷ 2200, with the tip among what was paid.
    assert.equal(pluckAll(receipt.lines, 'title', 'discount', 'refunded', 'net', 'why_not'), [
      ['Kurta', '227.27', '77.27', '695.46', null],
      ['Kurta', '227.28', '77.27', '695.45', null],
      ['Tip', '0.00', '50.00', '450.00', 'tip'],
      ['Cash on Delivery fee', '45.45', '15.46', '139.09', 'fee'],
    ])
    const seen = (await as(platform, sana).get({ id: sale.id })).receipt
    assert.equal([seen.lines.length, seen.lines_left_out, seen.amount_refunded], [2, 2, '220.00'])
    assert.is(sale.net, '1390.91')
  })

  it('credits the newest good click of the first place', async ({ market, link, shop, report }) => {
    const other = await market.addLink(shop, await market.addCreator(), { commission_rate: 1000 })
    const old = await market.click(other)
    market.clock.pass(DAY)
    const good = await market.click(link)
    const noted = (...values: string[]) => values.map((value) => ({ name: 'aff_ref', value }))
    for (const changes of [
      { note_attributes: noted(old, good) },
      { note_attributes: noted(good, old) },
      { note_attributes: [{ name: 'AFF_REF', value: good }], landing_site: `/?aff_ref=${old}` },
    ]) {
      const sale = await report({ landing_site: null, ...changes })
      assert.equal([sale.status, sale.commission], ['accepted', '125.00'], JSON.stringify(changes))
    }
  })

  it('leaves the order to a click that can earn when the code cannot', async (context) => {
    const { platform, shop, bilal, sana, report } = context
    const codes = ['NARROW5']
    const { id, ...sale } = await report({}, { codes })
    assert.equal([sale.by, sale.reason, sale.commission], ['click', null, '125.00'])
    const check = (await as(platform, shop.actor).get({ id })).receipt.checks.find(
      ({ name }) => name === 'coupon_not_in_force',
    )
    assert.equal([check?.saw.passed_over, check?.saw.because], ['NARROW5', 'product_not_in_offer'])
    const five = { line_items: [{ ...LINE, product_id: 5 }] }
    assert.is((await report(five, { codes })).commission, '100.00', 'its product is in the cart')
    await setSuspended(platform, bilal.userId, true)
    assert.is((await report(five, { codes })).commission, '125.00')
    await setSuspended(platform, bilal.userId, false)
    await setSuspended(platform, sana.userId, true)
    assert.is((await report({}, { codes })).reason, 'product_not_in_offer', 'neither can earn')
  })

  it('asks people about a product that was deleted, unless an earlier report names it', async (context) => {
    const { market, platform, narrow, send } = context
    const click = await market.click(narrow)
    const five = { ...LINE, product_id: 5 }
    const gone = { line_items: [{ ...LINE, ...NO_PRODUCT, sku: 'K-1' }] }
    const unknown = await send({ click }, gone)
    assert.equal([unknown.status, unknown.reason], ['rejected', 'product_unknown'])
    assert.equal(pluck(await flagsAbout(platform, 'order_unclear'), 'unclear'), [['product']])
    const order = { id: '7200000000001', name: '#7', click, createdAt: market.clock.now() }
    const unpaid = await send({ ...order, financialStatus: 'pending' }, { line_items: [five] })
    assert.is(unpaid.reason, 'not_paid')
    const paid = await send(order, gone)
    assert.equal([paid.status, paid.commission], ['accepted', '100.00'])
    assert.is((await flagsAbout(platform, 'order_unclear')).length, 1)
    const some = await send({ click }, { line_items: [five, { ...LINE, ...NO_PRODUCT, sku: 'K-2' }] })
    assert.equal([some.status, some.commission], ['accepted', '100.00'])
    assert.equal((await flagsAbout(platform, 'order_unclear')).at(-1)?.unclear, ['product'])
  })

  it('knows a product that was deleted from the order as it was placed, as long as that body is kept', async (context) => {
    const { market, platform, shop, narrow } = context
    const click = await market.click(narrow)
    const life = (number: number) => {
      const order = { id: `720000000010${number}`, name: `#${number}`, click, createdAt: market.clock.now() }
      return {
        placed: bodyOf(
          { ...order, financialStatus: 'pending' },
          { line_items: [{ ...LINE, product_id: 5 }] },
        ),
        paid: bodyOf(order, { line_items: [{ ...LINE, ...NO_PRODUCT, sku: 'K-1' }] }),
      }
    }
    const place = ({ placed }: { placed: string }) => market.deliver(shop, placed, { topic: 'orders/create' })
    const pay = async ({ paid }: { paid: string }) => {
      await market.deliver(shop, paid)
      await market.after(MINUTE)
      return latest(platform, shop)
    }
    const first = life(1)
    await place(first)
    await market.after(MINUTE)
    const sale = await pay(first)
    assert.equal([sale.status, sale.commission], ['accepted', '100.00'])
    const { receipt } = await as(platform, shop.actor).get({ id: sale.id })
    assert.equal(pluckAll(receipt.lines, 'product_id', 'counted'), [['5', true]])
    await market.deliver(shop, first.paid)
    const atOnce = life(2)
    await place(atOnce)
    const second = await pay(atOnce)
    assert.equal([second.status, second.commission], ['accepted', '100.00'])
    assert.equal(await flagsAbout(platform, 'order_changed'), [], 'the product is the same')
    const old = life(3)
    await place(old)
    await market.after(platform.config.RAW_EVENT_RETENTION_DAYS * DAY + 1)
    await removeOldBodies(platform)
    assert.is((await pay(old)).reason, 'product_unknown')
  })

  it('flags an accepted order that is reported again as refunded, and changes nothing', async (context) => {
    const { market, platform, link, send } = context
    const click = await market.click(link)
    const order = { id: '7200000000002', name: '#8', click, createdAt: market.clock.now() }
    const changed = async () =>
      (await flagsAbout(platform, 'order_changed')).map(({ changed, sale_id }) => [changed, sale_id])
    const before = await send(order)
    await send(order)
    assert.equal(await changed(), [])
    const refunded = { ...order, financialStatus: 'refunded' }
    assert.equal(await send(refunded), before)
    assert.equal(await changed(), [[['refunded'], before.id]])
    await send(refunded, {}, 'orders/updated')
    assert.is((await changed()).length, 1, 'it is flagged already')
    for (const financialStatus of ['refunded', 'voided'])
      await send({ ...order, id: '7200000000003', name: '#9', financialStatus })
    assert.is((await changed()).length, 1, 'nothing was accepted')
  })

  it('counts one order once, also under another name of its shop', async (context) => {
    const { market, platform, shop, link } = context
    const click = await market.click(link)
    const order = { id: '7200000000004', name: '#10', click, createdAt: market.clock.now(), price: 100_000 }
    await market.deliver(shop, orderBody(order))
    await market.after(MINUTE)
    const stores = storesRouter.createCaller(requestOf(platform, shop.actor))
    const second = await stores.connect({
      shop_domain: 'kurta-new.myshopify.com',
      webhook_secret: 'secret-new',
    })
    const sameShop = { ...shop, storeId: second.id }
    await market.deliver(sameShop, orderBody(order))
    await market.deliver(sameShop, orderBody({ ...order, financialStatus: 'refunded' }))
    const fresh = { ...order, id: '7200000000005', name: '#11' }
    for (const one of [sameShop, shop]) await market.deliver(one, orderBody(fresh))
    await market.after(MINUTE)
    const sales = (await as(platform, shop.actor).list({})).items
    assert.equal(sales.map(({ order_name }) => order_name).sort(), ['#10', '#11'])
    assert.is((await flagsAbout(platform, 'order_changed')).length, 1)
  })

  it("says in the store's status that its webhook is for another event, or sends XML", async (context) => {
    const { market, platform, shop } = context
    const stores = storesRouter.createCaller(requestOf(platform, shop.actor))
    const statusAfter = async (body: string, topic?: string) => {
      await market.deliver(shop, body, topic === undefined ? {} : { topic })
      await market.after(MINUTE)
      return (await stores.get({ id: shop.storeId })).status
    }
    const order = () => orderBody({ createdAt: market.clock.now(), price: 100_000 })
    assert.is(await statusAfter(order(), 'orders/create'), 'no_order_payment')
    assert.is(await statusAfter('<?xml version="1.0"?><order/>'), 'xml')
    assert.is(await statusAfter(order()), 'receiving')
    assert.is(await statusAfter(order(), 'orders/create'), 'receiving')
  })

  it('credits the code before the click, and shows both on the receipt', async (context) => {
    const { platform, market, shop, sana, bilal, link, other, send } = context
    const click = await market.click(link)
    const { id, ...sale } = await send({ click, codes: ['WELCOME10', 'bilal10'] })
    assert.equal(sale, {
      ...{ status: 'accepted', reason: null, by: 'coupon', creator: bilal.userId },
      ...{ net: '1000.00', commission: '100.00' },
    })
    const { receipt } = await as(platform, shop.actor).get({ id })
    assert.equal([receipt.attributed_by, receipt.clicked_link_slug], ['coupon', link.slug])
    assert.equal(pluckAll(receipt.coupons, 'code', 'affiliate_link_slug', 'in_force'), [
      ['BILAL10', other.slug, true],
    ])
    const seen = (await as(platform, bilal).get({ id })).receipt
    assert.is(seen.coupons.length, 1)
    assert.is(seen.clicked_at, null, "another creator's click is not Bilal's business")
    assert.equal((await as(platform, sana).list({})).items, [])
  })

  it('credits the first code in force, without any click; a shop-wide code is none', async (context) => {
    const { market, sana, bilal, link, other, give, send, credited } = context
    assert.is((await send({ codes: [' Sana10 '] })).commission, '125.00')
    assert.is(await credited(['SANA10', 'BILAL10']), sana.userId)
    assert.is(await credited(['BILAL10', 'SANA10']), bilal.userId)
    await give(other, null)
    assert.is(await credited(['BILAL10', 'SANA10']), sana.userId)
    assert.is(await credited(['WELCOME10']), 'no_tracking_reference')
    assert.is((await send({ click: await market.click(link), codes: ['WELCOME10'] })).by, 'click')
  })

  it('goes by the time of the order', async ({ market, sana, bilal, link, other, give, credited }) => {
    const during = { createdAt: market.clock.now() }
    await market.after(MINUTE)
    await give(link, null)
    assert.is(await credited(['SANA10'], during), sana.userId)
    assert.is(await credited(['SANA10'], { createdAt: during.createdAt - HOUR }), 'coupon_not_in_force')
    assert.is(await credited(['SANA10']), 'coupon_not_in_force')
    await give(other, 'SANA10')
    await market.after(MINUTE)
    assert.is(await credited(['SANA10'], during), sana.userId, 'as it was then')
    assert.is(await credited(['SANA10']), bilal.userId, 'reused by another link')
  })

  it('earns in the very second in which code and offer began', async (context) => {
    const { market, shop, sana, give, credited } = context
    await market.after(1000 - (market.clock.now() % 1000) + 700)
    const createdAt = market.clock.now() - 700
    await give(await market.addLink(shop, sana), 'SANA20')
    assert.is(await credited(['SANA20'], { createdAt }), sana.userId)
    assert.is(await credited(['SANA20'], { createdAt: createdAt - 1 }), 'coupon_not_in_force')
  })

  it('needs a live offer at the time of the order', async (context) => {
    const { market, platform, shop, sana, link, credited } = context
    const moments = [market.clock.now()]
    for (const status of ['paused', 'live'] as const) {
      await market.after(MINUTE)
      await setOfferStatus(platform, shop.merchantId, link.offer_id, status)
      await market.after(MINUTE)
      moments.push(market.clock.now())
    }
    const outcomes: (string | null)[] = []
    for (const createdAt of moments) outcomes.push(await credited(['SANA10'], { createdAt }))
    assert.equal(outcomes, [sana.userId, 'coupon_not_in_force', sana.userId])
  })

  it("keeps a sale of a store whose clock is ahead when code and offer change before the order's time", async (context) => {
    const { market, platform, shop, sana, link, give, credited } = context
    assert.is(await credited(['SANA10'], { createdAt: market.clock.now() + 3 * MINUTE }), sana.userId)
    await setOfferStatus(platform, shop.merchantId, link.offer_id, 'paused')
    await give(link, null)
    assert.is(await credited(['SANA10']), 'coupon_not_in_force')
    await market.after(HOUR)
  })

  it("is refused to suspended parties and the creator as buyer; another merchant's code is none", async (context) => {
    const { market, platform, shop, sana, credited } = context
    assert.is(await credited(['SANA10'], { email: `${sana.userId}@example.com` }), 'self_purchase')
    await setSuspended(platform, sana.userId, true)
    assert.is(await credited(['SANA10']), 'creator_suspended')
    const elsewhere = await market.addTrade()
    const actor = elsewhere.shop.merchantId
    await setCoupon(platform, { slug: elsewhere.link.slug, actor, code: 'FOREIGN' })
    assert.is(await credited(['FOREIGN']), 'no_tracking_reference')
    await setSuspended(platform, shop.merchantId, true)
    assert.is(await credited(['BILAL10']), 'merchant_suspended')
  })

  it.run()
}
