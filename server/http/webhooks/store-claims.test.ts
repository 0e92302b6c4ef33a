import * as assert from 'uvu/assert'
import type { Platform } from '../../platform/platform.ts'
import { countedUnclaimed } from '../../stores/refused-deliveries.service.ts'
import { eventually } from '../../test/testkit/eventually.ts'
import { addLiveOffer } from '../../test/testkit/listings.ts'
import { openWebSide, type WebSide } from '../../test/testkit/live-followers.ts'
import { marketSuites } from '../../test/testkit/market-suites.ts'
import type { Marketplace } from '../../test/testkit/marketplace.ts'
import { type OrderChanges, orderBody, orderHeaders } from '../../test/testkit/orders.ts'
import { addUser, logIn } from '../../test/testkit/people.ts'
import { pluck, pluckAll } from '../../test/testkit/pluck.ts'
import { proofDialects } from '../../test/testkit/proof-size.ts'
import { rowsOf } from '../../test/testkit/rows.ts'
import { call } from '../../test/testkit/service-bed.ts'
import { DAY, MINUTE } from '../../test/testkit/testbed.ts'

const DOMAIN = 'kurta.myshopify.com'

for (const { it } of marketSuites('stores over HTTP', { dialects: proofDialects() })) {
  let market: Marketplace
  let platform: Platform
  let web: WebSide
  it.before.each(async (world) => {
    market = world.market
    platform = world.platform
    web = await openWebSide(platform)
  })
  it.after.each(() => web.close())

  const ask = (method: string, path: string, options: Parameters<typeof call>[3]) =>
    call(web.base, method, path, options)

  /** A merchant with a token, and the store that they connect. */
  async function connect(secret: string) {
    const actor = await addUser(platform, 'merchant')
    const token = await logIn(platform, actor, 90 * DAY)
    const body = { shop_domain: DOMAIN, webhook_secret: secret }
    const answer = await ask('POST', '/stores', { token, body })
    assert.is(answer.status, 201)
    return { actor, token, id: String(answer.body.id) }
  }

  async function deliver(raw: string, secret: string): Promise<number> {
    const headers = orderHeaders({ domain: DOMAIN, secret }, platform.ids.next(), raw)
    return (await ask('POST', '/webhooks/store-sales', { raw, headers })).status
  }

  const scopes = async () => pluck(await rowsOf(platform, 'inbound_events'), 'scope')

  it('take each delivery for the claim whose secret signed it', async () => {
    const order = () => orderBody({ price: 100_000, createdAt: market.clock.now() })
    const squatter = await connect('secret-of-squatter')
    const owner = await connect('secret-of-owner')
    assert.is(await deliver(order(), 'secret-of-owner'), 200)
    assert.is(await deliver(order(), 'secret-of-squatter'), 200)
    assert.is(await deliver(order(), 'secret-of-no-claim'), 401)
    assert.equal(await scopes(), [owner.id, squatter.id])
    // Large bodies take another way, on which the loop is let go between two keys.
    const large = order().replace('{', `{"note":"${'x'.repeat(200_000)}",`)
    assert.is(await deliver(large, 'secret-of-owner'), 200)
    assert.equal(await scopes(), [owner.id, squatter.id, owner.id])
  })

  it('show how many of their orders could not be read', async () => {
    const { token, id } = await connect('secret-of-owner')
    const shown = async () => {
      const one = await ask('GET', `/stores/${id}`, { token })
      const list = await ask('GET', '/stores', { token })
      assert.equal(list.body.items, [one.body])
      return one.body.unreadable_7d
    }
    assert.is(await shown(), 0)
    for (const body of ['{"id":1}', '{"id":2}', orderBody({ price: 1000, createdAt: market.clock.now() })]) {
      assert.is(await deliver(body, 'secret-of-owner'), 200)
    }
    await market.drainUntilIdle()
    assert.is(await shown(), 2)
    market.clock.pass(8 * DAY)
    assert.is(await shown(), 0)
  })

  it('show from what arrives and what is refused whether they are set up', async () => {
    const { token, id } = await connect('secret-of-owner')
    const shown = async () => (await ask('GET', `/stores/${id}`, { token })).body
    const order = (changes: Partial<OrderChanges> = {}) =>
      orderBody({ price: 100_000, createdAt: market.clock.now(), ...changes })
    const receive = async (...orders: string[]) => {
      for (const body of orders) assert.is(await deliver(body, 'secret-of-owner'), 200)
      await market.drainUntilIdle()
    }
    assert.is((await shown()).status, 'waiting')
    market.clock.pass(MINUTE)
    const refusedAt = new Date(market.clock.now()).toISOString()
    for (let times = 0; times < 20; times += 1) assert.is(await deliver(order(), 'another'), 401)
    const rejecting = await eventually(shown, ({ status }) => status === 'rejecting')
    assert.equal([rejecting.last_refused_at, rejecting.last_event_at], [refusedAt, null])
    assert.equal(rejecting.last_refusal, { at: refusedAt, reason: 'wrong_signature' })
    market.clock.pass(MINUTE)
    await receive(order({ test: true }))
    const receiving = await shown()
    assert.equal([receiving.status, receiving.last_refused_at], ['receiving', refusedAt])
    assert.equal(receiving.last_event_at, new Date(market.clock.now()).toISOString())
    for (const _ of ['once', 'and again']) {
      market.clock.pass(1000)
      assert.is(await deliver(order(), 'another'), 401)
      await eventually(shown, ({ status }) => status === 'rejecting')
      market.clock.pass(1000)
      await receive(order({ test: true }))
      assert.is((await shown()).status, 'receiving')
    }
    const click = 'a0a0a0a0-0000-7000-8000-000000000000'
    const named = (name: string) => `[{"name":"${name}","value":"${click}"}]`
    const cart = order().replace('"note_attributes":[]', `"note_attributes":${named('aff_ref')}`)
    const line = order().replace('"quantity":1', `"quantity":1,"properties":${named('_aff_ref')}`)
    await receive(cart, cart.replace('{"id":7', '{"id":8'), line, order({ click }), order())
    assert.equal((await shown()).tracked_30d, { cart: 2, landing: 1, line: 1, coupon: 0, none: 1 })
    market.clock.pass(30 * DAY)
    assert.equal((await shown()).tracked_30d, { cart: 0, landing: 0, line: 0, coupon: 0, none: 0 })
  })

  it('count deliveries for a domain that no merchant claims', async () => {
    for (const _ of [1, 2]) assert.is(await deliver(orderBody({ price: 1, createdAt: 1 }), 'secret'), 401)
    const counted = async () => pluckAll(await countedUnclaimed(platform), 'shop_domain', 'deliveries')
    await eventually(counted, ([row]) => row?.[0] === DOMAIN && row[1] === 2)
    await connect('secret-of-owner')
    assert.equal(await counted(), [])
  })

  it('say how many offers were paused with the last one', async () => {
    const { actor, token, id } = await connect('secret-of-owner')
    await addLiveOffer(platform, actor)
    const remove = async () => {
      const { status, headers } = await ask('DELETE', `/stores/${id}`, { token })
      return [status, headers.get('x-offers-paused')]
    }
    assert.equal(
      [await remove(), await remove()],
      [
        [204, '1'],
        [404, null],
      ],
    )
  })

  it.run()
}
