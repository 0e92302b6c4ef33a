import { type CompiledQuery, sql } from 'kysely'
import * as assert from 'uvu/assert'
import type { z } from 'zod'
import { listSalesInput } from '../../shared/schemas/sales.ts'
import { findPendingOrder } from '../pending-orders/pending-orders.service.ts'
import { encodeCursor } from '../platform/api/page.ts'
import type { Queries } from '../platform/database/database.ts'
import { ABOVE_ALL_IDS } from '../platform/database/keyset-scan.ts'
import { insertRows } from '../platform/database/protected-rows.ts'
import { createIds } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { findOrder } from '../sales/sale-explanation.service.ts'
import { listSales } from '../sales/sale-list.service.ts'
import { scanSales } from '../sales/sales.service.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Marketplace } from '../test/testkit/marketplace.ts'
import { rowOf } from '../test/testkit/rows.ts'
import { statementsOf, stepsOf } from '../test/testkit/statements.ts'
import { DAY } from '../test/testkit/testbed.ts'
import {
  cyclesChangedSince,
  payoutsChangedSince,
  saleIdsAfter,
  salesDecidedAgainSince,
} from './live.store.ts'
import { salesBy, visitsBy } from './series.store.ts'
import { countOutcomes, ownLinkIds, topCreators, topOffers } from './summaries.store.ts'

interface World {
  merchantId: string
  creatorId: string
  cycleId: string
}

const SALES_OF_OTHERS = 20_000

