import { sql } from 'kysely'
import { v7 } from 'uuid'
import * as assert from 'uvu/assert'
import type { Platform } from '../platform/platform.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { type Marketplace, openMarketplace } from '../test/testkit/marketplace.ts'
import { openRival } from '../test/testkit/rival.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { type ClickMonth, monthsFrom } from './click-months.rule.ts'
import { clicksPrunedBefore, enforceClickRetention } from './click-retention.service.ts'
import { addPart, clickParts } from './click-retention.store.ts'
import { countVisits, rollUpClicks } from './clicks.service.ts'

interface Context {
  market: Marketplace
  /** With ids of the market's own time. */
  platform: Platform
}

/** The warnings from now on: which month or table, and the error's name. */
function listenIn(platform: Platform): [table: unknown, error: string | null][] {
  const warnings: [unknown, string | null][] = []
  const warn = ({ month, table, err }: { month?: string; table?: string; err?: Error }) =>
    warnings.push([month ?? table, err?.name ?? null])
  Object.assign(platform, { log: { warn } })
  return warnings
}

/** How often transactions are begun in `work`, tries again included. */
async function begunIn(platform: Platform, work: () => Promise<unknown>): Promise<number> {
  const { database } = platform
  let begun = 0
  const transaction: typeof database.transaction = (inside) =>
    database.transaction((tx) => {
      begun += 1
      return inside(tx)
    })
  Object.assign(platform, { database: { ...database, transaction } })
  await work().finally(() => Object.assign(platform, { database }))
  return begun
}

async function monthTables({ database }: Platform): Promise<string[]> {
  const tables = (await clickParts(database.reader)).map(({ table }) => table.replace('clicks_', ''))
  return tables.filter((table) => table !== 'first')
}

/** The same service, which removes no click. */
function keepingAll(platform: Platform): Platform {
  return { ...platform, config: { ...platform.config, CLICK_RETENTION_DAYS: 0 } }
}

/** Reads clicks in a transaction of another process' until the answered function is called. */
async function readingRival({ bed }: Marketplace): Promise<() => Promise<void>> {
  const rival = await openRival(bed)
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const reading = rival.platform.database.transaction(async (tx) => {
    await tx.selectFrom('clicks').select('id').execute()
    held.resolve()
    await released.promise
  })
  await held.promise
  return async () => {
    released.resolve()
    await reading
    await rival.close()
  }
}

for (const { it, dialect } of marketSuites<Context>('retention of clicks', {
  settings: { CLICK_RETENTION_DAYS: '486' },
})) {
  it.before.each(async (context) => {
    const { market } = context
    const ids = { next: () => v7({ msecs: market.clock.now() }) }
    Object.assign(context, { platform: Object.assign(market.platform, { ids }) })
  })

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
    await market.drainUntilIdle()
    await enforceClickRetention(platform)
    // Beyond whatever month the migration ran in.
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

  if (dialect === 'postgresql') {
    it('gives each month a table of its own ahead of time, once', async ({ market, platform }) => {
      const { reader } = platform.database
      const link = await market.addLink(await market.addShop(), await market.addCreator())
      market.clock.set('2080-11-15T00:00:00.000Z')
      await enforceClickRetention(keepingAll(platform))
      market.clock.set('2080-12-31T23:59:59.999Z')
      await enforceClickRetention(keepingAll(platform))
      const tables = (await clickParts(reader)).map(({ table }) => table)
      const months = ['2080_11', '2080_12', '2081_01', '2081_02'].map((month) => `clicks_${month}`)
      assert.equal(tables, ['clicks_first', ...months])
      const id = await market.click(link)
      const { rows } = await sql<{ part: string }>`
        select cast(tableoid::regclass as text) as part from clicks where id = ${id}`.execute(reader)
      assert.is(rows[0]?.part, 'clicks_2080_12')
    })

    it('makes good a month that got no table when a later one did', async ({ market, platform }) => {
      market.clock.set('2080-11-15T00:00:00.000Z')
      const [, , january] = monthsFrom(market.clock.now(), 2)
      await platform.database.transaction((tx) => addPart(tx, january as ClickMonth))
      await enforceClickRetention(platform)
      assert.equal(await monthTables(platform), ['2080_11', '2080_12', '2081_01'])
    })

    it('holds clicks up once when others keep the table, and makes the months another time', async ({
      market,
      platform,
    }) => {
      market.clock.set('2080-11-15T00:00:00.000Z')
      const warnings = listenIn(platform)
      const release = await readingRival(market)
      assert.is(await begunIn(platform, () => enforceClickRetention(keepingAll(platform))), 1)
      assert.equal(warnings, [['clicks_2080_11', 'ClicksHeldUp']])
      await release()
      await enforceClickRetention(keepingAll(platform))
      assert.equal(await monthTables(platform), ['2080_11', '2080_12', '2081_01'])
    })

    it('holds clicks up once for an old month that others read, and drops it another time', async ({
      market,
      platform,
    }) => {
      market.clock.set('2080-11-15T00:00:00.000Z')
      await enforceClickRetention(keepingAll(platform))
      const link = await market.addLink(await market.addShop(), await market.addCreator())
      await market.click(link)
      market.clock.set('2090-06-15T00:00:00.000Z')
      await enforceClickRetention(keepingAll(platform))
      const warnings = listenIn(platform)
      const release = await readingRival(market)
      // The mark is moved, and one table is tried.
      assert.is(await begunIn(platform, () => enforceClickRetention(platform)), 2)
      assert.equal(warnings, [['clicks_first', 'ClicksHeldUp']])
      await release()
      await enforceClickRetention(platform)
      assert.equal(await clickIds(platform), [])
      assert.equal(await monthTables(platform), ['2090_06', '2090_07', '2090_08'])
    })

    it('leaves a month alone whose clicks lie among all others, and takes them away in their time', async ({
      market,
      platform,
    }) => {
      const link = await market.addLink(await market.addShop(), await market.addCreator())
      market.clock.set('2080-11-15T00:00:00.000Z')
      const late = await market.click(link)
      const warnings = listenIn(platform)
      await enforceClickRetention(keepingAll(platform))
      assert.ok((await clickIds(platform)).includes(late))
      assert.equal(warnings, [['clicks_2080_11', null]])
      assert.equal(await monthTables(platform), ['2080_12', '2081_01'])
      market.clock.pass(486 * DAY + 1)
      const edge = await market.click(link)
      assert.ok((await enforceClickRetention(platform)) > 0)
      assert.equal(await clickIds(platform), [edge])
      assert.ok((await clicksPrunedBefore(platform.database.reader)) > late)
    })
  }

  it.run()
}
