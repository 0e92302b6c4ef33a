import { type CompiledQuery, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { insertRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { testDialects } from '../test/testkit/databases.ts'
import { openLiveMarket } from '../test/testkit/live-followers.ts'
import type { Marketplace } from '../test/testkit/marketplace.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { cyclesQuery, decidedAgainQuery, payoutsQuery, saleIdsQuery } from './live.store.ts'
import {
  linkIdsQuery,
  outcomesQuery,
  secondOutcomesQuery,
  topCreatorsQuery,
  topOffersQuery,
} from './summaries.store.ts'

interface World {
  market: Marketplace
  merchantId: string
  creatorId: string
  cycleId: string
}

const SALES_OF_OTHERS = 20_000

for (const dialect of testDialects()) {
  const it = suite<World>(`plans of summaries and live streams on ${dialect}`)
  it.before(async (world) => {
    world.market = await openLiveMarket(dialect)
    Object.assign(world, await fill(world.market))
  })
  it.after(({ market }) => market.close())

  it('reads own rows only, however many others there are', async ({
    market,
    merchantId,
    creatorId,
    cycleId,
  }) => {
    const { platform, clock } = market
    const { reader } = platform.database
    const recent = { from: clock.now() - 30 * DAY, to: null }
    const month = { from: clock.now() - 30 * DAY, to: clock.now() }
    const after = platform.ids.next()
    const queries: Record<string, { compile(): CompiledQuery }> = {
      'outcomes of a merchant': outcomesQuery(reader, { merchantId }, recent),
      'outcomes of a creator': outcomesQuery(reader, { creatorId }, month),
      'sales of a merchant decided again': secondOutcomesQuery(reader, { merchantId }, recent),
      'sales of a creator decided again': secondOutcomesQuery(reader, { creatorId }, month),
      'second decisions of a merchant': decidedAgainQuery(reader, { merchantId }, clock.now() - 90_000),
      'offers of a cycle': topOffersQuery(reader, cycleId, 10),
      'creators of a cycle': topCreatorsQuery(reader, cycleId, 10),
      'links of a creator': linkIdsQuery(reader, creatorId, null, 1000),
      'new sales of a merchant': saleIdsQuery(reader, { merchantId }, after, 100),
      'new sales of a creator': saleIdsQuery(reader, { creatorId }, after, 100),
      'payouts of a creator': payoutsQuery(reader, { creatorId }, clock.now() - 90_000),
      'payouts of a merchant': payoutsQuery(reader, { merchantId }, clock.now() - 90_000),
      'cycles of a merchant': cyclesQuery(reader, merchantId, clock.now() - 90_000),
    }
    for (const [name, query] of Object.entries(queries)) {
      assert.equal(await scansOf(platform, query.compile()), [], name)
    }
  })

  it('finds sales that were decided again by their own index', async ({ market, merchantId, creatorId }) => {
    const { platform, clock } = market
    const { reader } = platform.database
    const month = { from: clock.now() - 30 * DAY, to: clock.now() }
    for (const query of [
      secondOutcomesQuery(reader, { merchantId }, month),
      secondOutcomesQuery(reader, { creatorId }, month),
      decidedAgainQuery(reader, { merchantId }, clock.now() - 90_000),
    ]) {
      const steps = await stepsOf(platform, query.compile())
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
async function fill(market: Marketplace): Promise<Omit<World, 'market'>> {
  const { platform } = market
  const shop = await market.addShop()
  const creator = await market.addCreator()
  await market.order(shop, await market.addLink(shop, creator), 100_000)
  await market.drainUntilIdle()
  const sale = await platform.database.reader.selectFrom('sales').selectAll().executeTakeFirstOrThrow()
  const cycle = await platform.database.reader
    .selectFrom('billing_cycles')
    .selectAll()
    .executeTakeFirstOrThrow()
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
          receipt: '{}',
        }
      })
      await tx.insertInto('sales').values(rows).execute()
    }
    await sql`analyze`.execute(tx)
  })
  return { merchantId: shop.merchantId, creatorId: creator.userId, cycleId: cycle.id }
}

/**
 * The steps in which a statement reads a table from one end to the other. PostgreSQL does not trouble to look up what stands
 * in a table of one row, or of none.
 */
async function scansOf(platform: Platform, query: CompiledQuery): Promise<string[]> {
  const { dialect } = platform.database
  const steps = await stepsOf(platform, query)
  return steps.filter((step) =>
    dialect === 'sqlite'
      ? /^SCAN (?!CONSTANT)/.test(step)
      : /Seq Scan on (?!affiliate_links|processor_attempts)/.test(step),
  )
}

async function stepsOf({ database }: Platform, query: CompiledQuery): Promise<string[]> {
  const { dialect, reader } = database
  const how = dialect === 'sqlite' ? 'explain query plan' : 'explain'
  const { rows } = await reader.executeQuery<Record<string, string>>({ ...query, sql: `${how} ${query.sql}` })
  const steps = rows.map((row) => row.detail ?? row['QUERY PLAN'] ?? '')
  assert.ok(steps.length > 0)
  return steps
}