for (const { it } of marketSuites<World>('plans of summaries and live streams', {
  idsOf: createIds,
  shared: true,
})) {
  it.before(async (world) => {
    Object.assign(world, await fill(world.market))
  })

  it('reads own rows only, however many others exist', async ({ market, merchantId, creatorId, cycleId }) => {
    const { platform, clock } = market
    const recent = { from: clock.now() - 30 * DAY, to: null }
    const month = { from: clock.now() - 30 * DAY, to: clock.now() }
    const after = platform.ids.next()
    const since = clock.now() - 90_000
    const days = { ...month, first: 0, last: 30_000, offsets: [{ since: 0, offset: 0 }] }
    const reads: Record<string, (db: Queries) => Promise<unknown>> = {
      'outcomes of a merchant': (db) => countOutcomes(db, { merchantId }, recent),
      'outcomes of a creator': (db) => countOutcomes(db, { creatorId }, month),
      'second decisions of a merchant': (db) => salesDecidedAgainSince(db, { merchantId }, since),
      'visits by day': (db) => visitsBy(db, [merchantId], 'day', days),
      'visits by sub id': (db) => visitsBy(db, [creatorId], 'sub_id', days),
      'sales by link of a merchant': (db) => salesBy(db, { merchantId }, 'link', days),
      'sales by sub id of a creator': (db) => salesBy(db, { creatorId }, 'sub_id', days),
      'offers of a cycle': (db) => topOffers(db, cycleId, 10),
      'creators of a cycle': (db) => topCreators(db, cycleId, 10),
      'links of a creator': (db) => ownLinkIds(db, { creatorId }),
      'links of a merchant': (db) => ownLinkIds(db, { merchantId }),
      'new sales of a merchant': (db) => saleIdsAfter(db, { merchantId }, after, 100),
      'new sales of a creator': (db) => saleIdsAfter(db, { creatorId }, after, 100),
      'payouts of a creator': (db) => payoutsChangedSince(db, { creatorId }, since),
      'payouts of a merchant': (db) => payoutsChangedSince(db, { merchantId }, since),
      'cycles of a merchant': (db) => cyclesChangedSince(db, merchantId, since),
    }
    for (const [name, read] of Object.entries(reads)) {
      for (const query of await statementsOf(platform.database, read)) {
        assert.equal(await scansOf(platform, query), [], name)
      }
    }
  })

  it('reads a window of own sales for a filtered list, however many others there are', async (world) => {
    const { market, merchantId, creatorId, cycleId } = world
    const { platform } = market
    const now = new Date(market.clock.now())
    const { slug } = await rowOf(platform, 'affiliate_links')
    const some = platform.ids.next()
    /** With the index for a merchant, if it is not that of own sales. */
    const filters: [filter: z.input<typeof listSalesInput>, index?: string][] = [
      [{}],
      [{ from: new Date(now.getTime() - 30 * DAY).toISOString(), to: now.toISOString() }],
      [{ order_id: 'filler 1' }, 'sales_order'],
      [{ order_name: '#1001' }, 'sales_order_name'],
      [{ store_id: some }],
      [{ store_id: some, order_name: '#1001' }, 'sales_order_name'],
      [{ offer_id: some }],
      [{ creator_id: creatorId }],
      [{ billing_cycle_id: cycleId }, 'sales_cycle'],
      [{ affiliate_link_slug: slug }],
      [{ rejection_reason: 'not_paid' }],
      [{ acceptance_status: 'accepted', cursor: encodeCursor(some) }],
    ]
    for (const scope of [{ merchantId }, { creatorId }]) {
      for (const [filter, search = 'sales_merchant'] of filters) {
        const index = 'merchantId' in scope ? search : 'sales_creator'
        const read = (db: Queries) => listSales(over(platform, db), scope, listSalesInput.parse(filter))
        const said = JSON.stringify([scope, filter])
        await isReadBy(platform, read, 'sales', `${index} `, said)
      }
    }
  })

  it('finds an order of any store by its name or id, and the sales of an invoice, by an index', async (world) => {
    const { platform } = world.market
    const { merchantId, cycleId } = world
    const page = { below: ABOVE_ALL_IDS, size: 500, from: null, to: null }
    const byOrder = (order: string) => (db: Queries) => findOrder(over(platform, db), order, null)
    const reads: [read: (db: Queries) => Promise<unknown>, table: string, index: string][] = [
      [byOrder('#1234'), 'sales', 'sales_order'],
      [byOrder('filler 1234'), 'sales', 'sales_order'],
      [(db) => scanSales(over(platform, db), { merchantId }, cycleId).read(page), 'sales', 'sales_cycle'],
      [(db) => scanSales(over(platform, db), 'all', cycleId).count(page), 'sales', 'sales_cycle'],
    ]
    // PostgreSQL reads a table without rows.
    if (platform.database.dialect === 'sqlite')
      reads.push([
        (db) => findPendingOrder(over(platform, db), '#1234', null),
        'pending',
        'pending_orders_order',
      ])
    for (const [read, table, index] of reads) await isReadBy(platform, read, table, index)
  })

  it('sums up the totals of cycles in their index on SQLite, without a look at the sales', async ({
    platform,
  }) => {
    const { dialect, reader } = platform.database
    if (dialect !== 'sqlite') return
    for (const by of ['billing_cycle_id', 'billing_cycle_id, creator_id']) {
      const { rows } = await sql<{ detail: string }>`explain query plan
        select ${sql.raw(by)}, count(*), sum(commission), sum(platform_fee) from sales
        where billing_cycle_id is not null group by ${sql.raw(by)}`.execute(reader)
      assert.is(rows.length, 1, JSON.stringify(rows))
      assert.match(rows[0]?.detail ?? '', /USING COVERING INDEX sales_cycle_shares\b/)
    }
  })

  it('finds sales that were decided again by their own index', async ({ market, merchantId, creatorId }) => {
    const { platform, clock } = market
    const month = { from: clock.now() - 30 * DAY, to: clock.now() }
    const recently = (db: Queries) => salesDecidedAgainSince(db, { merchantId }, clock.now() - 90_000)
    const queries = [
      (await statementsOf(platform.database, (db) => countOutcomes(db, { merchantId }, month)))[1],
      (await statementsOf(platform.database, (db) => countOutcomes(db, { creatorId }, month)))[1],
      ...(await statementsOf(platform.database, recently)),
    ]
    for (const query of queries) {
      assert.ok(query)
      const steps = await stepsOf(platform.database, platform.database.reader, query)
      const plan = steps.join('\n')
      assert.match(plan, 'sales_decided_again')
      assert.not.match(plan, /sales_(merchant|creator) (?!\(\w+=\? AND id=\?\))/)
    }
  })

  it.run()
}

