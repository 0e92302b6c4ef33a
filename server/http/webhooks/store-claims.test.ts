import * as assert from 'uvu/assert'
import { countedUnclaimed } from '../../stores/refused-deliveries.service.ts'
import { eventually } from '../../test/testkit/eventually.ts'
import { addLiveOffer } from '../../test/testkit/listings.ts'
import { openWebSide, type WebSide } from '../../test/testkit/live-followers.ts'
import { type MarketContext, marketSuites } from '../../test/testkit/market-suites.ts'
import { type OrderChanges, orderBody, orderHeaders } from '../../test/testkit/orders.ts'
import { addUser, logIn } from '../../test/testkit/people.ts'
import { proofDialects } from '../../test/testkit/proof-size.ts'
import { columnsOf } from '../../test/testkit/rows.ts'
import { call } from '../../test/testkit/service-bed.ts'
import { DAY, MINUTE } from '../../test/testkit/testbed.ts'

const DOMAIN = 'kurta.myshopify.com'

type World = MarketContext & { web: WebSide }

for (const { it } of marketSuites<{ web: WebSide }>('stores over HTTP', { dialects: proofDialects() })) {
  it.before.each(async (world) => {
    world.web = await openWebSide(world.platform)
  })
  it.after.each(({ web }) => web?.close())

  const ask = ({ web }: World, ...[method, path, options]: [string, string, Parameters<typeof call>[3]]) =>
    call(web.base, method, path, options)

  /** A merchant with a token, and the store that they connect. */
  async function connect(world: World, secret: string) {
    const actor = await addUser(world.platform, 'merchant')
    const token = await logIn(world.platform, actor, 90 * DAY)
    const body = { shop_domain: DOMAIN, webhook_secret: secret }
    const answer = await ask(world, 'POST', '/stores', { token, body })
    assert.is(answer.status, 201)
    return { actor, token, id: String(answer.body.id) }
  }

  async function deliver(world: World, raw: string, secret: string): Promise<number> {
    const headers = orderHeaders({ domain: DOMAIN, secret }, world.platform.ids.next(), raw)
    return (await ask(world, 'POST', '/webhooks/store-sales', { raw, headers })).status
  }

  async function scopes({ platform }: World): Promise<string[]> {
    const rows = await columnsOf(platform, 'inbound_events', ['scope'])
    return rows.map(({ scope }) => scope)
  }

  it('take each delivery for the claim whose secret signed it', async (world) => {
    const order = () => orderBody({ price: 100_000, createdAt: world.clock.now() })
    const squatter = await connect(world, 'secret-of-squatter')
    const owner = await connect(world, 'secret-of-owner')
    assert.is(await deliver(world, order(), 'secret-of-owner'), 200)
    assert.is(await deliver(world, order(), 'secret-of-squatter'), 200)
    assert.is(await deliver(world, order(), 'secret-of-no-claim'), 401)
    assert.equal(await scopes(world), [owner.id, squatter.id])
    // Large bodies take another way, on which the loop is let go between two keys.
    const large = order().replace('{', `{"note":"${'x'.repeat(200_000)}",`)
    assert.is(await deliver(world, large, 'secret-of-owner'), 200)
    assert.equal(await scopes(world), [owner.id, squatter.id, owner.id])
    const revoked = { webhook_secret: 'second-of-owner', revoke_former: true }
    const { token, id } = owner
    assert.is((await ask(world, 'PATCH', `/stores/${id}`, { token, body: revoked })).status, 200)
    assert.is(await deliver(world, order(), 'secret-of-owner'), 401)
    assert.is(await deliver(world, order(), 'second-of-owner'), 200)
  })

  it('show how many of their orders could not be read', async (world) => {
    const { token, id } = await connect(world, 'secret-of-owner')
    const shown = async () => {
      const one = await ask(world, 'GET', `/stores/${id}`, { token })
      const list = await ask(world, 'GET', '/stores', { token })
      assert.equal(list.body.items, [one.body])
      return one.body.unreadable_7d
    }
    assert.is(await shown(), 0)
    for (const body of ['{"id":1}', '{"id":2}', orderBody({ price: 1000, createdAt: world.clock.now() })]) {
      assert.is(await deliver(world, body, 'secret-of-owner'), 200)
    }
    await world.market.drainUntilIdle()
    assert.is(await shown(), 2)
    world.clock.pass(8 * DAY)
    assert.is(await shown(), 0)
  })

  it('show from what arrives and what is refused whether they are set up', async (world) => {
    const { token, id } = await connect(world, 'secret-of-owner')
    const shown = async () => (await ask(world, 'GET', `/stores/${id}`, { token })).body
    const order = (changes: Partial<OrderChanges> = {}) =>
      orderBody({ price: 100_000, createdAt: world.clock.now(), ...changes })
    const receive = async (...orders: string[]) => {
      for (const body of orders) assert.is(await deliver(world, body, 'secret-of-owner'), 200)
      await world.market.drainUntilIdle()
    }
    assert.is((await shown()).status, 'waiting')
    world.clock.pass(MINUTE)
    const refusedAt = new Date(world.clock.now()).toISOString()
    for (let times = 0; times < 20; times += 1) assert.is(await deliver(world, order(), 'another'), 401)
    const rejecting = await eventually(shown, ({ status }) => status === 'rejecting')
    assert.equal([rejecting.last_refused_at, rejecting.last_event_at], [refusedAt, null])
    assert.equal(rejecting.last_refusal, { at: refusedAt, reason: 'wrong_signature' })
    world.clock.pass(MINUTE)
    await receive(order({ test: true }))
    const receiving = await shown()
    assert.equal([receiving.status, receiving.last_refused_at], ['receiving', refusedAt])
    assert.equal(receiving.last_event_at, new Date(world.clock.now()).toISOString())
    world.clock.pass(1000)
    assert.is(await deliver(world, order(), 'another'), 401)
    await eventually(shown, ({ status }) => status === 'rejecting')
    world.clock.pass(1000)
    await receive(order({ test: true }))
    assert.is((await shown()).status, 'receiving')
    world.clock.pass(1000)
    assert.is(await deliver(world, order(), 'another'), 401)
    await eventually(shown, ({ status }) => status === 'rejecting')
    const click = 'a0a0a0a0-0000-7000-8000-000000000000'
    const cart = order().replace(
      '"note_attributes":[]',
      `"note_attributes":[{"name":"aff_ref","value":"${click}"}]`,
    )
    const line = order().replace(
      '"quantity":1',
      `"quantity":1,"properties":[{"name":"_aff_ref","value":"${click}"}]`,
    )
    await receive(cart, cart.replace('{"id":7', '{"id":8'), line, order({ click }), order())
    assert.equal((await shown()).tracked_30d, { cart: 2, landing: 1, line: 1, coupon: 0, none: 1 })
    world.clock.pass(30 * DAY)
    assert.equal((await shown()).tracked_30d, { cart: 0, landing: 0, line: 0, coupon: 0, none: 0 })
  })

  it('count deliveries for a domain that no merchant claims', async (world) => {
    for (const _ of [1, 2])
      assert.is(await deliver(world, orderBody({ price: 1, createdAt: 1 }), 'secret'), 401)
    const [counted] = await eventually(
      () => countedUnclaimed(world.platform),
      ([row]) => row?.deliveries === 2,
    )
    assert.is(counted?.shop_domain, DOMAIN)
    await connect(world, 'secret-of-owner')
    assert.equal(await countedUnclaimed(world.platform), [])
  })

  it('say how many offers were paused with the last one', async (world) => {
    const { actor, token, id } = await connect(world, 'secret-of-owner')
    const { id: outlet } = (
      await ask(world, 'POST', '/stores', {
        token,
        body: { shop_domain: 'outlet.myshopify.com', webhook_secret: 'secret-of-outlet' },
      })
    ).body
    const offer = await addLiveOffer(world.platform, actor)
    const first = await ask(world, 'DELETE', `/stores/${outlet}`, { token })
    assert.equal([first.status, first.headers.get('x-offers-paused')], [204, '0'])
    const last = await ask(world, 'DELETE', `/stores/${id}`, { token })
    assert.equal([last.status, last.headers.get('x-offers-paused')], [204, '1'])
    const again = await ask(world, 'DELETE', `/stores/${id}`, { token })
    assert.equal([again.status, again.headers.get('x-offers-paused')], [404, null])
    const { body } = await ask(world, 'GET', `/offers/${offer.id}`, { token })
    assert.is(body.status, 'paused')
  })

  it.run()
}
