import { readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import type { z } from 'zod'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../fixtures/fill-fixture.ts'
import { formatMoney, parseMoney } from '../../shared/money.ts'
import { percentToBasisPoints } from '../../shared/rates.ts'
import { listSalesInput } from '../../shared/schemas/sales.ts'
import { applyToOffer, decideOnApplication } from '../applications/applications.service.ts'
import { setCoupon } from '../links/coupons.service.ts'
import { endLink } from '../links/end-link.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import type { OwnScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { addLiveOffer } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { cyclesOf, eventsOf, type Marketplace, openFlagsOf, type Shop } from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { outcomeOf, requestOf } from '../test/testkit/people.ts'
import { assertMapped, assertNone, pluck } from '../test/testkit/pluck.ts'
import { rowOf } from '../test/testkit/rows.ts'
import { poisonOrder } from '../test/testkit/tamper.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import type { SaleDecision } from './accept-sale.rule.ts'
import { listSales } from './sale-list.service.ts'
import { salesRouter } from './sales.procedures.ts'

interface ManifestEntry {
  file: string
  order_id: string
  order_name: string
  terms: { commission_rate_percent: number; attribution_window_days: number; product_ids: string[] | null }
  /** Where the net amount depends on the products that a link names. */
  lines?: { product_id: string | null; net: string }[]
  expect: {
    acceptance_status: string
    rejection_reason: string | null
    net_amount: string
    commission: string
    platform_fee: string
  }
}

const FIXTURES = new URL('../../fixtures/', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, FIXTURES), 'utf8')
const manifest: ManifestEntry[] = JSON.parse(read('store-sales.manifest.json'))

interface Context {
  market: Marketplace
  shop: Shop
}

const salesOf = (platform: Platform) =>
  platform.database.reader.selectFrom('sales').selectAll().orderBy('id').execute()

/** One click of a creator of its own on a link with the entry's terms, and the fixture filled with it. */
async function fixtureBody({ market, shop }: Context, entry: ManifestEntry): Promise<string> {
  const creator = await market.addCreator('Sana')
  const rate = percentToBasisPoints(entry.terms.commission_rate_percent)
  const link = await market.addLink(shop, creator, {
    commission_rate: rate ?? 0,
    attribution_window_days: entry.terms.attribution_window_days,
    product_ids: entry.terms.product_ids,
  })
  const coupon = `C${link.slug.toUpperCase()}`
  await setCoupon(market.platform, { slug: link.slug, actor: shop.merchantId, code: coupon })
  return fillFixture(read(`store-sales/${entry.file}`), {
    coupon,
    click: await market.click(link),
    clickAt: market.clock.now(),
    creatorEmail: `${creator.userId}@example.com`,
    productId: FIXTURE_PRODUCT_ID,
  })
}

/** A fixture shows one thing: nothing but its own reason may fail it, save what follows from it. */
function assertShows({ file, expect, lines }: ManifestEntry, { checks, basis_lines }: SaleDecision): void {
  const failed = checks.filter((check) => check.verdict === 'failed').map((check) => check.name)
  const reasons = expect.rejection_reason === null ? [] : [expect.rejection_reason]
  if (expect.rejection_reason?.startsWith('product_')) reasons.push('nothing_payable')
  assert.equal(failed, reasons, file)
  const found = basis_lines.map(({ product_id, net, why_not }) => ({
    product_id: product_id === FIXTURE_PRODUCT_ID ? '{{product_id}}' : product_id,
    net: formatMoney(why_not === null || why_not === 'other_product' ? net : 0),
  }))
  if (lines) assert.equal(found, lines, file)
}

/** Everything of the buyer that stands in a body: e-mail, phone, names and street. */
function buyerData(body: string): string[] {
  const order = JSON.parse(body)
  const people = [order, order.customer, order.billing_address, order.shipping_address].filter(Boolean)
  const fields = ['email', 'contact_email', 'phone', 'first_name', 'last_name', 'address1', 'browser_ip']
  return people.flatMap((person) => fields.map((field) => person[field])).filter((value) => value)
}

