// long
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { createInboxRecorder } from '../inbox/intake.service.ts'
import { drainUntilIdle } from '../jobs/worker.ts'
import type { LinkRecord } from '../links/links.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../processor/events.settings.ts'
import { signShopifyBody } from '../shopify/signature.ts'
import { connectStore } from '../stores/stores.service.ts'
import { addLink, addLiveOffer } from '../test/testkit/listings.ts'
import { giveDestination } from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { rowOf } from '../test/testkit/rows.ts'
import { ScriptedProcessor } from '../test/testkit/scripted-processor.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { openWebTestbed, type WebTestbed } from '../test/testkit/web.ts'
import { login, register } from './credentials.service.ts'
import { createAdmin } from './users.service.ts'

const PASSWORD = 'a long passphrase'
const SHOP = 'kurta-house.myshopify.com'
const SECRET = 'the secret of kurta house'
const SETTINGS = {
  BILLING_PERIOD: 'daily',
  PAYOUT_THRESHOLD: '1.00',
  RATE_LIMIT_AUTH: '0',
  RATE_LIMIT_PUBLIC: '0',
}

interface World {
  web: WebTestbed
  processor: ScriptedProcessor
  admin: string
  merchant: { actor: Actor; token: string; email: string }
  creator: { actor: Actor; token: string; email: string }
  link: LinkRecord
}

