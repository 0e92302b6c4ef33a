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
    const slug = (await platform.database.reader.selectFrom('affiliate_links').select('slug').execute())[0]
      ?.slug
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
        const read = (reader: Queries) => {
          const watched = { ...platform, database: { ...platform.database, reader } }
          return listSales(watched, scope, listSalesInput.parse(filter))
        }
        const queries = (await statementsOf(platform.database, read)).filter(({ sql }) =>
          sql.includes('from "sales"'),
        )
        assert.ok(queries.length > 0, JSON.stringify(filter))
        const said = JSON.stringify([scope, filter])
        for (const query of queries) await isReadBy(platform, query, 'sales', `${index} `, said)
      }
    }
  })

  it('finds an order of any store by its name or id, and the sales of an invoice, by an index', async (world) => {
    const { platform } = world.market
    const { merchantId, cycleId } = world
    const page = { below: ABOVE_ALL_IDS, size: 500, from: null, to: null }
    const over = (reader: Queries) => ({ ...platform, database: { ...platform.database, reader } })
    const reads: [read: (db: Queries) => Promise<unknown>, table: string, index: string][] = [
      ...['#1234', 'filler 1234'].map((order): (typeof reads)[number] => [
        (db) => findOrder(over(db), order, null),
        'sales',
        'sales_order',
      ]),
      [(db) => findPendingOrder(over(db), '#1234', null), 'pending', 'pending_orders_order'],
      [(db) => scanSales(over(db), { merchantId }, cycleId).read(page), 'sales', 'sales_cycle'],
      [(db) => scanSales(over(db), 'all', cycleId).count(page), 'sales', 'sales_cycle'],
    ]
    for (const [read, table, index] of reads) {
      const queries = (await statementsOf(platform.database, read)).filter(({ sql }) =>
        /from "(sales|pend)/.test(sql),
      )
      assert.ok(queries.length > 0, index)
      for (const query of queries) {
        // PostgreSQL reads a table without rows.
        if (table === 'pending' && platform.database.dialect === 'postgresql') continue
        await isReadBy(platform, query, table, index)
      }
    }
  })

  it('finds sales that were decided again by their own index', async ({ market, merchantId, creatorId }) => {
    const { platform, clock } = market
    const month = { from: clock.now() - 30 * DAY, to: clock.now() }
    const queries = [
      (await statementsOf(platform.database, (db) => countOutcomes(db, { merchantId }, month)))[1],
      (await statementsOf(platform.database, (db) => countOutcomes(db, { creatorId }, month)))[1],
      ...(await statementsOf(platform.database, (db) =>
        salesDecidedAgainSince(db, { merchantId }, clock.now() - 90_000),
      )),
    ]
    for (const query of queries) {
      assert.ok(query)
      const steps = await stepsOf(platform.database, platform.database.reader, query)
      assert.ok(
        steps.some((step) => step.includes('sales_decided_again')),
        steps.join('\n'),
      )
      assert.not.ok(
        steps.some((step) => /sales_(merchant|creator) (?!\(\w+=\? AND id=\?\))/.test(step)),
        steps.join('\n'),
      )
    }
  })

  it.run()
}

/** One merchant's accepted sale, and a great many sales, cycles and payouts of others. */
async function fill(market: Marketplace): Promise<World> {
  const { platform } = market
  const shop = await market.addShop()
  const creator = await market.addCreator()
  await market.order(shop, await market.addLink(shop, creator), 100_000)
  await market.drainUntilIdle()
  const sale = await platform.database.reader.selectFrom('sales').selectAll().executeTakeFirstOrThrow()
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
    const payouts = others.flatMap((other, which) =>
      Array.from({ length: 50 }, (_, index) => ({
        payout: {
          id: platform.ids.next(),
          creator_id: other.creator,
          state: 'pending' as const,
          amount: 100,
          processor_payout_id: null,
          failure_reason: null,
          created_at: cycle.created_at,
          submitted_at: null,
          settled_at: null,
        },
        cycleId: cycles[which * 50 + index]?.id ?? '',
        merchantId: other.merchant,
      })),
    )
    await tx
      .insertInto('payouts')
      .values(payouts.map(({ payout }) => payout))
      .execute()
    await tx
      .insertInto('payout_lines')
      .values(
        payouts.map(({ payout, cycleId, merchantId }) => ({
          payout_id: payout.id,
          billing_cycle_id: cycleId,
          merchant_id: merchantId,
          amount: 100,
        })),
      )
      .execute()
    const shares = payouts.map(({ payout, cycleId }) => ({
      billing_cycle_id: cycleId,
      creator_id: payout.creator_id,
      sales_count: 1,
      commission: 100,
      released_at: null,
      carried: 0,
    }))
    await tx.insertInto('billing_cycle_shares').values(shares).execute()
    for (let at = 0; at < SALES_OF_OTHERS; at += 1000) {
      const rows = Array.from({ length: 1000 }, (_, index) => {
        const other = others[index % others.length] ?? { store: '', merchant: '', creator: '' }
        return {
          ...sale,
          id: platform.ids.next(),
          store_id: other.store,
          merchant_id: other.merchant,
          creator_id: other.creator,
          link_id: null,
          acceptance_status: 'rejected' as const,
          rejection_reason: 'not_paid' as const,
          billing_cycle_id: null,
          commission: 0,
          platform_fee: 0,
          order_id: `filler ${at + index}`,
          order_name: `#${at + index}`,
          receipt: '{}',
        }
      })
      await tx.insertInto('sales').values(rows).execute()
      const days = rows.map(({ id }) => ({
        link_id: id,
        sub_id: '',
        day: 20_000,
        visits: 1,
        unique_visits: 1,
      }))
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

/** Asserts that a statement reads a table by an index. PostgreSQL weighs the costs, and may take another one. */
async function isReadBy(platform: Platform, query: CompiledQuery, table: string, index: string, said = '') {
  const { database } = platform
  assert.equal(await scansOf(platform, query), [], said + query.sql)
  if (database.dialect === 'postgresql') return
  const steps = await stepsOf(database, database.reader, query)
  for (const step of steps.filter((one) => one.includes(` ${table} `)))
    assert.match(step, `INDEX ${index}`, `${said} ${query.sql}: ${step}`)
}