for (const { it } of marketSuites<Context>('sales', { settings: { HIGH_COMMISSION_RATE: '100' } })) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
  })

  it('passes over references whose clicks do not count, and says so on the receipt', async (context) => {
    const { market, shop } = context
    const link = await market.addLink(shop, await market.addCreator())
    const other = await market.addShop()
    const otherClick = await market.click(await market.addLink(other, await market.addCreator()))
    const untracked = await market.click(link, false)
    const expired = await market.click(link)
    market.clock.pass(40 * DAY)
    const good = await market.click(link)
    const unknown = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
    const bodyWith = (noted: string[], landed: string) => {
      const order = JSON.parse(orderBody({ price: 100_000, createdAt: market.clock.now() }))
      const note_attributes = noted.map((value) => ({ name: 'aff_ref', value }))
      return JSON.stringify({ ...order, note_attributes, landing_site: `/x?aff_ref=${landed}` })
    }
    const rows: [noted: string[], landed: string, reason: string | null, passedOver: number | undefined][] = [
      [['null'], good, null, 1],
      [['undefined', unknown], good, null, 2],
      [[otherClick], good, null, 1],
      [[expired], good, null, 1],
      [[untracked], good, null, 1],
      [[good], expired, null, undefined],
      [[otherClick], expired, 'outside_attribution_window', 1],
      [['null'], unknown, 'unknown_tracking_reference', undefined],
      [[unknown], otherClick, 'unknown_tracking_reference', undefined],
    ]
    for (const [noted, landed, reason, passedOver] of rows) {
      const body = bodyWith(noted, landed)
      await market.deliver(shop, body)
      await market.drainUntilIdle()
      const sale = (await salesOf(market.platform)).at(-1)
      const facts = JSON.parse(sale?.receipt ?? '{}').facts
      assert.equal(
        [sale?.rejection_reason, facts.order.references_passed_over],
        [reason, passedOver],
        `${noted} ${landed}`,
      )
      // The same report again changes nothing, and is not taken for another one.
      await market.deliver(shop, body)
      await market.drainUntilIdle()
    }
    assertNone(await openFlagsOf(market.platform), (flag) => flag.startsWith('order_changed'))
    await market.verify()
  })

  it('makes of every fixture the sale that the manifest says, once, and keeps nothing of the buyer', async (context) => {
    const { market, shop } = context
    const bodies = new Map<string, string>()
    for (const entry of manifest) bodies.set(entry.order_id, await fixtureBody(context, entry))
    for (const body of bodies.values()) await market.deliver(shop, body)
    await market.drainUntilIdle()
    const sales = await salesOf(market.platform)
    const figures = sales.map((sale) => ({
      order_id: sale.order_id,
      order_name: sale.order_name,
      acceptance_status: sale.acceptance_status,
      rejection_reason: sale.rejection_reason,
      net_amount: formatMoney(sale.net_amount),
      commission: formatMoney(sale.commission),
      platform_fee: formatMoney(sale.platform_fee),
    }))
    const expected = manifest.map(({ order_id, order_name, expect }) => ({ order_id, order_name, ...expect }))
    assert.equal(figures, expected)
    for (const [index, entry] of manifest.entries())
      assertShows(entry, JSON.parse(sales[index]?.receipt ?? '').decision)
    const [cycle] = await cyclesOf(market.platform, shop.merchantId)
    const accepted = manifest.filter(({ expect }) => expect.acceptance_status === 'accepted')
    const sum = (key: 'commission' | 'platform_fee') =>
      accepted.reduce((total, { expect }) => total + (parseMoney(expect[key]) ?? Number.NaN), 0)
    assert.equal(
      [cycle?.sales_count, cycle?.commission_total, cycle?.fee_total],
      [accepted.length, sum('commission'), sum('platform_fee')],
    )
    for (const sale of sales) {
      const kept = JSON.stringify({ ...sale, order_id: null }).toLowerCase()
      const words = buyerData(bodies.get(sale.order_id) ?? '')
      for (const word of words)
        assert.not.ok(kept.includes(word.toLowerCase()), `${sale.order_name} keeps ${word}`)
    }
    assert.ok([...bodies.values()].some((body) => buyerData(body).length >= 5))
    await market.verify()

    for (const body of bodies.values()) await market.deliver(shop, body)
    await market.drainUntilIdle()
    assert.equal(await salesOf(market.platform), sales)
    const events = await eventsOf(market.platform)
    assert.equal(pluck(events, 'state'), [...manifest.map(() => 'done'), ...manifest.map(() => 'ignored')])
    await market.verify()
  })

  it('makes one sale of an order that comes twice within one batch', async ({ market, shop }) => {
    const link = await market.addLink(shop, await market.addCreator())
    const body = await market.order(shop, link, 100_000)
    await market.deliver(shop, body)
    await market.order(shop, link, 200_000)
    await market.drainUntilIdle()
    const sales = await salesOf(market.platform)
    assert.equal(pluck(sales, 'commission'), [12_500, 25_000])
    const events = await eventsOf(market.platform)
    assert.equal(pluck(events, 'state'), ['done', 'ignored', 'done'])
    assert.equal(JSON.parse(events[0]?.result ?? '{}'), {
      sale_id: sales[0]?.id,
      acceptance_status: 'accepted',
    })
    await market.verify()
  })

  it('lists sales with the names of their parts, filtered by each field', async ({ market, shop }) => {
    const [sana, bilal] = [await market.addCreator('Sana'), await market.addCreator('Bilal')]
    const [hers, his] = [
      await market.addLink(shop, sana, { title: 'Lamp' }),
      await market.addLink(shop, bilal, { title: 'Kurta' }),
    ]
    await market.order(shop, hers, 100_000, { name: '#1', id: '101' })
    await market.order(shop, his, 100_000, { name: '#2', id: '102' })
    await market.deliver(
      shop,
      orderBody({ price: 100_000, createdAt: market.clock.now(), name: '#3', id: '103' }),
    )
    await market.drainUntilIdle()
    const { shop_domain } = await rowOf(market.platform, 'stores', { id: shop.storeId })
    const list = async (actor: Actor, input: z.input<typeof listSalesInput>) =>
      (await salesRouter.createCaller(requestOf(market.platform, actor)).list(input)).items
    const seen = await list(shop.actor, {})
    assert.equal(
      seen.map(({ order_name, offer, creator, store, rejection_reason }) => ({
        order_name,
        offer,
        creator,
        store,
        rejection_reason,
      })),
      [
        { order_name: '#3', offer: null, creator: null, rejection_reason: 'no_tracking_reference' },
        {
          order_name: '#2',
          offer: { id: his.offer_id, title: 'Kurta' },
          creator: { id: bilal.userId, display_name: 'Bilal' },
          rejection_reason: null,
        },
        {
          order_name: '#1',
          offer: { id: hers.offer_id, title: 'Lamp' },
          creator: { id: sana.userId, display_name: 'Sana' },
          rejection_reason: null,
        },
      ].map((sale) => ({ ...sale, store: { id: shop.storeId, shop_domain } })),
    )
    for (const [filter, orders] of [
      [{ order_name: '#2' }, ['#2']],
      [{ order_id: '101' }, ['#1']],
      [{ creator_id: sana.userId }, ['#1']],
      [{ affiliate_link_slug: his.slug.toUpperCase() }, ['#2']],
      [{ store_id: shop.storeId }, ['#3', '#2', '#1']],
      [{ store_id: sana.userId }, []],
      [{ rejection_reason: 'no_tracking_reference' }, ['#3']],
      [{ rejection_reason: 'not_paid' }, []],
      [{ creator_id: sana.userId, order_name: '#2' }, []],
      [{ store_id: shop.storeId, order_name: '#2' }, ['#2']],
      [{ affiliate_link_slug: 'unknown' }, []],
      [{ billing_cycle_id: seen[1]?.billing_cycle_id ?? '' }, ['#2', '#1']],
      [{ billing_cycle_id: shop.storeId }, []],
    ] as const) {
      const found = await list(shop.actor, filter)
      assertMapped(found, (sale) => sale.order_name, orders, JSON.stringify(filter))
    }
    assert.equal((await list(sana, { creator_id: bilal.userId })).length, 0)
    assert.equal(pluck(await list(sana, {}), 'order_name'), ['#1'])
    const nonsense = salesRouter
      .createCaller(requestOf(market.platform, sana))
      .list({ rejection_reason: 'bad luck' as never })
    assert.is(await outcomeOf(nonsense), 'validation_failed')
  })

  it('reads windows for filters without an index, and leads on to the next one', async ({ market, shop }) => {
    const [sana, bilal] = [await market.addCreator('Sana'), await market.addCreator('Bilal')]
    const [hers, his] = [await market.addLink(shop, sana), await market.addLink(shop, bilal)]
    for (const link of [hers, his, his, his, hers, his]) await market.order(shop, link, 100_000)
    await market.drainUntilIdle()
    const pagesOf = async (scope: OwnScope, filter: object, limit: number) => {
      const pages: number[] = []
      let cursor: string | undefined
      do {
        const query = listSalesInput.parse({ ...filter, limit, cursor })
        const page = await listSales(market.platform, scope, query, 2)
        pages.push(page.items.length)
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
      return pages
    }
    const scope = { merchantId: shop.merchantId }
    assert.equal(await pagesOf(scope, { creator_id: sana.userId }, 10), [1, 0, 1, 0])
    assert.equal(await pagesOf(scope, { creator_id: bilal.userId }, 1), [1, 1, 1, 1, 0])
    assert.equal(await pagesOf(scope, {}, 4), [4, 2])
    assert.equal(await pagesOf({ creatorId: sana.userId }, { acceptance_status: 'rejected' }, 4), [0, 0])
  })

  it('pays only clicks from before the end of a link, at its own rate', async ({ market, shop }) => {
    const { platform, clock } = market
    const creator = await market.addCreator()
    const offer = await addLiveOffer(platform, shop.actor)
    const wish = { message: null, promotion_url: null }
    const { id } = await applyToOffer(platform, creator.userId, offer.id, wish)
    const answer = {
      decision: 'approve',
      reason: null,
      coupon_code: 'SANA20',
      commission_rate: 2000,
    } as const
    const { link } = await decideOnApplication(platform, shop.merchantId, id, answer)
    assert.ok(link)
    const click = await market.click(link)
    clock.pass(MINUTE)
    await endLink(platform, { slug: link.slug, actor: shop.merchantId, reason: null })
    clock.pass(MINUTE)
    const createdAt = clock.now()
    const order = { price: 100_000, createdAt }
    await market.deliver(shop, orderBody({ ...order, click, name: '#1', id: '1' }))
    await market.deliver(
      shop,
      orderBody({ ...order, click: await market.click(link, false), name: '#2', id: '2' }),
    )
    await market.deliver(shop, orderBody({ ...order, codes: ['SANA20'], name: '#3', id: '3' }))
    await market.drainUntilIdle()
    const own = salesRouter.createCaller(requestOf(platform, shop.actor))
    const sales = (await own.list({})).items
    assertMapped(sales, (sale) => [sale.order_name, sale.rejection_reason, sale.commission], [
      ['#3', 'coupon_not_in_force', '0.00'],
      ['#2', 'untracked_click', '0.00'],
      ['#1', null, '200.00'],
    ])
    const sourceOf = async (saleId: string | undefined) => {
      const { receipt } = await own.get({ id: saleId ?? '' })
      return [receipt.commission_rate, receipt.rate_source, receipt.offer_commission_rate]
    }
    assert.equal(await sourceOf(sales[2]?.id), [20, 'individual', 12.5])
    assert.equal(await sourceOf(sales[0]?.id), [null, null, null])
    await market.order(shop, await market.addLink(shop, creator), 100_000)
    await market.drainUntilIdle()
    assert.equal(await sourceOf((await own.list({})).items[0]?.id), [12.5, 'offer', 12.5])
    await market.verify()
  })

  it('lets a poisoned order fall out of its batch, and applies the rest', async ({ market, shop }) => {
    const { platform } = market
    const link = await market.addLink(shop, await market.addCreator())
    for (const name of ['#1', '#2', '#3']) await market.order(shop, link, 100_000, { name })
    // Only the database says no to it, as to a bug that no one has thought of.
    await poisonOrder(market.bed.testDatabase.database, '#2')
    await market.drainUntilIdle()
    const names = async () => (await salesOf(platform)).map((sale) => sale.order_name)
    assert.equal(await names(), ['#1', '#3'])
    const states = async () => (await eventsOf(platform)).map((event) => event.state)
    assert.equal(await states(), ['done', 'pending', 'done'])
    for (let attempt = 1; attempt < 12; attempt += 1) await market.after(11 * MINUTE)
    assert.equal(await states(), ['done', 'set_aside', 'done'])
    const [, poisoned] = await eventsOf(platform)
    assert.equal(await openFlagsOf(platform), [`event_set_aside ${poisoned?.scope}:failed`])
    assert.is(poisoned?.attempts, 12)
    await market.verify()
  })

  it('forgets an order that names a store which is none of ours', async ({ market, shop }) => {
    const body = orderBody({ price: 100, createdAt: market.clock.now() })
    await market.deliver({ ...shop, storeId: market.platform.ids.next() }, body)
    await market.drainUntilIdle()
    const [event] = await eventsOf(market.platform)
    assert.equal([event?.state, event?.reason], ['set_aside', 'its store is not known'])
    await market.verify()
  })

  it.run()
}
