// long
import * as assert from 'uvu/assert'
import type { LinkRecord } from '../links/links.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { accessOf } from '../test/testkit/listings.ts'
import { openWebSide, type WebSide } from '../test/testkit/live-followers.ts'
import { type MarketContext, marketSuites } from '../test/testkit/market-suites.ts'
import type { Shop } from '../test/testkit/marketplace.ts'
import { orderBody, orderHeaders } from '../test/testkit/orders.ts'
import { addUser, logIn } from '../test/testkit/people.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { call } from '../test/testkit/service-bed.ts'

const SETTINGS = { PAYOUT_THRESHOLD: '1.00' }

interface Context {
  web: WebSide
  shop: Shop
  creator: Actor
  link: LinkRecord
  /** Tokens. */
  admin: string
  merchants: string
  creators: string
}
type World = MarketContext & Context

for (const { it } of marketSuites<Context>('suspension, end to end,', {
  settings: SETTINGS,
  dialects: proofDialects(),
})) {
  it.before.each(async (world) => {
    const { market, platform } = world
    world.web = await openWebSide(platform)
    world.shop = await market.addShop()
    world.creator = await market.addCreator()
    world.link = await market.addLink(world.shop, world.creator)
    world.admin = await logIn(platform, await addUser(platform, 'admin'))
    world.merchants = await logIn(platform, world.shop.actor)
    world.creators = await logIn(platform, world.creator)
  })
  it.after.each(({ web }) => web?.close())

  const follow = async ({ web, link }: World) => {
    const { status, headers } = await call(web.base, 'GET', `/go/${link.slug}`)
    const location = headers.get('location')
    return { status, reference: location && new URL(location).searchParams.get('aff_ref') }
  }
  /** What becomes of an order of this click that the store sends. */
  const buy = async (
    { web, shop, market, platform, clock }: World,
    { reference }: { reference: string | null },
  ) => {
    const raw = orderBody({ createdAt: clock.now(), price: 100_000, click: reference ?? '' })
    const headers = orderHeaders(accessOf(shop.actor), platform.ids.next(), raw)
    assert.is((await call(web.base, 'POST', '/webhooks/store-sales', { raw, headers })).status, 200)
    await market.drainUntilIdle()
    const sales = platform.database.reader
      .selectFrom('sales')
      .select('rejection_reason')
      .orderBy('id', 'desc')
    return (await sales.executeTakeFirstOrThrow()).rejection_reason ?? 'accepted'
  }
  const payouts = async ({ market, platform }: World) =>
    (await runPayouts(platform, market.processor)).map((one) => (one.kind === 'waits' ? one.why : one.kind))
  const move = async ({ web, admin }: World, { userId }: Actor, to: 'suspend' | 'reinstate') => {
    const path = `/admin/users/${userId}/${to}`
    const { status, body } = await call(web.base, 'POST', path, { token: admin, body: { reason: 'a test' } })
    assert.equal([status, body.id, body.suspended], [200, userId, to === 'suspend'])
  }
  const statusOf = async ({ web }: World, path: string, token?: string) =>
    (await call(web.base, 'GET', path, { token })).status

  it('of a creator', async (world) => {
    const { web, market, shop, creator, creators, link } = world
    const during = await follow(world)
    await market.earn(shop, link, 100_000)

    await move(world, creator, 'suspend')
    assert.is(await statusOf(world, '/me', creators), 401)
    assert.equal(await follow(world), { status: 302, reference: null })
    assert.is((await call(web.base, 'GET', `/affiliate-links/${link.slug}`)).body.active, false)
    assert.is(await buy(world, during), 'creator_suspended')
    assert.equal(await payouts(world), ['suspended'])

    await move(world, creator, 'reinstate')
    assert.is(await statusOf(world, '/me', creators), 401, 'the old session stays ended')
    assert.is(await buy(world, await follow(world)), 'accepted')
    assert.equal(await payouts(world), ['paid_out'])
    await market.drainUntilIdle()
    assert.is(market.processor.payouts.length, 1)
  })

  it('of a merchant', async (world) => {
    const { web, platform, shop, creators, admin, merchants, link } = world
    const offers = async () => (await call(web.base, 'GET', '/offers')).body.items.length
    const offer = (token?: string) => statusOf(world, `/offers/${link.offer_id}`, token)
    const other = await logIn(platform, await addUser(platform, 'creator'))
    const applying = () =>
      call(web.base, 'POST', `/offers/${link.offer_id}/applications`, { token: other, body: {} })
    const before = await follow(world)

    await move(world, shop.actor, 'suspend')
    assert.is(await statusOf(world, '/me', merchants), 401)
    assert.is(await offers(), 0)
    assert.equal([await offer(), await offer(creators), await offer(admin)], [404, 404, 200])
    assert.equal(await follow(world), { status: 410, reference: null })
    assert.is((await applying()).body.code, 'not_found')
    assert.is(await buy(world, before), 'merchant_suspended')

    await move(world, shop.actor, 'reinstate')
    assert.equal([await offers(), await offer()], [1, 200])
    assert.is((await applying()).status, 201)
    assert.is(await buy(world, await follow(world)), 'accepted')
  })

  it('is listed and foretold to admins', async (world) => {
    const { web, market, shop, creator, link, admin } = world
    await market.earn(shop, link, 100_000)
    const get = async (path: string, token = admin) => (await call(web.base, 'GET', path, { token })).body
    const found = async (query: string) => {
      const { items } = await get(`/admin/users?${query}`)
      return items.map(({ id }: { id: string }) => id)
    }
    const [{ email, display_name: name, ...listed }] = (await get('/admin/users?role=creator')).items
    assert.equal([listed.id, listed.role, listed.suspended], [creator.userId, 'creator', false])
    assert.not.ok('balance' in listed || 'payout_destination' in listed)
    for (const q of [email, email.slice(2, -2).toUpperCase(), name])
      assert.ok((await found(`q=${encodeURIComponent(q)}&role=creator`)).includes(creator.userId), q)
    for (const q of ['%25', '_%5C', 'no such account']) assert.equal(await found(`q=${q}`), [], q)
    const first = await get('/admin/users?limit=1')
    assert.is.not(
      (await get(`/admin/users?limit=1&cursor=${first.next_cursor}`)).items[0].id,
      first.items[0].id,
    )
    assert.is((await get('/admin/users?state=suspended')).code, 'validation_failed')

    const preview = (id: string) => get(`/admin/users/${id}/suspension`)
    const balance = (await get('/me', world.creators)).balance
    const ofCreator = await preview(creator.userId)
    assert.equal([ofCreator.sessions, ofCreator.api_keys, ofCreator.merchant], [1, 0, null])
    assert.equal(
      [ofCreator.creator.links, ofCreator.creator.balance_pending, ofCreator.creator.balance_released],
      [1, balance.pending, balance.released],
    )
    const ofMerchant = await preview(shop.actor.userId)
    assert.equal(
      [ofMerchant.creator, ofMerchant.merchant.stores, ofMerchant.merchant.live_offers],
      [null, 1, 1],
    )
    assert.is((await preview(link.id)).code, 'not_found')

    await move(world, creator, 'suspend')
    assert.equal(await found('suspended=true'), [creator.userId])
    assert.not.ok((await found('suspended=false')).includes(creator.userId))
    assert.is((await preview(creator.userId)).sessions, 0)
  })

  it.run()
}
