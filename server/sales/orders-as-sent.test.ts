import * as assert from 'uvu/assert'
import { openFlags } from '../flags/flags.service.ts'
import { removeOldBodies } from '../inbox/inbox.service.ts'
import { setCoupon } from '../links/coupons.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { storesRouter } from '../stores/stores.procedures.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Shop } from '../test/testkit/marketplace.ts'
import { type OrderChanges, orderBody } from '../test/testkit/orders.ts'
import { requestOf, setSuspended } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import { salesRouter } from './sales.procedures.ts'

interface Context {
  shop: Shop
  sana: Actor
  bilal: Actor
  /** Sana's, at 12.5 %, with the code SANA10. */
  link: LinkRecord
  /** Bilal's, at 10 %, for the product 5 only, with the code BILAL10. */
  narrow: LinkRecord
  /** Reports an order of one line of Rs 1,000 with a good click, changed; answers what it became. */
  report(changes: object, order?: Partial<OrderChanges>): Promise<Became>
  latest(): Promise<Became>
}

interface Became {
  id: string
  status: string
  reason: string | null
  by: string | null
  net: string
  commission: string
}

type Changes = Record<string, unknown>

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
    for (const [to, code] of [
      [link, 'SANA10'],
      [narrow, 'BILAL10'],
    ] as const)
      await setCoupon(platform, { slug: to.slug, actor: shop.merchantId, code })
    await market.after(MINUTE)
    const latest = async () => {
      const [sale] = (await as(platform, shop.actor).list({ limit: 1 })).items
      if (!sale) throw new Error('no sale')
      const { id, rejection_reason: reason, attributed_by: by, net_amount: net, commission } = sale
      return { id, status: sale.acceptance_status, reason, by, net, commission }
    }
    const report = async (changes: object, order: Partial<OrderChanges> = {}) => {
      const click = await market.click(link)
      const body = JSON.parse(orderBody({ createdAt: market.clock.now(), price: 100_000, click, ...order }))
      await market.deliver(shop, JSON.stringify({ ...body, line_items: [LINE], ...changes }))
      await market.after(MINUTE)
      return latest()
    }
    Object.assign(context, { shop, sana, bilal, link, narrow, report, latest })
  })

  const as = (platform: Platform, actor: Actor) => salesRouter.createCaller(requestOf(platform, actor))
  const flagsAbout = async (platform: Platform, kind: 'order_unclear' | 'order_changed') =>
    (await openFlags(platform.database.reader, kind)).flatMap(
      ({ evidence }) => JSON.parse(evidence ?? '{}').latest_orders as Changes[],
    )

  it('counts goods only, at what was paid for them, and asks people where the body does not tell', async (context) => {
    const { platform, report } = context
    const older = { ...LINE, id: 72, fulfillable_quantity: 0 }
    const returned = [{ refund_line_items: [{ line_item_id: 72, quantity: 1 }] }]
    const rows: [what: string, changes: Changes, net: string, unclear?: string[]][] = [
      ['a tip', { line_items: [LINE, TIP], total_tip_received: '500.00' }, '1000.00'],
      ['a fee', { line_items: [LINE, FEE] }, '1000.00'],
      [
        'a custom item of staff',
        { line_items: [LINE, { ...FEE, title: 'Stitching' }], source_name: 'shopify_draft_order' },
        '1200.00',
      ],
      [
        'an item taken off, in an older API version',
        { line_items: [LINE, older], refunds: returned, subtotal_price: '1000.00' },
        '1000.00',
      ],
      [
        'an item taken off that only the subtotal shows',
        { line_items: [LINE, older], subtotal_price: '1000.00' },
        '2000.00',
        ['subtotal'],
      ],
      [
        'an amount paid back',
        {
          line_items: [{ ...LINE, price: '3000.00' }],
          financial_status: 'partially_refunded',
          refunds: discrepancy('-1000.00'),
          current_total_price: '2000.00',
        },
        '2000.00',
      ],
      ['a discount of the line only', { line_items: [{ ...LINE, total_discount: '300.00' }] }, '700.00'],
      ['a discount of the order only', { total_discounts: '300.00' }, '700.00'],
      [
        'a discount that may be on shipping',
        { total_discounts: '300.00', shipping_lines: [{ price: '300.00' }] },
        '1000.00',
        ['discount'],
      ],
      ['a refund that is not shown', { financial_status: 'partially_refunded' }, '1000.00', ['refund']],
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
    assert.equal(
      receipt.lines.map(({ title, discount, refunded, net, why_not }) => [
        title,
        discount,
        refunded,
        net,
        why_not,
      ]),
      [
        ['Kurta', '227.27', '77.27', '695.46', null],
        ['Kurta', '227.28', '77.27', '695.45', null],
        ['Tip', '0.00', '50.00', '450.00', 'tip'],
        ['Cash on Delivery fee', '45.45', '15.46', '139.09', 'fee'],
      ],
    )
    const seen = (await as(platform, sana).get({ id: sale.id })).receipt
    assert.equal([seen.lines.length, seen.lines_left_out, seen.amount_refunded], [2, 2, '220.00'])
    assert.is(sale.net, '1390.91')
  })

  it('credits the newest good click of the first place', async ({ market, link, shop, report }) => {
    const other = await market.addLink(shop, await market.addCreator(), { commission_rate: 1000 })
    const old = await market.click(other)
    market.clock.pass(DAY)
    const good = await market.click(link)
    const names = [
      { note_attributes: [old, good].map((value) => ({ name: 'aff_ref', value })) },
      { note_attributes: [good, old].map((value) => ({ name: 'aff_ref', value })) },
      { note_attributes: [{ name: 'AFF_REF', value: good }], landing_site: `/?aff_ref=${old}` },
    ]
    for (const changes of names) {
      const sale = await report({ landing_site: null, ...changes })
      assert.equal([sale.status, sale.commission], ['accepted', '125.00'], JSON.stringify(changes))
    }
  })

  it('leaves the order to a click that can earn when the code cannot', async (context) => {
    const { platform, shop, bilal, sana, report } = context
    const codes = ['BILAL10']
    const byClick = async () => {
      const sale = await report({}, { codes })
      assert.equal([sale.by, sale.reason, sale.commission], ['click', null, '125.00'])
      return sale
    }
    const { id } = await byClick()
    const check = (await as(platform, shop.actor).get({ id })).receipt.checks.find(
      ({ name }) => name === 'coupon_not_in_force',
    )
    assert.equal([check?.saw.passed_over, check?.saw.because], ['BILAL10', 'product_not_in_offer'])
    const five = { line_items: [{ ...LINE, product_id: 5 }] }
    assert.is((await report(five, { codes })).commission, '100.00', 'its product is in the cart')
    await setSuspended(platform, bilal.userId, true)
    assert.is((await report(five, { codes })).commission, '125.00')
    await setSuspended(platform, bilal.userId, false)
    await setSuspended(platform, sana.userId, true)
    assert.is((await report({}, { codes })).reason, 'product_not_in_offer', 'neither can earn')
  })

  it('asks people about a product that was deleted, unless an earlier report names it', async (context) => {
    const { market, platform, shop, narrow, latest } = context
    const placed = async (changes: Changes, more: Partial<OrderChanges>) => {
      const order = JSON.parse(orderBody({ createdAt: market.clock.now(), price: 100_000, ...more }))
      await market.deliver(shop, JSON.stringify({ ...order, ...changes }))
      await market.after(MINUTE)
      return latest()
    }
    const click = await market.click(narrow)
    const gone = { line_items: [{ ...LINE, ...NO_PRODUCT, sku: 'K-1' }] }
    const unknown = await placed(gone, { click })
    assert.equal([unknown.status, unknown.reason], ['rejected', 'product_unknown'])
    assert.equal(pluck(await flagsAbout(platform, 'order_unclear'), 'unclear'), [['product']])
    const known = { line_items: [{ ...LINE, product_id: 5 }] }
    const order = { id: '7200000000001', name: '#7', click, createdAt: market.clock.now() }
    assert.is((await placed(known, { ...order, financialStatus: 'pending' })).reason, 'not_paid')
    const paid = await placed(gone, order)
    assert.equal([paid.status, paid.commission], ['accepted', '100.00'])
    assert.is((await flagsAbout(platform, 'order_unclear')).length, 1)
    const beside = {
      line_items: [
        { ...LINE, product_id: 5 },
        { ...LINE, ...NO_PRODUCT, sku: 'K-2' },
      ],
    }
    const some = await placed(beside, { click })
    assert.equal([some.status, some.commission], ['accepted', '100.00'])
    assert.equal((await flagsAbout(platform, 'order_unclear')).at(-1)?.unclear, ['product'])
  })

  it('knows a product that was deleted from the order as it was placed, as long as that body is kept', async (context) => {
    const { market, platform, shop, narrow, latest } = context
    const click = await market.click(narrow)
    const life = (number: number) => {
      const order = { id: `720000000010${number}`, name: `#${number}`, click, createdAt: market.clock.now() }
      const body = (line: object, financialStatus: string) =>
        JSON.stringify({
          ...JSON.parse(orderBody({ ...order, price: 100_000, financialStatus })),
          line_items: [{ ...LINE, ...line }],
        })
      return {
        placed: body({ product_id: 5 }, 'pending'),
        paid: body({ ...NO_PRODUCT, sku: 'K-1' }, 'paid'),
      }
    }
    const create = { topic: 'orders/create' }
    const first = life(1)
    await market.deliver(shop, first.placed, create)
    await market.after(MINUTE)
    await market.deliver(shop, first.paid)
    await market.after(MINUTE)
    const sale = await latest()
    assert.equal([sale.status, sale.commission], ['accepted', '100.00'])
    const { receipt } = await as(platform, shop.actor).get({ id: sale.id })
    assert.equal(
      receipt.lines.map(({ product_id, counted }) => [product_id, counted]),
      [['5', true]],
    )
    await market.deliver(shop, first.paid)
    const atOnce = life(2)
    await market.deliver(shop, atOnce.placed, create)
    await market.deliver(shop, atOnce.paid)
    await market.after(MINUTE)
    assert.equal([(await latest()).status, (await latest()).commission], ['accepted', '100.00'])
    assert.equal(await flagsAbout(platform, 'order_changed'), [], 'the product is the same')
    const old = life(3)
    await market.deliver(shop, old.placed, create)
    await market.after(platform.config.RAW_EVENT_RETENTION_DAYS * DAY + 1)
    await removeOldBodies(platform)
    await market.deliver(shop, old.paid)
    await market.after(MINUTE)
    assert.is((await latest()).reason, 'product_unknown')
  })

  it('flags an accepted order that is reported again as refunded, and changes nothing', async (context) => {
    const { market, platform, shop, link, latest } = context
    const click = await market.click(link)
    const order = { id: '7200000000002', name: '#8', click, createdAt: market.clock.now(), price: 100_000 }
    const send = async (changes: Partial<OrderChanges>) => {
      await market.deliver(shop, orderBody({ ...order, ...changes }))
      await market.after(MINUTE)
    }
    await send({})
    const before = await latest()
    await send({})
    assert.equal(await flagsAbout(platform, 'order_changed'), [])
    await send({ financialStatus: 'refunded' })
    assert.equal(
      (await flagsAbout(platform, 'order_changed')).map(({ changed, sale_id }) => [changed, sale_id]),
      [[['refunded'], before.id]],
    )
    assert.equal(await latest(), before)
    const updated = orderBody({ ...order, financialStatus: 'refunded' })
    await market.deliver(shop, updated, { topic: 'orders/updated' })
    await market.after(MINUTE)
    assert.is((await flagsAbout(platform, 'order_changed')).length, 1, 'it is flagged already')
    await send({ id: '7200000000003', name: '#9', financialStatus: 'refunded' })
    await send({ id: '7200000000003', name: '#9', financialStatus: 'voided' })
    assert.is((await flagsAbout(platform, 'order_changed')).length, 1, 'nothing was accepted')
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

  it.run()
}
