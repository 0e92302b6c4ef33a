import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createClickRecorder } from '../clicks/clicks.service.ts'
import { appRouter } from '../http/router.ts'
import { type ShownOffer, setOfferStatus, updateOffer } from '../offers/offers.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { addLink, addLiveOffer, addMerchant, OFFER } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { addUser, outcomeOf, requestOf, setSuspended } from '../test/testkit/people.ts'
import { assertMapped } from '../test/testkit/pluck.ts'
import { type LinkRecord, randomSlug, resolveTarget } from './links.service.ts'
import { canBeSlug } from './slug.rule.ts'

test('slugs are short and unambiguous, and use the whole alphabet', () => {
  const slugs = new Set(Array.from({ length: 5000 }, randomSlug))
  assert.is(slugs.size, 5000)
  for (const slug of slugs) assert.ok(/^[2-9a-hjkmnp-z]{10}$/.test(slug) && canBeSlug(slug), slug)
  assert.is(new Set([...slugs].join('')).size, 31)
})

test.run()

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

  const as = (platform: Platform, actor: Actor | null) =>
    appRouter.createCaller(requestOf(platform, actor)).links

  it('resolves a slug for all, without a click', async ({ platform, merchant, creator, offer, link }) => {
    const url = `http://127.0.0.1:3000/go/${link.slug}`
    assert.equal(await as(platform, null).resolve({ slug: link.slug }), {
      slug: link.slug,
      url,
      active: true,
      creator: { id: creator.userId, display_name: 'Ayesha' },
      offer: {
        ...{ id: offer.id, title: 'Lawn kurta', category: 'Fashion', niche: 'Lawn', status: 'live' },
        merchant: { id: merchant.userId, display_name: 'Kurta House' },
      },
    })
    assert.equal(await platform.database.reader.selectFrom('clicks').selectAll().execute(), [])
    const typed = await as(platform, null).resolve({ slug: `\u200e${link.slug.toUpperCase()}.` })
    assert.is(typed.slug, link.slug)
    for (const slug of ['23456789ab', 'NOT-A-SLUG', 'x\0y']) {
      assert.is(await outcomeOf(as(platform, null).resolve({ slug })), 'not_found')
    }
    assert.is(await outcomeOf(as(platform, null).resolve({ slug: '' })), 'validation_failed')
    await setOfferStatus(platform, merchant.userId, offer.id, 'paused')
    assert.not.ok((await as(platform, null).resolve({ slug: link.slug })).active)
  })

  it('lists own links with clicks and earnings', async ({ platform, merchant, creator, link }) => {
    const recorder = createClickRecorder(platform)
    for (const kind of ['visit', 'visit', 'bot'] as const) {
      const [id, createdAt] = [platform.ids.next(), platform.clock.now()]
      await recorder.record({ id, linkId: link.id, tracked: true, kind, createdAt, address: '203.0.113.7' })
    }
    const second = await addLiveOffer(platform, merchant, { commission_rate: 575 })
    await addLink(platform, merchant, creator, second.id)
    const { items } = await as(platform, creator).list({})
    assertMapped(items, (one) => [one.clicks, one.unique_clicks, one.commission_rate], [
      [0, 0, 5.75],
      [2, 1, 12.5],
    ])
    for (const one of items) assert.equal([one.accepted_sales, one.commission_earned], [0, '0.00'])
    const page = await as(platform, creator).list({ limit: 1 })
    const rest = await as(platform, creator).list({ limit: 1, cursor: page.next_cursor ?? undefined })
    assert.equal([...page.items, ...rest.items], items)
    assert.is(rest.next_cursor, null)
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
    const { list } = as(platform, merchant)
    const slugs = (page: { items: { slug: string }[] }) => page.items.map((one) => one.slug)
    assert.equal(slugs(await list({})), [third.slug, second.slug, link.slug])
    assert.equal(slugs(await list({ offer_id: offer.id })), [second.slug, link.slug])
    const page = await list({ limit: 2 })
    assert.equal(slugs(await list({ limit: 2, cursor: page.next_cursor ?? undefined })), [link.slug])
    assertMapped(page.items, (one) => one.creator.display_name, ['Ayesha', 'Bilal'])
  })

  it('ends a link for good: later visits are untracked, its coupon code is free', async (context) => {
    const { platform, merchant, creator, offer, link } = context
    const shop = as(platform, merchant)
    const { slug } = link
    assert.is((await resolveTarget(platform, slug))?.state, 'tracked')
    await shop.setCoupon({ slug, coupon_code: 'SANA10' })
    const end = { slug, status: 'ended', reason: 'fake posts' } as const
    const ended = await shop.end(end)
    assert.equal(
      [ended.active, ended.coupon_code, ended.ended_at, ended.end_reason],
      [false, null, '2026-11-01T07:00:00.000Z', 'fake posts'],
    )
    assert.equal(await shop.end(end), ended, 'again')
    assert.equal(await shop.end({ ...end, slug: `${slug.toUpperCase()}.` }), ended, 'as people type it')
    assert.equal(await shop.end({ slug, status: 'ended' }), ended, 'again, without the reason')
    assert.equal(await shop.setCoupon({ slug, status: 'ended' }), ended, 'by the route')
    assert.is(await outcomeOf(shop.end({ ...end, reason: 'another' })), 'already_decided')
    assert.is((await resolveTarget(platform, slug))?.state, 'untracked')
    assert.not.ok((await as(platform, null).resolve({ slug })).active)
    assert.is(await outcomeOf(shop.setCoupon({ slug, coupon_code: 'SANA10' })), 'conflict')
    assert.is(await outcomeOf(shop.setCoupon({ slug, coupon_code: null })), 'ok')
    const other = await addLink(platform, merchant, await addUser(platform, 'creator'), offer.id)
    assert.is((await shop.setCoupon({ slug: other.slug, coupon_code: 'SANA10' })).coupon_code, 'SANA10')
    await setOfferStatus(platform, merchant.userId, offer.id, 'paused')
    await setOfferStatus(platform, merchant.userId, offer.id, 'live')
    assert.is((await resolveTarget(platform, slug))?.state, 'untracked')
    const events = platform.database.reader.selectFrom('outbox_events').selectAll()
    const [event, ...more] = await events.where('type', '=', 'link.ended').execute()
    assert.equal([event?.account_id, event?.subject_id, more], [creator.userId, link.id, []])
    const data = JSON.parse(event?.data ?? '{}')
    assert.equal([data.slug, data.end_reason], [slug, 'fake posts'])
    const audit = platform.database.reader.selectFrom('audit_entries').select(['actor', 'reason'])
    assert.equal(await audit.where('action', '=', 'link.end').execute(), [
      { actor: merchant.userId, reason: 'fake posts' },
    ])
  })

  it('is ended by its merchant only, and asked for one thing at a time', async (context) => {
    const { platform, merchant, link } = context
    const end = { slug: link.slug, status: 'ended' } as const
    const stranger = as(platform, await addMerchant(platform))
    for (const call of [stranger.end, stranger.setCoupon]) assert.is(await outcomeOf(call(end)), 'not_found')
    const shop = as(platform, merchant)
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
    const outcomes = await Promise.all([
      outcomeOf(shop.end(end)),
      outcomeOf(shop.setCoupon({ slug, coupon_code: 'SANA10' })),
    ])
    assert.is(outcomes[0], 'ok')
    const coupons = platform.database.reader.selectFrom('link_coupons').selectAll()
    assert.equal(await coupons.where('ends_at', 'is', null).execute(), [], 'no code on a link that has ended')
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
