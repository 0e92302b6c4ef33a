import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createInboxRecorder } from '../../inbox/intake.service.ts'
import { drainUntilIdle } from '../../jobs/worker.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../../processor/events.settings.ts'
import { signShopifyBody } from '../../shopify/signature.ts'
import { countedUnclaimed } from '../../stores/refused-deliveries.service.ts'
import { authorize } from '../../test/authorization/scene.ts'
import { eventually } from '../../test/testkit/eventually.ts'
import { addLiveOffer } from '../../test/testkit/listings.ts'
import { type OrderChanges, orderBody } from '../../test/testkit/orders.ts'
import { addUser } from '../../test/testkit/people.ts'
import { proofDialects } from '../../test/testkit/proof-size.ts'
import { columnsOf } from '../../test/testkit/rows.ts'
import { ScriptedProcessor } from '../../test/testkit/scripted-processor.ts'
import { DAY, MINUTE } from '../../test/testkit/testbed.ts'
import { openWebTestbed, type WebTestbed } from '../../test/testkit/web.ts'

const DOMAIN = 'kurta.myshopify.com'

for (const dialect of proofDialects()) {
  const it = suite<{ bed: WebTestbed }>(`stores over HTTP on ${dialect}`)
  it.before.each(async (context) => {
    context.bed = await openWebTestbed(dialect)
  })
  it.after.each(({ bed }) => bed.close())

  /** A merchant with a token, and the store that they connect. */
  async function connect(bed: WebTestbed, secret: string, domain = DOMAIN) {
    const actor = await addUser(bed.platform, 'merchant')
    const { authorization } = await authorize(bed.platform, actor.userId, 90 * DAY)
    const token = authorization.slice('Bearer '.length)
    const body = { shop_domain: domain, webhook_secret: secret }
    const answer = await bed.ask('POST', '/stores', { token, body })
    assert.is(answer.status, 201)
    return { actor, token, id: String(answer.body.id) }
  }

  async function deliver(bed: WebTestbed, body: string, secret: string): Promise<number> {
    const headers = {
      'x-shopify-topic': 'orders/paid',
      'x-shopify-shop-domain': DOMAIN,
      'x-shopify-hmac-sha256': signShopifyBody(Buffer.from(body), secret),
    }
    const answer = await fetch(`${bed.base}/webhooks/store-sales`, { method: 'POST', headers, body })
    await answer.arrayBuffer()
    return answer.status
  }

  async function scopes({ platform }: WebTestbed): Promise<string[]> {
    const rows = await columnsOf(platform, 'inbound_events', ['scope'])
    return rows.map(({ scope }) => scope)
  }

  it('take each delivery for the claim whose secret signed it', async ({ bed }) => {
    const order = () => orderBody({ price: 100_000, createdAt: bed.clock.now() })
    const squatter = await connect(bed, 'secret-of-squatter')
    const owner = await connect(bed, 'secret-of-owner')
    assert.is(await deliver(bed, order(), 'secret-of-owner'), 200)
    assert.is(await deliver(bed, order(), 'secret-of-squatter'), 200)
    assert.is(await deliver(bed, order(), 'secret-of-no-claim'), 401)
    assert.equal(await scopes(bed), [owner.id, squatter.id])
    // Large bodies take another way, on which the loop is let go between two keys.
    const large = order().replace('{', `{"note":"${'x'.repeat(200_000)}",`)
    assert.is(await deliver(bed, large, 'secret-of-owner'), 200)
    assert.equal(await scopes(bed), [owner.id, squatter.id, owner.id])
    const revoked = { webhook_secret: 'second-of-owner', revoke_former: true }
    const { token, id } = owner
    assert.is((await bed.ask('PATCH', `/stores/${id}`, { token, body: revoked })).status, 200)
    assert.is(await deliver(bed, order(), 'secret-of-owner'), 401)
    assert.is(await deliver(bed, order(), 'second-of-owner'), 200)
  })

  it('show how many of their orders could not be read', async ({ bed }) => {
    const { platform } = bed
    const { token, id } = await connect(bed, 'secret-of-owner')
    const shown = async () => {
      const one = await bed.ask('GET', `/stores/${id}`, { token })
      const list = await bed.ask('GET', '/stores', { token })
      assert.equal(list.body.items, [one.body])
      return one.body.unreadable_7d
    }
    assert.is(await shown(), 0)
    for (const body of ['{"id":1}', '{"id":2}', orderBody({ price: 1000, createdAt: bed.clock.now() })]) {
      assert.is(await deliver(bed, body, 'secret-of-owner'), 200)
    }
    await createInboxRecorder(platform).idle()
    await drainUntilIdle({
      platform,
      processor: new ScriptedProcessor(),
      eventRules: GENERIC_PROCESSOR_EVENTS,
    })
    assert.is(await shown(), 2)
    bed.clock.pass(8 * DAY)
    assert.is(await shown(), 0)
  })

  it('show from what arrives and what is refused whether they are set up', async ({ bed }) => {
    const { token, id } = await connect(bed, 'secret-of-owner')
    const shown = async () => (await bed.ask('GET', `/stores/${id}`, { token })).body
    const order = (changes: Partial<OrderChanges> = {}) =>
      orderBody({ price: 100_000, createdAt: bed.clock.now(), ...changes })
    const receive = async (...orders: string[]) => {
      for (const body of orders) assert.is(await deliver(bed, body, 'secret-of-owner'), 200)
      await createInboxRecorder(bed.platform).idle()
      await drainUntilIdle({
        platform: bed.platform,
        processor: new ScriptedProcessor(),
        eventRules: GENERIC_PROCESSOR_EVENTS,
      })
    }
    assert.is((await shown()).status, 'waiting')
    bed.clock.pass(MINUTE)
    const refusedAt = new Date(bed.clock.now()).toISOString()
    for (let times = 0; times < 20; times += 1) assert.is(await deliver(bed, order(), 'another'), 401)
    const rejecting = await eventually(shown, ({ status }) => status === 'rejecting')
    assert.equal([rejecting.last_refused_at, rejecting.last_event_at], [refusedAt, null])
    assert.equal(rejecting.last_refusal, { at: refusedAt, reason: 'wrong_signature' })
    bed.clock.pass(MINUTE)
    await receive(order({ test: true }))
    const receiving = await shown()
    assert.equal([receiving.status, receiving.last_refused_at], ['receiving', refusedAt])
    assert.equal(receiving.last_event_at, new Date(bed.clock.now()).toISOString())
    bed.clock.pass(1000)
    assert.is(await deliver(bed, order(), 'another'), 401)
    await eventually(shown, ({ status }) => status === 'rejecting')
    bed.clock.pass(1000)
    await receive(order({ test: true }))
    assert.is((await shown()).status, 'receiving')
    bed.clock.pass(1000)
    assert.is(await deliver(bed, order(), 'another'), 401)
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
    bed.clock.pass(30 * DAY)
    assert.equal((await shown()).tracked_30d, { cart: 0, landing: 0, line: 0, coupon: 0, none: 0 })
  })

  it('count deliveries for a domain that no merchant claims', async ({ bed }) => {
    for (const _ of [1, 2])
      assert.is(await deliver(bed, orderBody({ price: 1, createdAt: 1 }), 'secret'), 401)
    const [counted] = await eventually(
      () => countedUnclaimed(bed.platform),
      ([row]) => row?.deliveries === 2,
    )
    assert.is(counted?.shop_domain, DOMAIN)
    await connect(bed, 'secret-of-owner')
    assert.equal(await countedUnclaimed(bed.platform), [])
  })

  it('say how many offers were paused with the last one', async ({ bed }) => {
    const { actor, token, id } = await connect(bed, 'secret-of-owner')
    const { id: outlet } = (
      await bed.ask('POST', '/stores', {
        token,
        body: { shop_domain: 'outlet.myshopify.com', webhook_secret: 'secret-of-outlet' },
      })
    ).body
    const offer = await addLiveOffer(bed.platform, actor)
    const first = await bed.ask('DELETE', `/stores/${outlet}`, { token })
    assert.equal([first.status, first.headers.get('x-offers-paused')], [204, '0'])
    const last = await bed.ask('DELETE', `/stores/${id}`, { token })
    assert.equal([last.status, last.headers.get('x-offers-paused')], [204, '1'])
    const again = await bed.ask('DELETE', `/stores/${id}`, { token })
    assert.equal([again.status, again.headers.get('x-offers-paused')], [404, null])
    const { body } = await bed.ask('GET', `/offers/${offer.id}`, { token })
    assert.is(body.status, 'paused')
  })

  it.run()
}
