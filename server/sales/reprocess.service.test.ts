import * as assert from 'uvu/assert'
import { notePruned } from '../clicks/click-retention.service.ts'
import { removeOldBodies } from '../inbox/inbox.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { openDatabase } from '../platform/database/open-database.ts'
import { MalformedOrder } from '../shopify/fields.ts'
import { readOrderFacts } from '../shopify/order-facts.ts'
import { changedTables, tableDigests } from '../test/authorization/digest.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Marketplace, Shop } from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { setSuspended } from '../test/testkit/people.ts'
import { assertMapped } from '../test/testkit/pluck.ts'
import { removeGuards } from '../test/testkit/tamper.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { decideSale } from './accept-sale.rule.ts'
import {
  type Difference,
  type ReprocessOptions,
  reprocessOrders,
  type SaleRule,
  TODAYS_RULE,
} from './reprocess.service.ts'
import type { SaleFacts } from './sale-facts.ts'

/** Pays one percent more than the link has locked. */
const RATHER_MORE: SaleRule = {
  ...TODAYS_RULE,
  decide: (facts) => decideSale(withRate(facts, (rate) => rate + 100)),
}

function withRate(facts: SaleFacts, change: (rate: number) => number): SaleFacts {
  const { click } = facts
  if (!click) return facts
  const link = { ...click.link, commission_rate: change(click.link.commission_rate) }
  return { ...facts, click: { ...click, link } }
}

const noted = (reference: string) => [{ reference, source: 'note_attributes' as const }]

