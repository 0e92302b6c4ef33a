import * as assert from 'uvu/assert'
import { applyToOffer } from '../applications/applications.service.ts'
import { appRouter } from '../http/router.ts'
import type { Actor } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { addLiveOffer } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Shop } from '../test/testkit/marketplace.ts'
import { addUser, outcomeOf, requestOf } from '../test/testkit/people.ts'
import { setCoupon } from './coupons.service.ts'
import type { LinkRecord } from './links.service.ts'

interface Context {
  shop: Shop
  sana: Actor
  bilal: Actor
  link: LinkRecord
  other: LinkRecord
}

const as = (platform: Platform, actor: Actor | null) => appRouter.createCaller(requestOf(platform, actor))

for (const { it } of marketSuites<Context>('coupon codes', { verify: true })) {
  it.before.each(async (context) => {
    const { market } = context
    const shop = await market.addShop()
    const [sana, bilal] = [await market.addCreator('Sana'), await market.addCreator('Bilal')]
    const [link, other] = [await market.addLink(shop, sana), await market.addLink(shop, bilal)]
    Object.assign(context, { shop, sana, bilal, link, other })
  })

  it('are given and taken away by the merchant of the link only, upper case', async (context) => {
    const { platform, shop, link } = context
    const set = (actor: Actor | null, coupon_code: string | null) =>
      as(platform, actor).links.setCoupon({ slug: link.slug, coupon_code })
    assert.is((await set(shop.actor, ' sana-10 ')).coupon_code, 'SANA-10')
    assert.is((await set(shop.actor, 'SANA-10')).coupon_code, 'SANA-10', 'again')
    assert.is((await set(shop.actor, null)).coupon_code, null)
    assert.is(await outcomeOf(set((await context.market.addShop()).actor, 'MINE')), 'not_found')
    for (const code of ['AB', 'x'.repeat(41), 'ten off', 'ÄÖÜ', 'ſale-ı', 'straße', '', '../..']) {
      assert.is(await outcomeOf(set(shop.actor, code)), 'validation_failed', code)
    }
    const unknown = as(platform, shop.actor).links.setCoupon({ slug: 'abcdefghjk', coupon_code: 'SANA' })
    assert.is(await outcomeOf(unknown), 'not_found')
  })

  it('are unique among the codes of a merchant in force', async ({ platform, market, shop, link, other }) => {
    const give = (slug: string, code: string | null, actor = shop.merchantId) =>
      outcomeOf(setCoupon(platform, { slug, actor, code }))
    assert.is(await give(link.slug, 'EID25'), 'ok')
    assert.is(await give(other.slug, 'EID25'), 'coupon_taken')
    const elsewhere = await market.addShop()
    const foreign = await market.addLink(elsewhere, await market.addCreator())
    assert.is(await give(foreign.slug, 'EID25', elsewhere.merchantId), 'ok')
    assert.is(await give(link.slug, null), 'ok')
    assert.is(await give(other.slug, 'EID25'), 'ok')
    const races = await Promise.all([link, other].map(({ slug }) => give(slug, 'FLASH')))
    assert.equal(races.sort(), ['coupon_taken', 'ok'])
  })

  it('keep their history, and who changed them', async ({ platform, clock, shop, link }) => {
    const { reader } = platform.database
    const started = clock.now()
    await setCoupon(platform, { slug: link.slug, actor: shop.merchantId, code: 'ONE' })
    clock.pass(1000)
    await setCoupon(platform, { slug: link.slug, actor: 'operator', code: 'TWO' })
    clock.pass(-60_000)
    await setCoupon(platform, { slug: link.slug, actor: shop.merchantId, code: 'ONE' })
    const coupons = reader.selectFrom('link_coupons').select(['code', 'starts_at', 'ends_at'])
    assert.equal(await coupons.orderBy('id').execute(), [
      { code: 'ONE', starts_at: started, ends_at: started + 1000 },
      { code: 'TWO', starts_at: started + 1000, ends_at: started + 1000 },
      { code: 'ONE', starts_at: started + 1000, ends_at: null },
    ])
    const entries = reader.selectFrom('audit_entries').select(['actor', 'before', 'after'])
    const audit = await entries.where('action', '=', 'link.coupon').orderBy('id').execute()
    const [before, after] = ['{"coupon_code":"ONE"}', '{"coupon_code":"TWO"}']
    assert.equal(audit[1], { actor: 'operator', before, after })
  })

  it('are shown to the parties of the link and to admins, and to no one else', async (context) => {
    const { platform, shop, sana, bilal, link } = context
    await setCoupon(platform, { slug: link.slug, actor: shop.merchantId, code: 'SANA10' })
    const seenBy = async (actor: Actor | null) =>
      (await as(platform, actor).links.resolve({ slug: link.slug })).coupon_code
    for (const party of [shop.actor, sana, await addUser(platform, 'admin')]) {
      assert.is(await seenBy(party), 'SANA10')
    }
    for (const stranger of [null, bilal, (await context.market.addShop()).actor]) {
      assert.is(await seenBy(stranger), undefined)
    }
    const [own] = (await as(platform, sana).links.list({})).items
    assert.is(own?.coupon_code, 'SANA10')
    const applications = (await as(platform, shop.actor).applications.list({})).items
    assert.equal(applications.map((one) => one.affiliate_link?.coupon_code).sort(), ['SANA10', null])
  })

  it('come with an approval, or refuse it whole', async ({ platform, shop, sana, link }) => {
    await setCoupon(platform, { slug: link.slug, actor: shop.merchantId, code: 'TAKEN' })
    const offer = await addLiveOffer(platform, shop.actor)
    const { id } = await applyToOffer(platform, sana.userId, offer.id, { message: null, promotion_url: null })
    const { applications } = as(platform, shop.actor)
    const approve = (coupon_code: string) => applications.decide({ id, decision: 'approve', coupon_code })
    assert.is(await outcomeOf(approve('taken')), 'coupon_taken')
    const rejection = applications.decide({ id, decision: 'reject', coupon_code: 'FREE' })
    assert.is(await outcomeOf(rejection), 'validation_failed')
    assert.is((await applications.list({ status: 'pending' })).items.length, 1)
    assert.is((await approve('free')).affiliate_link?.coupon_code, 'FREE')
    assert.is((await approve('free')).affiliate_link?.coupon_code, 'FREE', 'the same decision')
    assert.is(await outcomeOf(approve('other')), 'already_decided')
  })

  it.run()
}