/** One merchant's accepted sale, and a great many sales, cycles and payouts of others. */
async function fill(market: Marketplace): Promise<World> {
  const { platform } = market
  const { shop, creator, link } = await market.addTrade()
  await market.sell(shop, link, 100_000)
  const sale = await rowOf(platform, 'sales')
  const cycle = await rowOf(platform, 'billing_cycles')
  const others: { merchant: string; store: string; creator: string }[] = []
  for (let number = 0; number < 20; number += 1) {
    const other = await market.addShop(`other ${number}`)
    const earner = await market.addCreator(`earner ${number}`)
    others.push({ merchant: other.merchantId, store: other.storeId, creator: earner.userId })
  }
  await platform.database.transaction(async (tx) => {
    const cycles = others.flatMap(({ merchant }) =>
      Array.from({ length: 50 }, (_, index) => ({
        ...cycle,
        id: platform.ids.next(),
        merchant_id: merchant,
        state: 'closed' as const,
        closed_at: cycle.created_at,
        // A merchant's cycles never overlap.
        period_start: cycle.period_start + index,
        period_end: cycle.period_start + index + 1,
      })),
    )
    await insertRows(tx, 'billing_cycles', cycles)
    // A payout of each.
    const payouts = cycles.map((_, index) => ({
      ...{ id: platform.ids.next(), creator_id: others[Math.floor(index / 50)]?.creator ?? '', amount: 100 },
      ...{ state: 'pending' as const, processor_payout_id: null, failure_reason: null },
      ...{ created_at: cycle.created_at, submitted_at: null, settled_at: null },
    }))
    await tx.insertInto('payouts').values(payouts).execute()
    const lines = cycles.map(({ id, merchant_id }, index) => ({
      ...{ payout_id: payouts[index]?.id ?? '', billing_cycle_id: id, merchant_id, amount: 100 },
    }))
    await tx.insertInto('payout_lines').values(lines).execute()
    const shares = cycles.map(({ id }, index) => ({
      ...{ billing_cycle_id: id, creator_id: payouts[index]?.creator_id ?? '', sales_count: 1 },
      ...{ commission: 100, released_at: null, carried: 0 },
    }))
    await tx.insertInto('billing_cycle_shares').values(shares).execute()
    for (let at = 0; at < SALES_OF_OTHERS; at += 1000) {
      const rows = Array.from({ length: 1000 }, (_, index) => {
        const other = others[index % others.length] ?? { store: '', merchant: '', creator: '' }
        return {
          ...sale,
          ...{ id: platform.ids.next(), order_id: `filler ${at + index}`, order_name: `#${at + index}` },
          ...{ store_id: other.store, merchant_id: other.merchant, creator_id: other.creator },
          ...({ acceptance_status: 'rejected', rejection_reason: 'not_paid' } as const),
          ...{ link_id: null, billing_cycle_id: null, commission: 0, platform_fee: 0, receipt: '{}' },
        }
      })
      await tx.insertInto('sales').values(rows).execute()
      const day = { sub_id: '', day: 20_000, visits: 1, unique_visits: 1 }
      const days = rows.map(({ id }) => ({ link_id: id, ...day }))
      await tx.insertInto('click_days').values(days).execute()
    }
    await sql`analyze`.execute(tx)
  })
  return { merchantId: shop.merchantId, creatorId: creator.userId, cycleId: cycle.id }
}

/**
 * The steps in which a statement reads a table from one end to the other. Neither database troubles to look up what stands
 * in a table of a few rows, or of none.
 */
async function scansOf(platform: Platform, query: CompiledQuery): Promise<string[]> {
  const { dialect } = platform.database
  const steps = await stepsOf(platform.database, platform.database.reader, query)
  return steps.filter((step) =>
    dialect === 'sqlite'
      ? /^SCAN (?!CONSTANT|link|click |counted|decided|fresh|newest|page|json_each )/.test(step)
      : /Seq Scan on (?!affiliate_links|offers|users|stores|processor_attempts|uncounted_clicks|clicks )/.test(
          step,
        ),
  )
}

/** Asserts that the statements about sales or pending orders read a table by an index. PostgreSQL weighs the costs, and may take another one. */
async function isReadBy(
  platform: Platform,
  read: (db: Queries) => Promise<unknown>,
  table: string,
  index: string,
  said = '',
): Promise<void> {
  const { database } = platform
  const statements = await statementsOf(database, read)
  const queries = statements.filter(({ sql }) => /from "(sales|pend)/.test(sql))
  assert.ok(queries.length > 0, said + index)
  for (const query of queries) {
    assert.equal(await scansOf(platform, query), [], said + query.sql)
    if (database.dialect === 'postgresql') continue
    const steps = await stepsOf(database, database.reader, query)
    for (const step of steps.filter((one) => one.includes(` ${table} `)))
      assert.match(step, `INDEX ${index}`, `${said} ${query.sql}: ${step}`)
  }
}

/** The platform with another reader. */
function over(platform: Platform, reader: Queries): Platform {
  return { ...platform, database: { ...platform.database, reader } }
}
