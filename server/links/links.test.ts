import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { applyToOffer } from '../applications/applications.service.ts'
import { createClickRecorder } from '../clicks/clicks.service.ts'
import { appRouter } from '../http/router.ts'
import { type ShownOffer, setOfferStatus, updateOffer } from '../offers/offers.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { addLink, addLiveOffer, addMerchant, OFFER } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Shop } from '../test/testkit/marketplace.ts'
import { addUser, outcomeOf, requestOf, setSuspended } from '../test/testkit/people.ts'
import { assertMapped, pluck, pluckAll } from '../test/testkit/pluck.ts'
import { columnsOf, rowsOf } from '../test/testkit/rows.ts'
import { setCoupon } from './coupons.service.ts'
import { type LinkRecord, randomSlug, resolveLink, resolveTarget } from './links.service.ts'
import { canBeSlug } from './slug.rule.ts'

test('slugs are short and unambiguous, and use the whole alphabet', () => {
  const slugs = new Set(Array.from({ length: 5000 }, randomSlug))
  assert.is(slugs.size, 5000)
  for (const slug of slugs) assert.ok(/^[2-9a-hjkmnp-z]{10}$/.test(slug) && canBeSlug(slug), slug)
  assert.is(new Set([...slugs].join('')).size, 31)
})

test.run()

const as = (platform: Platform, actor: Actor | null) => appRouter.createCaller(requestOf(platform, actor))

interface Context {
  merchant: Actor
  creator: Actor
  offer: ShownOffer
  link: LinkRecord
}