for (const dialect of proofDialects()) {
  const it = suite<World>(`suspension, end to end, on ${dialect}`)
  it.before.each(async (world) => {
    const web = await openWebTestbed(dialect, SETTINGS)
    const { platform } = web
    await createAdmin(platform, 'admin@example.pk', PASSWORD, 'Admin')
    const admin = (await login(platform, 'admin@example.pk', PASSWORD)).token
    const join = async (role: 'merchant' | 'creator') => {
      const email = `${role}@example.pk`
      const { token, userId } = await register(platform, {
        email,
        password: PASSWORD,
        role,
        displayName: role,
      })
      return { token, email, actor: { userId, role, sessionId: '' } satisfies Actor }
    }
    const [merchant, creator] = [await join('merchant'), await join('creator')]
    await connectStore(platform, merchant.actor.userId, { shop_domain: SHOP, webhook_secret: SECRET })
    const offer = await addLiveOffer(platform, merchant.actor)
    const link = await addLink(platform, merchant.actor, creator.actor, offer.id)
    await giveDestination(platform, creator.actor.userId)
    Object.assign(world, { web, processor: new ScriptedProcessor(), admin, merchant, creator, link })
  })
  it.after.each(({ web }) => web.close())

  const follow = async ({ web, link }: World) => {
    const answer = await web.ask('GET', `/go/${link.slug}`)
    const location = answer.headers.get('location')
    return { status: answer.status, reference: location && new URL(location).searchParams.get('aff_ref') }
  }
  const apply = (world: World) =>
    drainUntilIdle({
      platform: world.web.platform,
      processor: world.processor,
      eventRules: GENERIC_PROCESSOR_EVENTS,
    })
  /** An order that came of this click, sent by the store, applied by the worker; what became of it. */
  const buy = async (world: World, click: string | null) => {
    const { web, merchant } = world
    const body = orderBody({ createdAt: web.clock.now(), price: 100_000, click: click as string })
    const sent = await fetch(`${web.base}/webhooks/store-sales`, {
      method: 'POST',
      headers: {
        'x-shopify-shop-domain': SHOP,
        'x-shopify-topic': 'orders/paid',
        'x-shopify-hmac-sha256': signShopifyBody(Buffer.from(body), SECRET),
      },
      body,
    })
    assert.is(sent.status, 200)
    await sent.text()
    await apply(world)
    const { reader } = web.platform.database
    const sale = await reader
      .selectFrom('sales')
      .select('rejection_reason')
      .where('merchant_id', '=', merchant.actor.userId)
      .orderBy('id', 'desc')
      .executeTakeFirstOrThrow()
    return sale.rejection_reason ?? 'accepted'
  }
  /** Closes the open cycle and has its payment confirmed: the creator's share can be paid out. */
  const release = async (world: World) => {
    const { platform, clock } = world.web
    clock.pass(DAY)
    const [cycle] = await closeDueCycles(platform)
    assert.ok(cycle)
    await apply(world)
    const row = await rowOf(platform, 'billing_cycles', { id: cycle.cycleId })
    await createInboxRecorder(platform).record({
      source: 'processor',
      scope: 'processor',
      deliveryId: cycle.cycleId,
      topic: null,
      rawBody: Buffer.from(
        JSON.stringify({
          type: 'billing.payment_confirmed',
          data: {
            invoice_id: row.processor_invoice_id,
            payment_reference: `pay_${cycle.cycleId}`,
            amount: (row.amount_due / 100).toFixed(2),
            currency: 'PKR',
          },
        }),
      ),
    })
    await apply(world)
  }
  const payouts = async (world: World) =>
    (await runPayouts(world.web.platform, world.processor)).map((outcome) =>
      outcome.kind === 'waits' ? outcome.why : outcome.kind,
    )
  const move = async (world: World, userId: string, to: 'suspend' | 'reinstate') => {
    const answer = await world.web.ask('POST', `/admin/users/${userId}/${to}`, {
      token: world.admin,
      body: { reason: 'a test' },
    })
    assert.is(answer.status, 200, JSON.stringify(answer.body))
    assert.is(answer.body.suspended, to === 'suspend')
    assert.is(answer.body.id, userId)
  }
  const logIn = async ({ web }: World, email: string) => {
    const answer = await web.ask('POST', '/auth/login', { body: { email, password: PASSWORD } })
    return answer.status === 200 ? 'ok' : answer.body.code
  }
  const me = async ({ web }: World, token: string) => (await web.ask('GET', '/me', { token })).status

  it('of a creator', async (world) => {
    const { web, creator, link } = world
    const [before, during] = [await follow(world), await follow(world)]
    assert.ok(before.reference && during.reference)
    assert.is(await buy(world, before.reference), 'accepted')
    await release(world)

    await move(world, creator.actor.userId, 'suspend')
    assert.is(await me(world, creator.token), 401)
    assert.is(await logIn(world, creator.email), 'account_suspended')
    assert.equal(await follow(world), { status: 302, reference: null })
    const shown = await web.ask('GET', `/affiliate-links/${link.slug}`)
    assert.is(shown.body.active, false)
    assert.is(await buy(world, during.reference), 'creator_suspended')
    const applied = await web.ask('POST', `/offers/${link.offer_id}/applications`, {
      token: creator.token,
      body: {},
    })
    assert.is(applied.status, 401)
    assert.equal(await payouts(world), ['suspended'])
    assert.is(world.processor.payouts.length, 0)

    await move(world, creator.actor.userId, 'reinstate')
    assert.is(await me(world, creator.token), 401, 'the old session stays ended')
    assert.is(await logIn(world, creator.email), 'ok')
    const after = await follow(world)
    assert.is(await buy(world, after.reference ?? null), 'accepted')
    assert.equal(await payouts(world), ['paid_out'])
    await apply(world)
    assert.is(world.processor.payouts.length, 1)
  })

  it('of a merchant', async (world) => {
    const { web, merchant, creator, link } = world
    const offers = async () => ((await web.ask('GET', '/offers')).body.items as unknown[]).length
    const offer = async (token?: string) =>
      (await web.ask('GET', `/offers/${link.offer_id}`, { token })).status
    const other = await register(web.platform, {
      email: 'other@example.pk',
      password: PASSWORD,
      role: 'creator',
      displayName: 'Other',
    })
    const applyTo = () =>
      web.ask('POST', `/offers/${link.offer_id}/applications`, { token: other.token, body: {} })
    const click = await follow(world)

    await move(world, merchant.actor.userId, 'suspend')
    assert.is(await me(world, merchant.token), 401)
    assert.is(await logIn(world, merchant.email), 'account_suspended')
    assert.is(await offers(), 0)
    assert.equal([await offer(), await offer(creator.token), await offer(world.admin)], [404, 404, 200])
    assert.equal(await follow(world), { status: 410, reference: null })
    assert.is((await applyTo()).body.code, 'not_found')
    assert.is(await buy(world, click.reference ?? null), 'merchant_suspended')

    await move(world, merchant.actor.userId, 'reinstate')
    assert.is(await logIn(world, merchant.email), 'ok')
    assert.is(await offers(), 1)
    assert.is(await offer(), 200)
    const again = await follow(world)
    assert.is(again.status, 302)
    assert.is((await applyTo()).status, 201)
    assert.is(await buy(world, again.reference ?? null), 'accepted')
  })

  it.run()
}
