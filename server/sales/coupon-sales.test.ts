import * as assert from 'uvu/assert'
import { openFlags } from '../flags/flags.service.ts'
import { setCoupon } from '../links/coupons.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import { setOfferStatus } from '../offers/offers.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Shop } from '../test/testkit/marketplace.ts'
import { type OrderChanges, orderBody } from '../test/testkit/orders.ts'
import { requestOf, setSuspended } from '../test/testkit/people.ts'
import { removeTriggers } from '../test/testkit/tamper.ts'
import { HOUR, MINUTE } from '../test/testkit/testbed.ts'
import { salesRouter } from './sales.procedures.ts'

interface Context {
  shop: Shop
  sana: Actor
  bilal: Actor
  /** Sana's, at 12.5 %, with the code SANA10. */
  link: LinkRecord
  /** Bilal's, at 10 %, with the code BILAL10. */
  other: LinkRecord
  give(link: LinkRecord, code: string | null): Promise<unknown>
  /** Reports an order of Rs 1,000; answers what it became. */
  sell(changes: Partial<OrderChanges>): Promise<{
    id: string
    reason: string | null
    by: string | null
    creator: string | null
    commission: string
  }>
}

for (const { it } of marketSuites<Context>('sales by coupon code', { verify: true })) {
  it.before.each(async (context) => {
    const { market, platform } = context
    const shop = await market.addShop()
    const [sana, bilal] = [await market.addCreator('Sana'), await market.addCreator('Bilal')]
    const link = await market.addLink(shop, sana)
    const other = await market.addLink(shop, bilal, { commission_rate: 1000 })
    const give = (to: LinkRecord, code: string | null) =>
      setCoupon(platform, { slug: to.slug, actor: shop.merchantId, code })
    await give(link, 'SANA10')
    await give(other, 'BILAL10')
    await market.after(MINUTE)
    const sell = async (changes: Partial<OrderChanges>) => {
      await market.deliver(shop, orderBody({ createdAt: market.clock.now(), price: 100_000, ...changes }))
      await market.after(MINUTE)
      const [sale] = (await as(platform, shop.actor).list({ limit: 1 })).items
      if (!sale) throw new Error('no sale')
      const { id, rejection_reason: reason, attributed_by: by, creator_id: creator, commission } = sale
      return { id, reason, by, creator, commission }
    }
    Object.assign(context, { shop, sana, bilal, link, other, give, sell })
  })

  const as = (platform: Platform, actor: Actor) => salesRouter.createCaller(requestOf(platform, actor))

  it('credits the code before the click, and shows both on the receipt', async (context) => {
    const { platform, market, shop, sana, bilal, link, other, sell } = context
    const click = await market.click(link)
    const { id, ...sale } = await sell({ click, codes: ['WELCOME10', 'bilal10'] })
    assert.equal(sale, { reason: null, by: 'coupon', creator: bilal.userId, commission: '100.00' })
    const { receipt } = await as(platform, shop.actor).get({ id })
    assert.is(receipt.attributed_by, 'coupon')
    assert.is(receipt.clicked_link_slug, link.slug)
    assert.equal(
      receipt.coupons.map(({ code, affiliate_link_slug, in_force }) => [code, affiliate_link_slug, in_force]),
      [['BILAL10', other.slug, true]],
    )
    const seen = (await as(platform, bilal).get({ id })).receipt
    assert.is(seen.coupons.length, 1)
    assert.is(seen.clicked_at, null, "another creator's click is not Bilal's business")
    assert.equal((await as(platform, sana).list({})).items, [])
  })

  it('credits no link by a row that was moved in the database, and flags it', async (context) => {
    const { market, platform, shop, bilal, other } = context
    const thief = await market.addLink(shop, await market.addCreator('Thief'))
    const { database } = market.bed.testDatabase
    await removeTriggers(database)
    const move = (from: LinkRecord, to: LinkRecord) =>
      database.writer
        .updateTable('link_coupons')
        .set({ link_id: to.id })
        .where('link_id', '=', from.id)
        .execute()
    await move(other, thief)
    const order = orderBody({ createdAt: market.clock.now(), price: 100_000, codes: ['BILAL10'] })
    await market.deliver(shop, order)
    await market.drainUntilIdle()
    const sales = async () => (await as(platform, shop.actor).list({})).items
    assert.equal(await sales(), [])
    const { reader } = platform.database
    assert.is((await openFlags(reader, 'integrity_violation', 'link_coupons')).length, 1)
    await move(thief, other)
    await market.after(HOUR)
    assert.is((await sales())[0]?.creator_id, bilal.userId)
  })

  it('needs no click at all, and takes a shop-wide code for none', async ({ market, link, sell }) => {
    assert.is((await sell({ codes: [' Sana10 '] })).commission, '125.00')
    assert.is((await sell({ codes: ['WELCOME10'] })).reason, 'no_tracking_reference')
    const click = await market.click(link)
    assert.is((await sell({ click, codes: ['WELCOME10'] })).by, 'click')
  })

  it('credits the first code in force of the order', async ({ sana, bilal, other, give, sell }) => {
    assert.is((await sell({ codes: ['SANA10', 'BILAL10'] })).creator, sana.userId)
    assert.is((await sell({ codes: ['BILAL10', 'SANA10'] })).creator, bilal.userId)
    await give(other, null)
    assert.is((await sell({ codes: ['BILAL10', 'SANA10'] })).creator, sana.userId)
  })

  it('goes by the time of the order', async ({ market, sana, bilal, link, other, give, sell }) => {
    const before = market.clock.now() - HOUR
    const during = market.clock.now()
    await market.after(MINUTE)
    await give(link, null)
    assert.is((await sell({ codes: ['SANA10'], createdAt: during })).creator, sana.userId)
    assert.is((await sell({ codes: ['SANA10'], createdAt: before })).reason, 'coupon_not_in_force')
    assert.is((await sell({ codes: ['SANA10'] })).reason, 'coupon_not_in_force')
    await give(other, 'SANA10')
    await market.after(MINUTE)
    assert.is((await sell({ codes: ['SANA10'], createdAt: during })).creator, sana.userId, 'as it was then')
    assert.is((await sell({ codes: ['SANA10'] })).creator, bilal.userId, 'reused by another link')
  })

  it('earns in the very second in which code and offer began', async ({ market, shop, sana, sell }) => {
    await market.after(1000 - (market.clock.now() % 1000) + 700)
    const created = market.clock.now() - 700
    const link = await market.addLink(shop, sana)
    await setCoupon(market.platform, { slug: link.slug, actor: shop.merchantId, code: 'SANA20' })
    assert.is((await sell({ codes: ['SANA20'], createdAt: created })).by, 'coupon')
    assert.is((await sell({ codes: ['SANA20'], createdAt: created - 1 })).reason, 'coupon_not_in_force')
  })

  it('needs a live offer at the time of the order', async ({ market, platform, shop, link, sell }) => {
    const live = market.clock.now()
    await market.after(MINUTE)
    await setOfferStatus(platform, shop.merchantId, link.offer_id, 'paused')
    await market.after(MINUTE)
    const paused = market.clock.now()
    await market.after(MINUTE)
    await setOfferStatus(platform, shop.merchantId, link.offer_id, 'live')
    assert.is((await sell({ codes: ['SANA10'], createdAt: paused })).reason, 'coupon_not_in_force')
    assert.is((await sell({ codes: ['SANA10'], createdAt: live })).reason, null)
  })

  it("keeps a sale of a store whose clock is ahead when code and offer change before the order's time", async (context) => {
    const { market, platform, shop, sana, link, give, sell } = context
    const sold = await sell({ codes: ['SANA10'], createdAt: market.clock.now() + 3 * MINUTE })
    assert.is(sold.creator, sana.userId)
    await setOfferStatus(platform, shop.merchantId, link.offer_id, 'paused')
    await give(link, null)
    assert.is((await sell({ codes: ['SANA10'] })).reason, 'coupon_not_in_force')
    await market.after(HOUR)
  })

  it('is refused to suspended parties, to the creator as buyer and for other products', async (context) => {
    const { market, platform, shop, sana, sell } = context
    const codes = ['SANA10']
    assert.is((await sell({ codes, email: `${sana.userId}@example.com` })).reason, 'self_purchase')
    await setSuspended(platform, sana.userId, true)
    assert.is((await sell({ codes })).reason, 'creator_suspended')
    const narrow = await market.addLink(shop, await market.addCreator(), { product_ids: ['5'] })
    await context.give(narrow, 'NARROW')
    assert.is((await sell({ codes: ['NARROW'] })).reason, 'product_not_in_offer')
    await setSuspended(platform, shop.merchantId, true)
    assert.is((await sell({ codes: ['BILAL10'] })).reason, 'merchant_suspended')
  })

  it("takes another merchant's code for none", async ({ market, platform, sell }) => {
    const elsewhere = await market.addShop()
    const foreign = await market.addLink(elsewhere, await market.addCreator())
    await setCoupon(platform, { slug: foreign.slug, actor: elsewhere.merchantId, code: 'FOREIGN' })
    assert.is((await sell({ codes: ['FOREIGN'] })).reason, 'no_tracking_reference')
  })

  it.run()
}