for (const { it } of marketSuites<Context>('links')) {
  it.before.each(async (context) => {
    const { platform } = context
    const merchant = await addMerchant(platform, 'Kurta House')
    const creator = await addUser(platform, 'creator', 'Ayesha')
    const offer = await addLiveOffer(platform, merchant)
    const link = await addLink(platform, merchant, creator, offer.id)
    Object.assign(context, { merchant, creator, offer, link })
  })

  it('resolves a slug for all, without a click', async ({ platform, merchant, creator, offer, link }) => {
    const url = `http://127.0.0.1:3000/go/${link.slug}`
    assert.equal(await as(platform, null).links.resolve({ slug: link.slug }), {
      slug: link.slug,
      url,
      active: true,
      creator: { id: creator.userId, display_name: 'Ayesha' },
      offer: {
        ...{ id: offer.id, title: 'Lawn kurta', category: 'Fashion', niche: 'Lawn', status: 'live' },
        merchant: { id: merchant.userId, display_name: 'Kurta House' },
      },
    })
    assert.equal(await rowsOf(platform, 'clicks'), [])
    const typed = await as(platform, null).links.resolve({ slug: `\u200e${link.slug.toUpperCase()}.` })
    assert.is(typed.slug, link.slug)
    for (const slug of ['23456789ab', 'NOT-A-SLUG', 'x\0y']) {
      assert.is(await outcomeOf(as(platform, null).links.resolve({ slug })), 'not_found')
    }
    assert.is(await outcomeOf(as(platform, null).links.resolve({ slug: '' })), 'validation_failed')
    await setOfferStatus(platform, merchant.userId, offer.id, 'paused')
    assert.not.ok((await as(platform, null).links.resolve({ slug: link.slug })).active)
  })

  it('lists own links with clicks and earnings', async ({ platform, merchant, creator, link }) => {
    const recorder = createClickRecorder(platform)
    for (const kind of ['visit', 'visit', 'bot'] as const) {
      const [id, createdAt] = [platform.ids.next(), platform.clock.now()]
      await recorder.record({ id, linkId: link.id, tracked: true, kind, createdAt, address: '203.0.113.7' })
    }
    const second = await addLiveOffer(platform, merchant, { commission_rate: 575 })
    await addLink(platform, merchant, creator, second.id)
    const { items } = await as(platform, creator).links.list({})
    const [counts, sold] = [
      ['clicks', 'unique_clicks'] as const,
      ['accepted_sales', 'commission_earned'] as const,
    ]
    assert.equal(pluckAll(items, 'commission_rate', ...counts, ...sold), [
      [5.75, 0, 0, 0, '0.00'],
      [12.5, 2, 1, 0, '0.00'],
    ])
    const page = await as(platform, creator).links.list({ limit: 1 })
    const rest = await as(platform, creator).links.list({ limit: 1, cursor: page.next_cursor ?? undefined })
    assert.equal([[...page.items, ...rest.items], rest.next_cursor], [items, null])
  })

  it('knows where a slug leads, and follows every change at once', async (context) => {
    const { platform, merchant, creator, offer, link } = context
    const target = () => resolveTarget(platform, link.slug)
    assert.equal(await target(), {
      linkId: link.id,
      state: 'tracked',
      url: OFFER.product_url,
      beforeReference: 'https://kurta.pk/products/lawn?variant=7&ref=Caf%C3%A9&aff_ref=',
      afterReference: '#reviews',
      ownNames: new Set(['variant', 'ref', 'aff_ref']),
    })
    for (const [user, state] of [
      [creator, 'untracked'],
      [merchant, 'gone'],
    ] as const) {
      await setSuspended(platform, user.userId, true)
      assert.is((await target())?.state, state)
      assert.not((await resolveLink(platform, link.slug)).active)
      await setSuspended(platform, user.userId, false)
      assert.is((await target())?.state, 'tracked')
    }
    await updateOffer(platform, merchant.userId, offer.id, { product_url: 'https://kurta.pk' })
    assert.is((await target())?.beforeReference, 'https://kurta.pk/?aff_ref=')
    for (const status of ['paused', 'ended'] as const) {
      await setOfferStatus(platform, merchant.userId, offer.id, status)
      assert.is((await target())?.state, 'untracked')
    }
    assert.is(await resolveTarget(platform, '23456789ab'), null)
    assert.is(await resolveTarget(platform, 'x\0'), null)
  })

  it('lists to a merchant the links to own offers, by offer and in pages', async (context) => {
    const { platform, merchant, creator, offer, link } = context
    const other = await addUser(platform, 'creator', 'Bilal')
    const second = await addLink(platform, merchant, other, offer.id)
    const another = await addLiveOffer(platform, merchant)
    const third = await addLink(platform, merchant, creator, another.id)
    const elsewhere = await addMerchant(platform)
    await addLink(platform, elsewhere, creator, (await addLiveOffer(platform, elsewhere)).id)
    const { list } = as(platform, merchant).links
    const slugs = async (query: Parameters<typeof list>[0]) => pluck((await list(query)).items, 'slug')
    assert.equal(await slugs({}), [third.slug, second.slug, link.slug])
    assert.equal(await slugs({ offer_id: offer.id }), [second.slug, link.slug])
    const page = await list({ limit: 2 })
    assert.equal(await slugs({ limit: 2, cursor: page.next_cursor ?? undefined }), [link.slug])
    assertMapped(page.items, (one) => one.creator.display_name, ['Ayesha', 'Bilal'])
  })

  it('ends a link for good: later visits are untracked, its coupon code is free', async (context) => {
    const { platform, merchant, creator, offer, link } = context
    const shop = as(platform, merchant).links
    const { slug } = link
    assert.is((await resolveTarget(platform, slug))?.state, 'tracked')
    await shop.setCoupon({ slug, coupon_code: 'SANA10' })
    const end = { slug, status: 'ended', reason: 'fake posts' } as const
    const ended = await shop.end(end)
    assert.equal(
      [ended.active, ended.coupon_code, ended.ended_at, ended.end_reason],
      [false, null, '2026-11-01T07:00:00.000Z', 'fake posts'],
    )
    for (const again of [{}, { slug: `${slug.toUpperCase()}.` }, { reason: undefined }])
      assert.equal(await shop.end({ ...end, ...again }), ended, JSON.stringify(again))
    assert.equal(await shop.setCoupon({ slug, status: 'ended' }), ended, 'by the route')
    assert.is(await outcomeOf(shop.end({ ...end, reason: 'another' })), 'already_decided')
    assert.is((await resolveTarget(platform, slug))?.state, 'untracked')
    assert.not.ok((await as(platform, null).links.resolve({ slug })).active)
    assert.is(await outcomeOf(shop.setCoupon({ slug, coupon_code: 'SANA10' })), 'conflict')
    assert.is(await outcomeOf(shop.setCoupon({ slug, coupon_code: null })), 'ok')
    const other = await addLink(platform, merchant, await addUser(platform, 'creator'), offer.id)
    assert.is((await shop.setCoupon({ slug: other.slug, coupon_code: 'SANA10' })).coupon_code, 'SANA10')
    await setOfferStatus(platform, merchant.userId, offer.id, 'paused')
    await setOfferStatus(platform, merchant.userId, offer.id, 'live')
    assert.is((await resolveTarget(platform, slug))?.state, 'untracked')
    const [event, ...more] = await rowsOf(platform, 'outbox_events', { type: 'link.ended' })
    assert.equal([event?.account_id, event?.subject_id, more], [creator.userId, link.id, []])
    const data = JSON.parse(event?.data ?? '{}')
    assert.equal([data.slug, data.end_reason], [slug, 'fake posts'])
    assert.equal(await columnsOf(platform, 'audit_entries', ['actor', 'reason'], { action: 'link.end' }), [
      { actor: merchant.userId, reason: 'fake posts' },
    ])
  })

  it('is ended by its merchant only, and asked for one thing at a time', async (context) => {
    const { platform, merchant, link } = context
    const end = { slug: link.slug, status: 'ended' } as const
    const stranger = as(platform, await addMerchant(platform)).links
    for (const call of [stranger.end, stranger.setCoupon]) assert.is(await outcomeOf(call(end)), 'not_found')
    const shop = as(platform, merchant).links
    const { slug } = link
    for (const change of [
      { slug },
      { ...end, coupon_code: 'SANA10' },
      { slug, coupon_code: 'SANA10', reason: 'why' },
      { slug, status: 'paused' as 'ended' },
    ])
      assert.is(await outcomeOf(shop.setCoupon(change)), 'validation_failed', JSON.stringify(change))
    assert.is(await outcomeOf(shop.end({ ...end, slug: '23456789ab' })), 'not_found')
    assert.is(await outcomeOf(shop.end({ ...end, slug: 'NOT-A-SLUG' })), 'not_found')
    assert.is((await resolveTarget(platform, slug))?.state, 'tracked')
    const race = [shop.end(end), shop.setCoupon({ slug, coupon_code: 'SANA10' })].map(outcomeOf)
    assert.is((await Promise.all(race))[0], 'ok')
    const coupons = await rowsOf(platform, 'link_coupons', { ends_at: null })
    assert.equal(coupons, [], 'no code on a link that has ended')
  })

  it('gives up on a database that does not answer', async ({ platform, link }) => {
    const never = {
      transformQuery: (node: unknown) => node,
      compileQuery: () => ({}),
      executeQuery: () => new Promise(() => {}),
    }
    const reader = { getExecutor: () => never } as unknown as typeof platform.database.reader
    const stalled = { ...platform, database: { ...platform.database, reader } }
    assert.is(await outcomeOf(resolveTarget(stalled, link.slug)), 'unavailable')
  })

  it.run()
}

