import * as assert from 'uvu/assert'
import { scanClicks } from '../clicks/clicks.service.ts'
import { createEndpoint } from '../notifications/channels/webhooks/endpoints.service.ts'
import { ABOVE_ALL_IDS, type KeysetScan, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { requestOf } from '../test/testkit/people.ts'
import { columnsOf } from '../test/testkit/rows.ts'
import { salesRouter } from './sales.procedures.ts'
import { scanSales } from './sales.service.ts'

const PAGE = { below: ABOVE_ALL_IDS, size: 10, from: null, to: null }

for (const { it } of marketSuites('sub ids')) {
  it('are shown with a sale and its click to creator and admins, not the merchant', async ({ market }) => {
    const { platform } = market
    const shop = await market.addShop()
    const sana = await market.addCreator('Sana')
    for (const actor of [sana, shop.actor]) {
      await createEndpoint(platform, actor, {
        url: 'http://127.0.0.1:8009/',
        events: ['sale.accepted'],
        description: '',
      })
    }
    const click = await market.click(await market.addLink(shop, sana), true, 'reel-12')
    await market.deliver(shop, orderBody({ price: 100_000, click, createdAt: market.clock.now() }))
    await market.drainUntilIdle()
    const as = (actor: typeof sana) => salesRouter.createCaller(requestOf(platform, actor))
    const [own] = (await as(sana).list({})).items
    assert.is(own?.sub_id, 'reel-12')
    assert.is((await as(sana).get({ id: own?.id ?? '' })).sub_id, 'reel-12')
    assert.not.ok('sub_id' in ((await as(shop.actor).list({})).items[0] ?? {}))
    const exported = async (scan: (platform: Platform, scope: ScanScope) => KeysetScan<object>) => {
      const scopes: ScanScope[] = [{ creatorId: sana.userId }, 'all', { merchantId: shop.merchantId }]
      const pages = await Promise.all(scopes.map((scope) => scan(platform, scope).read(PAGE)))
      return pages.map(({ items }) => (items[0] as { sub_id?: string }).sub_id)
    }
    assert.equal(await exported(scanSales), ['reel-12', 'reel-12', undefined])
    assert.equal(await exported(scanClicks), ['reel-12', 'reel-12', undefined])
    const events = await columnsOf(platform, 'outbox_events', ['account_id', 'data'], {
      type: 'sale.accepted',
    })
    const subIds = new Map(events.map(({ account_id, data }) => [account_id, JSON.parse(data).sub_id]))
    assert.equal([subIds.get(sana.userId), subIds.get(shop.merchantId)], ['reel-12', undefined])
  })

  it.run()
}