for (const { it } of marketSuites("stored orders through today's rule")) {
  let market: Marketplace
  let shop: Shop
  let creator: Actor
  let link: LinkRecord
  it.before.each(async (context) => {
    market = context.market
    ;({ shop, creator, link } = await market.addTrade())
  })

  async function run(options: Partial<ReprocessOptions> = {}) {
    const differences: Difference[] = []
    const onDifference = (difference: Difference) => differences.push(difference)
    const report = await reprocessOrders(market.platform, { onDifference, ...options })
    return { ...report, differences }
  }

  it('find nothing to differ, whatever has changed since, and touch no table', async () => {
    const body = await market.order(shop, link, 400_000, { id: '1', name: '#1001' })
    await market.deliver(shop, body)
    // Judged before anyone is suspended.
    await market.drainUntilIdle()
    await market.deliver(shop, orderBody({ price: 100, createdAt: market.clock.now() }))
    await market.deliver(shop, '{"id": "no order at all"}')
    await market.deliver(shop, '{}', { topic: 'orders/updated' })
    await market.deliver(shop, '{}', { deliveryId: 'twice' })
    await market.deliver(shop, '{"other": 1}', { deliveryId: 'twice' })
    await setSuspended(market.platform, creator.userId, true)
    await market.order(shop, link, 500_000, { id: '2' })
    await market.drainUntilIdle()
    await setSuspended(market.platform, creator.userId, false)
    await setSuspended(market.platform, shop.merchantId, true)
    await market.deliver(shop, orderBody({ price: 100, createdAt: market.clock.now() }))
    const before = await tableDigests(market.platform.database.reader)
    const dearer = { ...market.platform, config: { ...market.platform.config, PLATFORM_FEE_RATE: 9000 } }
    const seen: number[] = []
    const report = await reprocessOrders(dearer, {
      onDifference: () => assert.unreachable('nothing may differ'),
      onProgress: (done, all) => seen.push(done, all),
    })
    assert.equal(report.counts, {
      ...{ events: 9, judged: 3, different: 0, repeats: 1, bodies_gone: 0, unreadable: 2 },
      ...{ other_topics: 1, conflicting: 1, waiting: 1, unknown_stores: 0, forged: 0, uncertain: 0 },
    })
    assert.equal(seen, [9, 9])
    assert.equal(changedTables(before, await tableDigests(market.platform.database.reader)), [])
  })

  it('show what a changed rule would make of them, in money, by order, merchant and creator', async () => {
    await market.order(shop, link, 400_000, { id: '1', name: '#1001' })
    await market.order(shop, link, 100_040, { id: '2', name: '#1002' })
    await market.deliver(shop, orderBody({ price: 100, createdAt: market.clock.now() }))
    await market.drainUntilIdle()
    const { counts, differences, merchants, creators } = await run({ rule: RATHER_MORE })
    assert.equal([counts.judged, counts.different], [3, 2])
    // 12.5 % of 4,000.00 and 1,000.40, then 13.5 %; the fee is a tenth of either, half up.
    assert.equal(
      differences.map(({ order_name, before, after }) => [
        order_name,
        [before.verdict, before.net_amount, before.commission, before.platform_fee],
        [after.verdict, after.net_amount, after.commission, after.platform_fee],
      ]),
      [
        ['#1001', ['accepted', 400_000, 50_000, 5000], ['accepted', 400_000, 54_000, 5400]],
        ['#1002', ['accepted', 100_040, 12_505, 1251], ['accepted', 100_040, 13_505, 1351]],
      ],
    )
    const totals = {
      before: { commission: 62_505, platform_fee: 6251 },
      after: { commission: 67_505, platform_fee: 6751 },
    }
    assert.equal([...merchants], [[shop.merchantId, totals]])
    assert.equal([...creators], [[creator.userId, totals]])
  })

  it('judge by the receipt alone what has no raw body, and count it', async () => {
    await market.sell(shop, link, 400_000, { id: '1' })
    market.clock.pass(91 * DAY)
    assert.is(await removeOldBodies(market.platform), 1)
    const calm = await run()
    assert.equal([calm.counts.bodies_gone, calm.counts.judged, calm.counts.different], [1, 1, 0])
    const { differences } = await run({ rule: RATHER_MORE })
    assertMapped(differences, ({ from, after }) => [from, after.commission], [['receipt', 54_000]])
  })

  it('see what today’s reading makes of a body, also of one that made no sale', async () => {
    const other = await market.addCreator('Zoya')
    const click = await market.click(await market.addLink(shop, other))
    const order = { price: 300_000, createdAt: market.clock.now(), id: '7', name: '#7', click }
    for (const _ of [1, 2]) await market.deliver(shop, orderBody(order).replace('"PKR"', '"rupees"'))
    await market.order(shop, link, 400_000, { id: '1', name: '#1' })
    await market.order(shop, link, 400_000, { id: '2', name: '#2' })
    await market.drainUntilIdle()
    const rule: SaleRule = {
      ...TODAYS_RULE,
      read(raw, parameter) {
        const order = readOrderFacts(raw.replace('"rupees"', '"PKR"'), parameter)
        if (order.order_id === '2') throw new MalformedOrder('too plain')
        return order.order_id === '1' ? { ...order, references: noted(click) } : order
      },
    }
    const { counts, differences, creators } = await run({ rule })
    assert.equal([counts.repeats, counts.different, counts.uncertain], [1, 3, 2])
    assert.equal(
      differences.map(({ order_name, before, after, lost, sale_id }) => [
        ...[order_name, before.reason ?? before.verdict, after.reason ?? after.verdict],
        ...[after.creator_id, lost, sale_id === null],
      ]),
      [
        [
          ...['#7', 'malformed: currency is no code of three letters', 'accepted', other.userId],
          ...[['merchant_suspended', 'creator_suspended', 'platform_fee_rate'], true],
        ],
        ['#1', 'accepted', 'accepted', other.userId, ['creator_suspended'], false],
        ['#2', 'accepted', 'malformed: too plain', null, [], false],
      ],
    )
    const earned = (id: string) => [
      creators.get(id)?.before.commission ?? 0,
      creators.get(id)?.after.commission ?? 0,
    ]
    assert.equal(earned(creator.userId), [100_000, 0])
    assert.equal(earned(other.userId), [0, 87_500])
  })

  it('tell where a click that today’s reading leads to may have been taken away', async () => {
    const gone = await market.click(link)
    await market.click(link)
    await market.sell(shop, link, 400_000)
    const { database } = market.platform
    await database.transaction((tx) => tx.deleteFrom('clicks').where('id', '=', gone).execute())
    const rule: SaleRule = {
      ...TODAYS_RULE,
      read: (raw, parameter) => ({ ...readOrderFacts(raw, parameter), references: noted(gone) }),
    }
    const lostNow = async () => (await run({ rule })).differences.map(({ lost }) => lost)
    assert.equal(await lostNow(), [[]])
    await database.transaction((tx) => notePruned(tx, 'ffffffff-ffff-7fff-bfff-ffffffffffff'))
    assert.equal(await lostNow(), [['click']])
    assert.is((await run({ rule })).counts.uncertain, 1)
    assert.is((await run()).counts.uncertain, 0)
  })

  it('rest on no sale where their outcome was changed into none', async () => {
    const { database } = market.bed.testDatabase
    await removeGuards(database)
    for (const result of ['null', '5', '{"sale_id": 5}', '{"sale_id": "none"}', 'not JSON']) {
      await market.sell(shop, link, 400_000)
      await database.writer.updateTable('inbound_events').set({ result }).execute()
      const { events, repeats, different } = (await run()).counts
      assert.equal([repeats, different], [events, 0], result)
    }
  })

  it('are those of one store, or since a moment', async () => {
    const next = await market.addShop('Ravi Shawls')
    await market.order(shop, link, 400_000)
    market.clock.pass(DAY)
    const moment = market.clock.now()
    await market.order(shop, link, 400_000)
    await market.deliver(next, orderBody({ price: 100, createdAt: moment }))
    await market.drainUntilIdle()
    for (const [options, events] of [
      [{}, 3],
      [{ since: moment }, 2],
      [{ since: moment + 1 }, 0],
      [{ storeIds: [next.storeId] }, 1],
      [{ since: moment, storeIds: [shop.storeId] }, 1],
      [{ storeIds: [] }, 0],
    ] as const)
      assert.is((await run(options)).counts.events, events, JSON.stringify(options))
  })

  it('are read in lots, each order once, and from a database that refuses to write', async () => {
    const order = { price: 100_000, createdAt: market.clock.now() }
    for (let count = 0; count < 230; count += 1) await market.deliver(shop, orderBody(order))
    await market.drainUntilIdle()
    const database = await openDatabase(market.bed.testDatabase.url, { create: false, readOnly: true })
    try {
      const lots: number[] = []
      const { counts } = await reprocessOrders(
        { ...market.platform, database },
        { onDifference: () => undefined, onProgress: (done) => lots.push(done) },
      )
      assert.equal([lots, counts.judged], [[100, 200, 230], 230])
      for (const writing of [database.writer, database.reader]) {
        const refusal = await writing.deleteFrom('watermarks').execute().catch(String)
        assert.match(String(refusal), /read-?only/)
      }
    } finally {
      await database.close()
    }
  })

  it.run()
}
