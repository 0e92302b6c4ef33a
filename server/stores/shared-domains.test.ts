import { createHash } from 'node:crypto'
import * as assert from 'uvu/assert'
import { recordOperatorDelivery } from '../inbox/operator-deliveries.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { signShopifyBody } from '../shopify/signature.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { addLiveOffer } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Marketplace, Shop } from '../test/testkit/marketplace.ts'
import { onMovingClock } from '../test/testkit/moving-clock.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { addUser, outcomeOf, requestOf } from '../test/testkit/people.ts'
import { assertMapped, pluck } from '../test/testkit/pluck.ts'
import { fc } from '../test/testkit/property.ts'
import { columnsOf, rowsOf } from '../test/testkit/rows.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { allowClaim, makeRoom, releaseClaim, removeStore } from './remove-store.service.ts'
import { storesRouter } from './stores.procedures.ts'
import { connectStore, rotateSecret } from './stores.service.ts'
import { claimsForWebhook, findSigner, MAX_CLAIMS_PER_DOMAIN } from './webhook-claims.service.ts'

const DOMAIN = 'kurta.myshopify.com'

for (const { it } of marketSuites('claims on one domain')) {
  let number = 0
  /** Another merchant who connects the domain with a secret of their own. */
  async function claim({ platform }: Marketplace, domain = DOMAIN): Promise<Shop & { secret: string }> {
    const actor = await addUser(platform, 'merchant')
    number += 1
    const secret = `secret-of-claim-${number}`
    const fields = { shop_domain: domain, webhook_secret: secret }
    const store = await connectStore(platform, actor.userId, fields)
    return { actor, merchantId: actor.userId, storeId: store.id, secret }
  }

  async function signerOf({ platform }: Marketplace, secret: string, domain = DOMAIN) {
    const body = Buffer.from('{"id":1}')
    const claims = await claimsForWebhook(platform, domain)
    const find = async () => (await findSigner(claims, body, signShopifyBody(body, secret)))?.storeId ?? null
    const findWithin = () =>
      find().catch((error) => {
        if (error instanceof Refusal && error.code === 'rate_limited') return 'refused' as const
        throw error
      })
    // Another test may have used up the hash budget of this second.
    return eventually(findWithin, (found) => found !== 'refused')
  }

  async function sharedFlags({ platform }: Marketplace) {
    const rows = await rowsOf(platform, 'flags', { kind: 'domain_shared' })
    return rows.map((row) => ({ ...row, evidence: JSON.parse(row.evidence) }))
  }

  /** An order of now that the shop's store has sent, applied. */
  async function sell(market: Marketplace, shop: Shop): Promise<void> {
    await market.deliver(shop, orderBody({ price: 100_000, createdAt: market.clock.now() }))
    await market.drainUntilIdle()
  }

  it('gives a delivery to exactly the claim that has its secret', async ({ market }) => {
    const { platform } = market
    const anySecret = fc.string({ unit: fc.constantFrom(...'abcXYZ019!~'), minLength: 8, maxLength: 12 })
    const anyClaims = fc
      .uniqueArray(anySecret, { minLength: 2, maxLength: 16 })
      .chain((secrets) =>
        fc.tuple(
          fc.constant(secrets),
          fc.array(fc.nat(MAX_CLAIMS_PER_DOMAIN - 1), { minLength: 16, maxLength: 16 }),
        ),
      )
    let run = 0
    await fc.assert(
      fc.asyncProperty(anyClaims, fc.nat(), async ([secrets, owners], receiving) => {
        run += 1
        const domain = `s${run}.myshopify.com`
        const expected = new Map<string, string>()
        const stores = new Map<number, { merchantId: string; storeId: string; secrets: number }>()
        for (const [index, text] of secrets.entries()) {
          const owner = owners[index] ?? 0
          // A secret belongs to one store, also across runs.
          const secret = `${text}-${run}`
          const store = stores.get(owner)
          if (store && store.secrets === 4) continue
          if (store) {
            await rotateSecret(platform, store.merchantId, store.storeId, { secret })
            store.secrets += 1
            expected.set(secret, store.storeId)
          } else {
            const merchantId = (await addUser(platform, 'merchant')).userId
            const fields = { shop_domain: domain, webhook_secret: secret }
            const storeId = (await connectStore(platform, merchantId, fields)).id
            stores.set(owner, { merchantId, storeId, secrets: 1 })
            expected.set(secret, storeId)
          }
        }
        const first = [...stores.values()][receiving % stores.size]
        if (first)
          await sell(market, {
            ...first,
            actor: { userId: first.merchantId, role: 'merchant', sessionId: '' },
          })
        for (const [secret, storeId] of expected) {
          assert.is(await signerOf(market, secret, domain), storeId)
          assert.is(await signerOf(market, secret, 'another.myshopify.com'), null)
        }
        assert.is(await signerOf(market, 'a secret of no claim', domain), null)
      }),
      { numRuns: 8 },
    )
  })

  it('lets a squatter change nothing for the owner, and flags a domain both receive', async ({ market }) => {
    const squatter = await claim(market)
    const owner = await claim(market)
    const link = await market.addLink(owner, await market.addCreator())
    await sell(market, squatter)
    assert.equal(await sharedFlags(market), [])
    await market.order(owner, link, 800_000)
    await market.drainUntilIdle()
    const sales = await market.platform.database.reader.selectFrom('sales').selectAll().execute()
    const accepted = sales.filter((sale) => sale.acceptance_status === 'accepted')
    assertMapped(accepted, (sale) => [sale.merchant_id, sale.store_id], [[owner.merchantId, owner.storeId]])
    const [flag, ...more] = await sharedFlags(market)
    assert.equal(more, [])
    assert.equal([flag?.subject_type, flag?.subject_id, flag?.severity], ['shop_domain', DOMAIN, 'high'])
    assert.equal(pluck(flag?.evidence.claims, 'merchant_id'), [squatter.merchantId, owner.merchantId])
    await sell(market, squatter)
    await sell(market, owner)
    assert.is((await sharedFlags(market)).length, 1)
    await market.verify()
  })

  it('flags a domain whose claims begin to receive at the same moment', async ({ market }) => {
    const shops = await Promise.all(Array.from({ length: 4 }, () => claim(market)))
    for (const shop of shops) {
      await market.deliver(shop, orderBody({ price: 100_000, createdAt: market.clock.now() }))
    }
    await market.drainUntilIdle()
    const [flag] = await sharedFlags(market)
    assert.is(flag?.evidence.claims.length, 4)
  })

  it('does not count what an operator sent as the store', async ({ market }) => {
    const { platform } = market
    const owner = await claim(market)
    const other = await claim(market)
    await sell(market, owner)
    const body = Buffer.from(orderBody({ price: 100_000, createdAt: market.clock.now() }))
    await recordOperatorDelivery(platform, {
      scope: other.storeId,
      delivery_id: 'sent-by-operator',
      body_hash: createHash('sha256').update(body).digest('hex'),
      fixture: 'order',
      url: 'http://127.0.0.1',
    })
    await market.deliver(other, body, { deliveryId: 'sent-by-operator' })
    await market.drainUntilIdle()
    assert.equal(await sharedFlags(market), [])
    await sell(market, other)
    assert.is((await sharedFlags(market)).length, 1)
  })

  it('takes ten claims, also at once, and flags the domain when it refuses another', async ({ market }) => {
    const { platform } = market
    for (let n = 0; n < MAX_CLAIMS_PER_DOMAIN - 1; n += 1) await claim(market)
    const late = await Promise.all(Array.from({ length: 8 }, () => addUser(platform, 'merchant')))
    const outcomes = await Promise.all(
      late.map(({ userId }) =>
        outcomeOf(
          connectStore(platform, userId, { shop_domain: DOMAIN, webhook_secret: `secret-of-${userId}` }),
        ),
      ),
    )
    assert.equal(outcomes.sort(), ['ok', ...Array(7).fill('quota_exceeded')])
    assert.is((await claimsForWebhook(platform, DOMAIN)).length, MAX_CLAIMS_PER_DOMAIN)
    const [flag, ...more] = await sharedFlags(market)
    assert.equal(more, [])
    assert.is(flag?.evidence.claims.length, MAX_CLAIMS_PER_DOMAIN)
    assert.ok(flag?.evidence.refused_merchant_id)
  })

  it('lets the owner in where claims that proved nothing for a day fill the domain', async ({ market }) => {
    const { platform, clock } = market
    const squatters: Awaited<ReturnType<typeof claim>>[] = []
    for (let n = 0; n < MAX_CLAIMS_PER_DOMAIN; n += 1) squatters.push(await claim(market))
    const [first, second] = squatters as [(typeof squatters)[0], (typeof squatters)[0]]
    const owner = await addUser(platform, 'merchant')
    const fields = { shop_domain: DOMAIN, webhook_secret: 'secret-of-the-owner' }
    const connect = () => storesRouter.createCaller(requestOf(platform, owner)).connect(fields)
    assert.is(await outcomeOf(connect()), 'quota_exceeded')
    await sell(market, first)
    clock.pass(DAY)
    const { id } = await connect()
    assert.is(await signerOf(market, second.secret), null, 'the oldest without a signed delivery')
    assert.is(await signerOf(market, first.secret), first.storeId, 'a claim that was proved stays')
    assert.is(await signerOf(market, fields.webhook_secret), id)
    assert.is((await claimsForWebhook(platform, DOMAIN)).length, MAX_CLAIMS_PER_DOMAIN)
    const { action, actor } = await platform.database.reader
      .selectFrom('audit_entries')
      .select(['action', 'actor'])
      .where('subject_id', '=', second.storeId)
      .orderBy('id', 'desc')
      .executeTakeFirstOrThrow()
    assert.equal([action, actor], ['store.displace', owner.userId])
    assert.match((await sharedFlags(market)).at(-1)?.summary ?? '', /made room for another/)
    const secret = fields.webhook_secret
    await sell(market, { actor: owner, merchantId: owner.userId, storeId: id, secret } as Shop)
    clock.pass(DAY)
    for (let n = 0; n < MAX_CLAIMS_PER_DOMAIN; n += 1) {
      const { userId } = await addUser(platform, 'merchant')
      const claim = { shop_domain: DOMAIN, webhook_secret: `secret-of-${userId}` }
      await outcomeOf(connectStore(platform, userId, claim, makeRoom))
    }
    assert.is(await signerOf(market, secret), id, 'a proved claim stays')
  })

  it('has an operator release a claim, which cannot return until it is allowed', async ({ market }) => {
    const { platform } = market
    const squatter = await claim(market)
    const owner = await claim(market)
    const decision = {
      domain: ' KURTA.myshopify.com',
      merchantId: squatter.merchantId,
      actor: 'operator',
      reason: 'not the owner',
    }
    assert.is(await outcomeOf(allowClaim(platform, decision)), 'not_found')
    const { store } = await releaseClaim(platform, decision)
    assert.is(store.id, squatter.storeId)
    assert.is(await outcomeOf(releaseClaim(platform, decision)), 'not_found')
    assert.is(await signerOf(market, squatter.secret), null)
    assert.is(await signerOf(market, owner.secret), owner.storeId)
    const again = { shop_domain: DOMAIN, webhook_secret: 'another-secret' }
    assert.is(await outcomeOf(connectStore(platform, squatter.merchantId, again)), 'conflict')
    await allowClaim(platform, decision)
    assert.is(await outcomeOf(allowClaim(platform, decision)), 'not_found')
    assert.is((await connectStore(platform, squatter.merchantId, again)).id, squatter.storeId)
    const rows = await columnsOf(platform, 'audit_entries', ['actor', 'action', 'reason'], {
      subject_id: squatter.storeId,
    })
    assertMapped(rows, (row) => [row.actor, row.action, row.reason], [
      [squatter.merchantId, 'store.connect', null],
      ['operator', 'store.release', 'not the owner'],
      ['operator', 'store.allow', 'not the owner'],
      [squatter.merchantId, 'store.connect', null],
    ])
  })

  it('lets a merchant who removed a store connect it again, also beside other claims', async ({ market }) => {
    const first = await claim(market)
    const second = await claim(market)
    await removeStore(market.platform, first.merchantId, first.storeId)
    assert.is(await signerOf(market, first.secret), null)
    const fields = { shop_domain: DOMAIN, webhook_secret: first.secret }
    assert.is((await connectStore(market.platform, first.merchantId, fields)).id, first.storeId)
    assert.is(await signerOf(market, first.secret), first.storeId)
    assert.is(await signerOf(market, second.secret), second.storeId)
  })

  it("pauses the live offers with the merchant's last store only, on the record", async ({ market }) => {
    const { platform } = market
    const shop = await claim(market)
    const fields = { shop_domain: 'outlet.myshopify.com', webhook_secret: 'secret-of-outlet' }
    const outlet = await connectStore(platform, shop.merchantId, fields)
    const offers = [await addLiveOffer(platform, shop.actor), await addLiveOffer(platform, shop.actor)]
    const others = await addLiveOffer(platform, (await market.addShop()).actor)
    assert.is((await removeStore(platform, shop.merchantId, shop.storeId)).offersPaused, 0)
    assert.is((await removeStore(platform, shop.merchantId, outlet.id)).offersPaused, 2)
    const rows = await platform.database.reader.selectFrom('offers').select(['id', 'status']).execute()
    const statusOf = new Map(rows.map((row) => [row.id, row.status]))
    assertMapped(offers, ({ id }) => statusOf.get(id), ['paused', 'paused'])
    assert.is(statusOf.get(others.id), 'live')
    const audit = await columnsOf(
      platform,
      'audit_entries',
      ['actor', 'subject_id'],
      { action: 'offer.pause' },
      'subject_id',
    )
    assert.equal(
      audit,
      offers.map(({ id }) => ({ actor: shop.merchantId, subject_id: id })),
    )
  })

  it('does more hashing for a domain with many claims only within a budget', async ({ market }) => {
    const shops = []
    for (let n = 0; n < MAX_CLAIMS_PER_DOMAIN; n += 1) shops.push(await claim(market))
    const claims = await claimsForWebhook(market.platform, DOMAIN)
    const junk = Buffer.alloc(2 * 1024 * 1024, 0x20)
    const forged = signShopifyBody(junk, 'a secret of no claim')
    const outcomes = new Set<string>()
    // All in one second, which has one budget.
    await onMovingClock(async () => {
      for (let n = 0; n < 12; n += 1) outcomes.add(await outcomeOf(findSigner(claims, junk, forged)))
    })
    assert.ok(outcomes.has('rate_limited'))
    // The claims that come first are found anyway.
    const [first] = shops
    assert.is(
      (await findSigner(claims, junk, signShopifyBody(junk, first?.secret ?? '')))?.storeId,
      first?.storeId,
    )
    const [single] = claims
    assert.is(await findSigner(single ? [single] : [], junk, forged), null)
  })

  it.run()
}
