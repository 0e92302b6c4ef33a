import * as assert from 'uvu/assert'
import { createIds } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { openMarketplace } from '../test/testkit/marketplace.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { clicksPrunedBefore, enforceClickRetention } from './click-retention.service.ts'
import { countVisits, rollUpClicks } from './clicks.service.ts'

for (const { it, dialect } of marketSuites('retention of clicks', {
  settings: { CLICK_RETENTION_DAYS: '486' },
  idsOf: createIds,
})) {
  const clickIds = async ({ database }: Platform) =>
    (await database.reader.selectFrom('clicks').select('id').orderBy('id').execute()).map(({ id }) => id)

  it('takes old clicks away, keeps the counts, and the books stay right', async ({ market, platform }) => {
    const { clock } = market
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    await market.order(shop, link, 100_000)
    await market.drainUntilIdle()
    await enforceClickRetention(platform)
    clock.set('2090-06-15T00:00:00.000Z')
    const young = await market.click(link)
    await enforceClickRetention(platform)
    assert.equal(await clickIds(platform), [young])
    assert.ok((await clicksPrunedBefore(platform.database.reader)) < young)
    assert.is((await countVisits(platform.database.reader, [link.id])).get(link.id)?.all, 2)
    await rollUpClicks(platform)
    assert.is((await countVisits(platform.database.reader, [link.id])).get(link.id)?.all, 2)
    await market.verify()
    assert.is(await enforceClickRetention(platform), 0)
  })

  it('still misses a click that is too young to have been taken away', async ({ market, platform }) => {
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    await market.order(shop, link, 100_000)
    await market.drainUntilIdle()
    await platform.database.transaction((tx) => tx.deleteFrom('clicks').execute())
    const error = await market.verify().catch((reason: assert.Assertion) => reason)
    assert.match(String(error?.actual), 'does not exist')
  })

  it('keeps every click without a retention time', async () => {
    const market = await openMarketplace(dialect)
    const link = await market.addLink(await market.addShop(), await market.addCreator())
    await market.click(link)
    market.clock.pass(4000 * DAY)
    await rollUpClicks(market.platform)
    assert.is(await enforceClickRetention(market.platform), 0)
    assert.is((await clickIds(market.platform)).length, 1)
    await market.close()
  })

  it.run()
}
