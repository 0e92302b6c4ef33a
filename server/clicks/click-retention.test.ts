import { sql } from 'kysely'
import { v7 } from 'uuid'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Platform } from '../platform/platform.ts'
import { testDialects } from '../proof/testbed/databases.ts'
import { type Marketplace, openMarketplace } from '../proof/testbed/marketplace.ts'
import { DAY, MINUTE } from '../proof/testbed/testbed.ts'
import { clicksPrunedBefore, tendClicks } from './click-retention.service.ts'
import { clickParts } from './click-retention.store.ts'
import { countVisits, rollUpClicks } from './clicks.service.ts'

interface Context {
  market: Marketplace
  /** With ids of the market's own time. */
  platform: Platform
}

for (const dialect of testDialects()) {
  const it = suite<Context>(`retention of clicks on ${dialect}`)
  it.before.each(async (context) => {
    const market = await openMarketplace(dialect, { CLICK_RETENTION_DAYS: '450' })
    const ids = { next: () => v7({ msecs: market.clock.now() }) }
    Object.assign(context, { market, platform: Object.assign(market.platform, { ids }) })
  })
  it.after.each(({ market }) => market.close())

  const clickIds = async ({ database }: Platform) =>
    (await database.reader.selectFrom('clicks').select('id').orderBy('id').execute()).map(({ id }) => id)

  it('takes old clicks away once they are counted, keeps the counts, and the books stay right', async ({
    market,
    platform,
  }) => {
    const { clock } = market
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    await market.order(shop, link, 100_000)
    await market.workOff()
    await tendClicks(platform)
    // Beyond whatever month the migration ran in.
    clock.set('2090-06-15T00:00:00.000Z')
    const young = await market.click(link)
    // Not counted yet: nothing may go.
    await tendClicks(platform)
    assert.is((await clickIds(platform)).length, 2)
    clock.pass(MINUTE)
    await rollUpClicks(platform)
    await tendClicks(platform)
    assert.equal(await clickIds(platform), [young])
    assert.ok((await clicksPrunedBefore(platform.database.reader)) < young)
    assert.is((await countVisits(platform.database.reader, [link.id])).get(link.id), 2)
    await market.verify()
    assert.is(await tendClicks(platform), 0)
  })

  it('still misses a click that is too young to have been taken away', async ({ market, platform }) => {
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    await market.order(shop, link, 100_000)
    await market.workOff()
    await platform.database.transaction((tx) => tx.deleteFrom('clicks').execute())
    const error = await market.verify().catch((reason: assert.Assertion) => reason)
    assert.match(String(error?.actual), 'does not exist')
  })

  it('keeps every click unless it is told how long', async () => {
    const market = await openMarketplace(dialect)
    const link = await market.addLink(await market.addShop(), await market.addCreator())
    await market.click(link)
    market.clock.pass(4000 * DAY)
    await rollUpClicks(market.platform)
    assert.is(await tendClicks(market.platform), 0)
    assert.is((await clickIds(market.platform)).length, 1)
    await market.close()
  })

  if (dialect === 'postgresql') {
    it('gives each month a table of its own ahead of time, once', async ({ market, platform }) => {
      const { reader } = platform.database
      const link = await market.addLink(await market.addShop(), await market.addCreator())
      market.clock.set('2080-11-15T00:00:00.000Z')
      await tendClicks(platform)
      market.clock.set('2080-12-31T23:59:59.999Z')
      await tendClicks(platform)
      const tables = (await clickParts(reader)).map(({ table }) => table)
      const months = ['2080_11', '2080_12', '2081_01', '2081_02'].map((month) => `clicks_${month}`)
      assert.equal(tables, ['clicks_first', ...months])
      const id = await market.click(link)
      const { rows } = await sql<{ part: string }>`
        select cast(tableoid::regclass as text) as part from clicks where id = ${id}`.execute(reader)
      assert.is(rows[0]?.part, 'clicks_2080_12')
    })

    it('goes on where a month cannot get its table any more', async ({ market, platform }) => {
      const link = await market.addLink(await market.addShop(), await market.addCreator())
      market.clock.set('2080-11-15T00:00:00.000Z')
      const late = await market.click(link)
      await tendClicks(platform)
      assert.ok((await clickIds(platform)).includes(late))
    })
  }

  it.run()
}
