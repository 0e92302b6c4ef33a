import * as assert from 'uvu/assert'
import { removeOldAnswers } from '../platform/api/idempotency.ts'
import { type Actor, proceduresOf } from '../platform/api/procedure.ts'
import type { Platform } from '../platform/platform.ts'
import { openWebSide, type WebSide } from '../test/testkit/live-followers.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Marketplace } from '../test/testkit/marketplace.ts'
import { logIn } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { openRival } from '../test/testkit/rival.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { call } from '../test/testkit/service-bed.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import { appRouter } from './router.ts'

const OFFER = {
  ...{ title: 'Brass lamp', product_url: 'https://lamps.pk/products/brass' },
  ...{ category: 'Home', niche: 'Lamps', commission_rate: 10 },
}
const ENDPOINT = { url: 'https://shop.example.com/hooks', events: ['sale.accepted'] }

for (const { it } of marketSuites('repeated calls')) {
  let market: Marketplace
  let platform: Platform
  let web: WebSide
  let merchant: Actor
  let token: string
  it.before.each(async (world) => {
    market = world.market
    platform = world.platform
    web = await openWebSide(platform)
    merchant = (await market.addShop()).actor
    token = await logIn(platform, merchant)
  })
  it.after.each(() => web.close())

  /** Posts with this key, by the merchant unless another token is given. */
  const post = (path: string, key: string, body: object, by = token) =>
    call(web.base, 'POST', path, { token: by, body, headers: { 'idempotency-key': key } })
  const count = async (table: 'offers' | 'api_keys' | 'idempotency_keys') =>
    (await rowsOf(platform, table)).length

  it('get the first answer again, over REST and tRPC, and make nothing', async () => {
    const first = await post('/offers', 'lamps-1', OFFER)
    assert.is(first.status, 201)
    for (const body of [OFFER, Object.fromEntries(Object.entries(OFFER).reverse())]) {
      const again = await post('/offers', 'lamps-1', body)
      assert.equal([again.status, again.body], [201, first.body])
    }
    const trpc = await post('/trpc/offers.create', 'lamps-1', OFFER)
    assert.equal([trpc.status, trpc.body.result.data], [200, first.body])
    assert.is(await count('offers'), 1)
    assert.is.not((await post('/offers', 'lamps-2', OFFER)).body.id, first.body.id)
  })

  it('with another body or of another operation are refused', async () => {
    assert.is((await post('/offers', 'one', OFFER)).status, 201)
    for (const [path, body] of [
      ['/offers', { ...OFFER, commission_rate: 11 }],
      ['/offers', {}],
      ['/webhook-endpoints', ENDPOINT],
      ['/webhook-endpoints/01900000-0000-7000-8000-000000000001/test', {}],
    ] as const) {
      const answer = await post(path, 'one', body)
      assert.equal([answer.status, answer.body.code], [409, 'idempotency_mismatch'])
    }
    assert.is(await count('offers'), 1)
  })

  it('of another account are its own', async () => {
    const first = await post('/offers', 'one', OFFER)
    const other = await logIn(platform, (await market.addShop('other')).actor)
    const second = await post('/offers', 'one', { ...OFFER, title: 'Copper lamp' }, other)
    assert.equal([second.status, second.body.title], [201, 'Copper lamp'])
    assert.is.not(second.body.id, first.body.id)
  })

  it('at once make one thing, also in two processes', async () => {
    const rival = await openRival(market.bed)
    const there = await openWebSide(rival.platform)
    try {
      const keyed = { token, body: OFFER, headers: { 'idempotency-key': 'both' } }
      const calls = [web, there, web, there].map(({ base }) => call(base, 'POST', '/offers', keyed))
      const answers = await Promise.all(calls)
      const bodies = JSON.stringify(pluck(answers, 'body'))
      assert.equal(pluck(answers, 'status'), [201, 201, 201, 201], bodies)
      assert.is(new Set(answers.map(({ body }) => body.id)).size, 1)
      assert.is(await count('offers'), 1)
      assert.is((await post('/offers', 'both', OFFER)).body.id, answers[0]?.body.id)
    } finally {
      await there.close()
      await rival.close()
    }
  })

  it('after a refusal are tried again', async () => {
    assert.is((await post('/offers', 'one', { ...OFFER, commission_rate: 95 })).status, 400)
    assert.is((await post('/offers', 'one', { ...OFFER, product_url: 'https://localhost/' })).status, 400)
    assert.is(await count('idempotency_keys'), 0)
    assert.is((await post('/offers', 'one', OFFER)).status, 201)
    const shop = { shop_domain: 'lamps-of-lahore.myshopify.com', webhook_secret: 'a-secret-of-this-shop' }
    assert.is((await post('/stores', 'two', shop)).status, 201)
    assert.is((await post('/stores', 'two', shop)).status, 201)
    const taken = await post('/stores', 'three', shop)
    assert.equal([taken.status, taken.body.code], [409, 'store_taken'])
    assert.is((await post('/stores', 'three', { ...shop, shop_domain: 'x.myshopify.com' })).status, 409)
    assert.is(await count('idempotency_keys'), 2)
    await market.verify()
  })

  it('whose answer could not be kept have made nothing', async () => {
    const { seal } = platform.vault
    const dies = () => assert.unreachable('the process dies here')
    Object.assign(platform.vault, { seal: dies })
    assert.is((await post('/offers', 'one', OFFER)).status, 500)
    Object.assign(platform.vault, { seal })
    assert.equal([await count('offers'), await count('idempotency_keys')], [0, 0])
    assert.is((await post('/offers', 'one', OFFER)).status, 201)
    assert.is(await count('offers'), 1)
  })

  it('are forgotten after a day', async () => {
    const start = (token?: string) => post('/jobs/export', 'one', { resource: 'sales', format: 'csv' }, token)
    const first = await start()
    market.clock.pass(DAY - 1)
    const later = await logIn(platform, { userId: merchant.userId, role: 'merchant' })
    await removeOldAnswers(platform)
    const again = await start(later)
    assert.equal([again.status, again.body], [202, first.body])
    assert.is(again.headers.get('location'), `/jobs/${first.body.id}`)
    market.clock.pass(1)
    const another = await start(later)
    assert.is.not(another.body.id, first.body.id)
    market.clock.pass(DAY)
    await removeOldAnswers(platform)
    assert.is(await count('idempotency_keys'), 0)
  })

  it('get secrets again, which are stored sealed', async () => {
    const first = await post('/webhook-endpoints', 'one', ENDPOINT)
    assert.match(first.body.secret, /^whsec_/)
    assert.equal((await post('/webhook-endpoints', 'one', ENDPOINT)).body, first.body)
    assert.not.match(JSON.stringify(await rowsOf(platform, 'idempotency_keys')), 'whsec_')
    await platform.database.transaction((tx) =>
      tx.updateTable('idempotency_keys').set({ key: 'two' }).execute(),
    )
    const moved = await post('/webhook-endpoints', 'two', ENDPOINT)
    assert.equal([moved.status, moved.body.code], [409, 'conflict'])
  })

  it('get an API key again only while the session is fresh', async () => {
    const wanted = { name: 'Order desk', scope: 'read' }
    const first = await post('/auth/api-keys', 'one', wanted)
    assert.is(first.status, 201)
    assert.is((await post('/auth/api-keys', 'one', wanted)).body.key, first.body.key)
    market.clock.pass(10 * MINUTE)
    assert.is((await post('/auth/api-keys', 'one', wanted)).body.code, 'step_up_required')
    assert.is(await count('api_keys'), 1)
  })

  it('need a key of 1 to 64 printable characters, and one call in the request', async () => {
    for (const key of ['', 'x'.repeat(65), '\u00e9', 'a\tb']) {
      const { status, body } = await post('/offers', key, OFFER)
      assert.equal([status, body.issues?.[0]?.path], [400, 'Idempotency-Key'], JSON.stringify(key))
    }
    const batch = { 0: OFFER, 1: OFFER }
    assert.is((await post('/trpc/offers.create,offers.create?batch=1', 'one', batch)).status, 400)
    assert.is(await count('offers'), 0)
    assert.is((await post('/trpc/offers.create?batch=1', 'x'.repeat(64), { 0: OFFER })).status, 200)
    const headers = { 'idempotency-key': 'x'.repeat(65) }
    assert.is((await call(web.base, 'GET', '/offers', { token, headers })).status, 200, 'ignored')
  })

  it('are declared by every POST of an account that makes something', () => {
    for (const { name, meta } of proceduresOf(appRouter)) {
      const { rest, callers, creates } = meta
      const makes = rest?.method === 'POST' && (rest.status === 201 || rest.status === 202)
      if (makes && callers !== 'public') assert.ok(creates, name)
    }
  })

  it.run()
}
