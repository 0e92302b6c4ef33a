import * as assert from 'uvu/assert'
import { OPERATOR } from '../flags/audit.service.ts'
import { resolveFlag } from '../flags/flags.service.ts'
import { appRouter } from '../http/router.ts'
import { connectStore, hostsOfMerchant } from '../stores/stores.service.ts'
import { addShownHost, OFFER } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Marketplace, Shop } from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { addUser, requestOf } from '../test/testkit/people.ts'
import { rowOf, rowsOf } from '../test/testkit/rows.ts'
import { createOffer, setOfferStatus, updateOffer } from './offers.service.ts'

for (const { it } of marketSuites<{ shop: Shop }>('hosts of offers')) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
  })

  const at = (host: string) => ({ ...OFFER, product_url: `https://${host}/products/lawn` })

  async function flagsAbout({ platform }: Marketplace, merchantId: string) {
    const rows = await rowsOf(platform, 'flags', { kind: 'product_host_unverified', subject_id: merchantId })
    return rows.map((row) => ({ ...row, evidence: JSON.parse(row.evidence) }))
  }

  async function hostsFlagged(market: Marketplace, merchantId: string): Promise<string[]> {
    const flags = await flagsAbout(market, merchantId)
    return flags.flatMap(({ evidence }) => evidence.hosts.map((use: { host: string }) => use.host))
  }

  function order(market: Marketplace, shop: Shop, fields: Record<string, unknown>) {
    const body = JSON.parse(orderBody({ price: 1000, createdAt: market.clock.now() }))
    return market.deliver(shop, JSON.stringify({ ...body, ...fields }))
  }

  it('are flagged once for each merchant and host', async ({ market, shop }) => {
    const { platform } = market
    const own = `s${shop.merchantId}.myshopify.com`
    for (const host of [own, `www.${own}`, 'kurta.pk']) await createOffer(platform, shop.merchantId, at(host))
    assert.equal(await flagsAbout(market, shop.merchantId), [])
    const { id } = await createOffer(platform, shop.merchantId, at('one.pk'))
    await createOffer(platform, shop.merchantId, at('one.pk'))
    await updateOffer(platform, shop.merchantId, id, { product_url: 'https://two.pk/' })
    await setOfferStatus(platform, shop.merchantId, id, 'live')
    const [flag, ...more] = await flagsAbout(market, shop.merchantId)
    assert.equal(more, [])
    assert.equal([flag?.subject_type, flag?.severity], ['user', 'medium'])
    assert.equal(await hostsFlagged(market, shop.merchantId), ['one.pk', 'two.pk'])
    await resolveFlag(platform, { flagId: flag?.id ?? '', actor: OPERATOR, note: 'his own shop' })
    await createOffer(platform, shop.merchantId, at('two.pk'))
    assert.is((await flagsAbout(market, shop.merchantId)).length, 1)
    const other = await market.addShop()
    await createOffer(platform, other.merchantId, at('one.pk'))
    assert.equal(await hostsFlagged(market, other.merchantId), ['one.pk'])
  })

  it('are flagged whenever links of a live offer lead elsewhere', async ({ market, shop }) => {
    const { platform } = market
    const creator = await market.addCreator()
    const link = await market.addLink(shop, creator)
    const links = appRouter.createCaller(requestOf(platform, creator)).links
    assert.is((await links.list({})).items[0]?.product_host, 'kurta.pk')
    await createOffer(platform, shop.merchantId, at('elsewhere.pk'))
    const [first] = await flagsAbout(market, shop.merchantId)
    await resolveFlag(platform, { flagId: first?.id ?? '', actor: OPERATOR, note: 'a draft' })
    await updateOffer(platform, shop.merchantId, link.offer_id, { product_url: 'https://elsewhere.pk/x' })
    assert.is((await links.list({})).items[0]?.product_host, 'elsewhere.pk')
    const [, second, ...more] = await flagsAbout(market, shop.merchantId)
    assert.equal(more, [])
    assert.equal(second?.evidence.hosts, [
      { host: 'elsewhere.pk', offer_id: link.offer_id, offer_status: 'live', former_host: 'kurta.pk' },
    ])
    // Another page of the same host is no change of the host.
    await updateOffer(platform, shop.merchantId, link.offer_id, { product_url: 'https://elsewhere.pk/y' })
    assert.is((await flagsAbout(market, shop.merchantId)).length, 2)
    await updateOffer(platform, shop.merchantId, link.offer_id, { product_url: 'https://kurta.pk/y' })
    assert.is((await flagsAbout(market, shop.merchantId)).length, 2)
  })

  it('are not flagged once a signed order has shown them', async ({ market, shop }) => {
    const { platform } = market
    await order(market, shop, { order_status_url: 'https://status.pk/62/orders/1/authenticate' })
    await order(market, shop, { landing_site: 'https://www.landing.pk/?aff_ref=1' })
    await order(market, await market.addShop(), { order_status_url: 'https://others.pk/1' })
    await order(market, shop, { order_status_url: 'https://of-a-test.pk/1', test: true })
    await market.drainUntilIdle()
    for (const host of ['status.pk', 'landing.pk', 'others.pk', 'of-a-test.pk']) {
      await createOffer(platform, shop.merchantId, at(host))
    }
    assert.equal(await hostsFlagged(market, shop.merchantId), ['others.pk', 'of-a-test.pk'])
  })

  it('of a shop that has shown none are looked at when its first order shows one', async ({ market }) => {
    const { platform } = market
    const actor = await addUser(platform, 'merchant')
    const merchantId = actor.userId
    const fields = { shop_domain: 'chenab-lawn.myshopify.com', webhook_secret: 'secret-of-chenab' }
    const { id: storeId } = await connectStore(platform, merchantId, fields)
    const access = { domain: fields.shop_domain, secret: fields.webhook_secret }
    const shop = { actor, merchantId, storeId, ...access }
    const goLive = async (host: string) => {
      const { id } = await createOffer(platform, merchantId, at(host))
      await setOfferStatus(platform, merchantId, id, 'live')
      return id
    }
    await goLive('www.chenab.pk')
    await goLive('elsewhere.pk')
    assert.equal(await flagsAbout(market, merchantId), [], 'most shops have a domain of their own')
    await order(market, shop, { order_status_url: 'https://chenab.pk/62/orders/1/authenticate' })
    await market.drainUntilIdle()
    assert.equal(await hostsFlagged(market, merchantId), ['elsewhere.pk'])
    await order(market, shop, { order_status_url: 'https://elsewhere.pk/62/orders/2/authenticate' })
    await market.drainUntilIdle()
    const [flag, ...more] = await flagsAbout(market, merchantId)
    assert.equal([flag?.status, more], ['resolved', []])
    const changed = await goLive('chenab.pk')
    await updateOffer(platform, merchantId, changed, { product_url: 'https://third.pk/x' })
    assert.is((await flagsAbout(market, merchantId)).at(-1)?.evidence.hosts[0].former_host, 'chenab.pk')
  })

  it('are kept for a store up to twenty, as the service wrote them', async ({ bed, market, shop }) => {
    const { platform } = market
    for (let n = 0; n < 25; n += 1) await order(market, shop, { order_status_url: `https://s${n}.pk/` })
    await market.drainUntilIdle()
    const hosts = () => platform.database.transaction((tx) => hostsOfMerchant(platform, tx, shop.merchantId))
    assert.is((await hosts()).shown.length, 20)
    const { writer } = bed.testDatabase.database
    await writer
      .updateTable('stores')
      .set({ own_hosts: '["evil.pk"]' })
      .where('id', '=', shop.storeId)
      .execute()
    assert.equal(await hosts(), { shopDomains: [], shown: [] })
    await order(market, shop, { order_status_url: 'https://late.pk/' })
    await market.drainUntilIdle()
    const { own_hosts } = await rowOf(platform, 'stores', { id: shop.storeId })
    assert.is(own_hosts, '["evil.pk"]')
  })

  it('of a merchant without a store are looked at when the offer goes live', async ({ market }) => {
    const { platform } = market
    const { userId } = await addUser(platform, 'merchant')
    const { id } = await createOffer(platform, userId, at('elsewhere.pk'))
    assert.equal(await flagsAbout(market, userId), [])
    const access = { shop_domain: 'new.myshopify.com', webhook_secret: 'secret-new' }
    await addShownHost(platform, (await connectStore(platform, userId, access)).id)
    await setOfferStatus(platform, userId, id, 'live')
    assert.equal(await hostsFlagged(market, userId), ['elsewhere.pk'])
  })

  it('are listed in one flag, however many there are, also at once', async ({ market, shop }) => {
    const { platform } = market
    const hosts = Array.from({ length: 60 }, (_, n) => `h${n}.pk`)
    for (let from = 0; from < hosts.length; from += 5) {
      const some = hosts.slice(from, from + 5)
      await Promise.all(some.map((host) => createOffer(platform, shop.merchantId, at(host))))
    }
    const [flag, ...more] = await flagsAbout(market, shop.merchantId)
    assert.equal(more, [])
    assert.equal([flag?.evidence.hosts.length, flag?.evidence.further_hosts], [50, 10])
  })

  it.run()
}