interface Coupons {
  shop: Shop
  sana: Actor
  bilal: Actor
  link: LinkRecord
  other: LinkRecord
}

for (const { it } of marketSuites<Coupons>('coupon codes', { verify: true })) {
  it.before.each(async (context) => {
    const { market } = context
    const { shop, creator: sana, link } = await market.addTrade()
    const bilal = await market.addCreator()
    Object.assign(context, { shop, sana, bilal, link, other: await market.addLink(shop, bilal) })
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
    const elsewhere = await market.addTrade()
    assert.is(await give(elsewhere.link.slug, 'EID25', elsewhere.shop.merchantId), 'ok')
    assert.is(await give(link.slug, null), 'ok')
    assert.is(await give(other.slug, 'EID25'), 'ok')
    const races = await Promise.all([link, other].map(({ slug }) => give(slug, 'FLASH')))
    assert.equal(races.sort(), ['coupon_taken', 'ok'])
  })

  it('keep their history, and who changed them', async ({ platform, clock, shop, link }) => {
    const started = clock.now()
    for (const [actor, code, passes] of [
      [shop.merchantId, 'ONE', 1000],
      ['operator', 'TWO', -60_000],
      [shop.merchantId, 'ONE', 0],
    ] as const) {
      await setCoupon(platform, { slug: link.slug, actor, code })
      clock.pass(passes)
    }
    assert.equal(await columnsOf(platform, 'link_coupons', ['code', 'starts_at', 'ends_at']), [
      { code: 'ONE', starts_at: started, ends_at: started + 1000 },
      { code: 'TWO', starts_at: started + 1000, ends_at: started + 1000 },
      { code: 'ONE', starts_at: started + 1000, ends_at: null },
    ])
    const changes = ['actor', 'before', 'after'] as const
    const audit = await columnsOf(platform, 'audit_entries', changes, { action: 'link.coupon' })
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
