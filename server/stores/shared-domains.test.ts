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
import { assertMapped, pluck, pluckAll } from '../test/testkit/pluck.ts'
import { fc } from '../test/testkit/property.ts'
import { auditOf, rowsOf } from '../test/testkit/rows.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { allowClaim, makeRoom, releaseClaim, removeStore } from './remove-store.service.ts'
import { storesRouter } from './stores.procedures.ts'
import { connectStore, rotateSecret } from './stores.service.ts'
import { claimsForWebhook, findSigner, MAX_CLAIMS_PER_DOMAIN } from './webhook-claims.service.ts'

const DOMAIN = 'kurta.myshopify.com'

for (const { it } of marketSuites('claims on one domain')) {
  let number = 0
  /** Another merchant who connects the domain with a secret of their own. */
  async function claim(
    { platform }: Marketplace,
    secret = `secret-of-claim-${++number}`,
    domain = DOMAIN,
  ): Promise<Shop & { secret: string }> {
    const actor = await addUser(platform, 'merchant')
    const fields = { shop_domain: domain, webhook_secret: secret }
    const store = await connectStore(platform, actor.userId, fields)
    return { actor, merchantId: actor.userId, storeId: store.id, secret }
  }

  async function claims(market: Marketplace, count: number) {
    const made: Awaited<ReturnType<typeof claim>>[] = []
    for (let n = 0; n < count; n += 1) made.push(await claim(market))
    return made
  }

  async function signerOf({ platform }: Marketplace, secret: string, domain = DOMAIN) {
    const body = Buffer.from('{"id":1}')
    const claiming = await claimsForWebhook(platform, domain)
    const find = async () =>
      (await findSigner(claiming, body, signShopifyBody(body, secret)))?.storeId ?? null
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
        const stores = new Map<number, { shop: Shop; secrets: number }>()
        for (const [index, text] of secrets.entries()) {
          const owner = owners[index] ?? 0
          // A secret belongs to one store, also across runs.
          const secret = `${text}-${run}`
          const store = stores.get(owner)
          if (store && store.secrets === 4) continue
          const shop = store?.shop ?? (await claim(market, secret, domain))
          if (store) await rotateSecret(platform, shop.merchantId, shop.storeId, { secret })
          stores.set(owner, { shop, secrets: (store?.secrets ?? 0) + 1 })
          expected.set(secret, shop.storeId)
        }
        const first = [...stores.values()][receiving % stores.size]
        if (first) await sell(market, first.shop)
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
    const accepted = await rowsOf(market.platform, 'sales', { acceptance_status: 'accepted' })
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
    for (const shop of await claims(market, 4)) {
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
    await claims(market, MAX_CLAIMS_PER_DOMAIN - 1)
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => outcomeOf(claim(market))))
    assert.equal(outcomes.sort(), ['ok', ...Array(7).fill('quota_exceeded')])
    assert.is((await claimsForWebhook(platform, DOMAIN)).length, MAX_CLAIMS_PER_DOMAIN)
    const [flag, ...more] = await sharedFlags(market)
    assert.equal(more, [])
    assert.is(flag?.evidence.claims.length, MAX_CLAIMS_PER_DOMAIN)
    assert.ok(flag?.evidence.refused_merchant_id)
  })

  it('lets the owner in where claims that proved nothing for a day fill the domain', async ({ market }) => {
    const { platform, clock } = market
    const squatters = await claims(market, MAX_CLAIMS_PER_DOMAIN)
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
    const last = (await auditOf(platform, { subject_id: second.storeId })).at(-1)
    assert.equal([last?.action, last?.actor], ['store.displace', owner.userId])
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
    const audit = await auditOf(platform, { subject_id: squatter.storeId })
    assert.equal(pluckAll(audit, 'actor', 'action', 'reason'), [
      [squatter.merchantId, 'store.connect', null],
      ['operator', 'store.release', 'not the owner'],
      ['operator', 'store.allow', 'not the owner'],
      [squatter.merchantId, 'store.connect', null],
    ])
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
    const statuses = pluckAll(await rowsOf(platform, 'offers'), 'id', 'status')
    const paused = offers.map(({ id }) => [id, 'paused'])
    assert.equal(statuses, [...paused, [others.id, 'live']])
    const audit = await auditOf(platform, { action: 'offer.pause' })
    assert.equal(
      pluckAll(audit, 'subject_id', 'actor').sort(),
      offers.map(({ id }) => [id, shop.merchantId]),
    )
  })

  it('does more hashing for a domain with many claims only within a budget', async ({ market }) => {
    const [first] = await claims(market, MAX_CLAIMS_PER_DOMAIN)
    const claiming = await claimsForWebhook(market.platform, DOMAIN)
    const junk = Buffer.alloc(2 * 1024 * 1024, 0x20)
    const forged = signShopifyBody(junk, 'a secret of no claim')
    const outcomes = new Set<string>()
    // All in one second, which has one budget.
    await onMovingClock(async () => {
      for (let n = 0; n < 12; n += 1) outcomes.add(await outcomeOf(findSigner(claiming, junk, forged)))
    })
    assert.ok(outcomes.has('rate_limited'))
    // The claims that come first are found anyway.
    const found = await findSigner(claiming, junk, signShopifyBody(junk, first?.secret ?? ''))
    assert.is(found?.storeId, first?.storeId)
    const [single] = claiming
    assert.is(await findSigner(single ? [single] : [], junk, forged), null)
  })

  it.run()
}
