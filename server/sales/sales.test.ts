import { readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import type { z } from 'zod'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../fixtures/fill-fixture.ts'
import { formatMoney, parseMoney } from '../../shared/money.ts'
import { percentToBasisPoints } from '../../shared/rates.ts'
import { listSalesInput } from '../../shared/schemas/sales.ts'
import { applyToOffer, decideOnApplication } from '../applications/applications.service.ts'
import { scanClicks } from '../clicks/clicks.service.ts'
import { setCoupon } from '../links/coupons.service.ts'
import { endLink } from '../links/end-link.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import { createEndpoint } from '../notifications/channels/webhooks/endpoints.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { ABOVE_ALL_IDS, type OwnScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { addLiveOffer } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { cyclesOf, eventsOf, type Marketplace, openFlagsOf, type Shop } from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { outcomeOf, requestOf } from '../test/testkit/people.ts'
import { assertMapped, assertNone, pluck, pluckAll } from '../test/testkit/pluck.ts'
import { columnsOf, rowOf, rowsOf } from '../test/testkit/rows.ts'
import { poisonOrder } from '../test/testkit/tamper.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import type { SaleDecision } from './accept-sale.rule.ts'
import { listSales } from './sale-list.service.ts'
import { salesRouter } from './sales.procedures.ts'
import { scanSales } from './sales.service.ts'

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

const salesOf = (platform: Platform) => rowsOf(platform, 'sales')

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
    const figures = sales.map(({ order_id, order_name, acceptance_status, rejection_reason, ...sale }) => ({
      ...{ order_id, order_name, acceptance_status, rejection_reason },
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

  it('lists sales with the names of their parts, filtered by each field', async ({ market, shop }) => {
    const [sana, bilal] = [await market.addCreator('Sana'), await market.addCreator('Bilal')]
    const hers = await market.addLink(shop, sana, { title: 'Lamp' })
    const his = await market.addLink(shop, bilal, { title: 'Kurta' })
    await market.order(shop, hers, 100_000, { name: '#1', id: '101' })
    await market.order(shop, his, 100_000, { name: '#2', id: '102' })
    const order = { price: 100_000, createdAt: market.clock.now() }
    await market.deliver(shop, orderBody({ ...order, name: '#3', id: '103' }))
    await market.drainUntilIdle()
    const { shop_domain } = await rowOf(market.platform, 'stores', { id: shop.storeId })
    const list = async (actor: Actor, input: z.input<typeof listSalesInput>) =>
      (await salesRouter.createCaller(requestOf(market.platform, actor)).list(input)).items
    const seen = await list(shop.actor, {})
    const store = { id: shop.storeId, shop_domain }
    const sold = (link: LinkRecord, title: string, { userId }: Actor, display_name: string) => [
      { id: link.offer_id, title },
      { id: userId, display_name },
    ]
    assert.equal(pluckAll(seen, 'order_name', 'offer', 'creator', 'rejection_reason', 'store'), [
      ['#3', null, null, 'no_tracking_reference', store],
      ['#2', ...sold(his, 'Kurta', bilal, 'Bilal'), null, store],
      ['#1', ...sold(hers, 'Lamp', sana, 'Sana'), null, store],
    ])
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
    assert.is(await outcomeOf(list(sana, { rejection_reason: 'bad luck' as never })), 'validation_failed')
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

  it('pays a click from before the end of its link, at the rate of its own', async ({ market, shop }) => {
    const { platform, clock } = market
    const { creator, ...other } = await market.addTrade()
    const { id: offerId } = await addLiveOffer(platform, shop.actor)
    const wish = { message: null, promotion_url: null }
    const { id } = await applyToOffer(platform, creator.userId, offerId, wish)
    const answer = { decision: 'approve', reason: null, commission_rate: 2000 } as const
    const { link } = await decideOnApplication(platform, shop.merchantId, id, answer)
    assert.ok(link)
    const click = await market.click(link)
    clock.pass(MINUTE)
    await endLink(platform, { slug: link.slug, actor: shop.merchantId, reason: null })
    clock.pass(MINUTE)
    await market.deliver(shop, orderBody({ price: 100_000, createdAt: clock.now(), click }))
    await market.sell(other.shop, other.link, 100_000)
    const own = salesRouter.createCaller(requestOf(platform, creator))
    const rates = (await own.list({})).items.map(async ({ id }) => {
      const { receipt } = await own.get({ id })
      return [receipt.commission, receipt.commission_rate, receipt.rate_source, receipt.offer_commission_rate]
    })
    assert.equal(await Promise.all(rates), [
      ['125.00', 12.5, 'offer', 12.5],
      ['200.00', 20, 'individual', 12.5],
    ])
    await market.verify()
  })

  it('lets a poisoned order fall out of its batch, and applies the rest', async ({ market, shop }) => {
    const { platform } = market
    const link = await market.addLink(shop, await market.addCreator())
    for (const name of ['#1', '#2', '#3']) await market.order(shop, link, 100_000, { name })
    // Only the database says no to it, as to a bug that no one has thought of.
    await poisonOrder(market.bed.testDatabase.database, '#2')
    await market.drainUntilIdle()
    assert.equal(pluck(await salesOf(platform), 'order_name'), ['#1', '#3'])
    const states = async () => pluck(await eventsOf(platform), 'state')
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

  it('shows the sub id with a sale and its click to creator and admins, not the merchant', async (context) => {
    const { market, shop } = context
    const { platform } = market
    const sana = await market.addCreator('Sana')
    const endpoint = { url: 'http://127.0.0.1:8009/', events: ['sale.accepted'], description: '' }
    for (const actor of [sana, shop.actor]) await createEndpoint(platform, actor, endpoint)
    const click = await market.click(await market.addLink(shop, sana), true, 'reel-12')
    await market.deliver(shop, orderBody({ price: 100_000, click, createdAt: market.clock.now() }))
    await market.drainUntilIdle()
    const as = (actor: Actor) => salesRouter.createCaller(requestOf(platform, actor))
    const [own] = (await as(sana).list({})).items
    assert.equal([own?.sub_id, (await as(sana).get({ id: own?.id ?? '' })).sub_id], ['reel-12', 'reel-12'])
    assert.not.ok('sub_id' in ((await as(shop.actor).list({})).items[0] ?? {}))
    const page = { below: ABOVE_ALL_IDS, size: 10, from: null, to: null }
    for (const scan of [scanSales, scanClicks])
      for (const [scope, subId] of [
        [{ creatorId: sana.userId }, 'reel-12'],
        ['all', 'reel-12'],
        [{ merchantId: shop.merchantId }, undefined],
      ] as const) {
        const [exported] = (await scan(platform, scope).read(page)).items as { sub_id?: string }[]
        assert.is(exported?.sub_id, subId, `${scan.name} ${JSON.stringify(scope)}`)
      }
    const events = await columnsOf(platform, 'outbox_events', ['account_id', 'data'], {
      type: 'sale.accepted',
    })
    const subIds = new Map(events.map(({ account_id, data }) => [account_id, JSON.parse(data).sub_id]))
    assert.equal([subIds.get(sana.userId), subIds.get(shop.merchantId)], ['reel-12', undefined])
  })

  it.run()
}
