// long
import * as assert from 'uvu/assert'
import { grantCredit } from '../billing/credits.service.ts'
import { OPERATOR } from '../flags/audit.service.ts'
import { PLATFORM, saleAccepted } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import type { Database } from '../platform/database/database.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Marketplace } from '../test/testkit/marketplace.ts'
import { assertMapped, pluckAll } from '../test/testkit/pluck.ts'
import { fc } from '../test/testkit/property.ts'
import { DAY, HOUR } from '../test/testkit/testbed.ts'
import { readStatement, type StatementEntry } from './statement.service.ts'

const ALWAYS = { from: 0, to: Number.MAX_SAFE_INTEGER }

async function statementOf(database: Database, ownerId: string, period = ALWAYS) {
  const entries: StatementEntry[] = []
  const opening = new Map<string, number>()
  const tell: Parameters<typeof readStatement>[2] = {
    opening: (accounts) => {
      for (const { account, balance } of accounts) opening.set(account, balance)
    },
    entry: (entry) => entries.push(entry),
  }
  return { opening, entries, summaries: await readStatement(database, { ownerId, ...period }, tell) }
}

for (const { it } of marketSuites('statements')) {
  it('tell what happened by known names, with the balance after', async ({ market, platform, clock }) => {
    const { shop, creator, link } = await market.addTrade()
    await market.sell(shop, link, 1_000_000)
    clock.pass(HOUR)
    const credit = { amount: 10_000, reference: 'R-5', reason: 'returned', actor: OPERATOR }
    await grantCredit(platform, { ...credit, merchantId: shop.merchantId })
    await market.earn(shop, link, 400_000)
    clock.pass(HOUR)
    await market.payOut('failed')
    const merchant = await statementOf(platform.database, shop.merchantId)
    assert.equal(
      merchant.entries.map(({ kind, sale, credit, account, amount, balance }) => {
        const name = sale?.order_name?.startsWith('#') ?? credit?.reference ?? null
        return [kind, name, account, amount, balance]
      }),
      [
        ['sale_accepted', true, 'merchant_unbilled', 137_500, 137_500],
        ['credit_granted', 'R-5', 'merchant_unbilled', -10_000, 127_500],
        ['sale_accepted', true, 'merchant_unbilled', 55_000, 182_500],
        ['cycle_closed', null, 'merchant_receivable', 182_500, 182_500],
        ['cycle_closed', null, 'merchant_unbilled', -182_500, 0],
        ['cycle_charged', null, 'merchant_receivable', -182_500, 0],
      ],
    )
    assert.ok(merchant.entries[3]?.cycle)
    assert.equal(pluckAll(merchant.summaries, 'account', 'debits', 'credits', 'closing'), [
      ['merchant_unbilled', 192_500, 192_500, 0],
      ['merchant_receivable', 182_500, 182_500, 0],
    ])
    for (const [owner, closing] of [
      [creator.userId, { creator_pending: 0, creator_released: -175_000, payouts_in_transit: 0 }],
      [PLATFORM, { platform_fees: -17_500, platform_credits: 10_000, processor_clearing: 182_500 }],
      [platform.ids.next(), {}],
    ] as const) {
      const { summaries } = await statementOf(platform.database, owner)
      assert.equal(pluckAll(summaries, 'account', 'closing'), Object.entries(closing))
    }
  })

  it('open where the period before closed, wherever it is cut', async ({ market, platform, clock }) => {
    const shop = await market.addShop()
    const creator = await market.addCreator()
    const begin = clock.now()
    const owners = [shop.merchantId, creator.userId, PLATFORM]
    for (let sale = 0; sale < 25; sale += 1) {
      clock.pass(HOUR)
      await addSale(market, shop.merchantId, creator.userId, 1000 + sale)
    }
    const moment = fc.integer({ min: -1, max: 26 }).map((hours) => begin + hours * HOUR)
    const check = async (owner: string, cuts: number[]) => {
      const edges = [0, ...cuts.sort((one, other) => one - other), begin + DAY * 30]
      const whole = await statementOf(platform.database, owner)
      const entries: StatementEntry[] = []
      const closing = new Map<string, number>()
      for (const [at, from] of edges.slice(0, -1).entries()) {
        const part = await statementOf(platform.database, owner, { from, to: edges[at + 1] ?? 0 })
        entries.push(...part.entries)
        for (const [account, balance] of part.opening) assert.is(balance, closing.get(account) ?? 0)
        for (const summary of part.summaries) {
          assert.is(summary.opening + summary.debits - summary.credits, summary.closing)
          closing.set(summary.account, summary.closing)
        }
      }
      assert.equal(entries, whole.entries)
      for (const summary of whole.summaries) assert.is(closing.get(summary.account), summary.closing)
    }
    const cuts = fc.array(moment, { maxLength: 4 })
    await fc.assert(fc.asyncProperty(fc.constantFrom(...owners), cuts, check), { numRuns: 15 })
  })

  it('go through books of many pages along the journal, each entry once', async ({ market, platform }) => {
    const shop = await market.addShop()
    const creator = await market.addCreator()
    const amounts = Array.from({ length: 5500 }, (_, index) => 1000 + index)
    const half = amounts.length / 2
    await addSales(market, shop.merchantId, creator.userId, amounts.slice(0, half))
    const before = await statementOf(platform.database, creator.userId)
    assert.equal([before.entries.length, before.summaries.length], [half, 1])
    await addSale(market, shop.merchantId, (await market.addCreator()).userId, 5)
    await addSales(market, shop.merchantId, creator.userId, amounts.slice(half))
    const { entries, summaries } = await statementOf(platform.database, creator.userId)
    assertMapped(entries, ({ amount }) => -amount, amounts)
    const total = amounts.reduce((sum, amount) => sum + amount, 0)
    assert.equal([summaries[0]?.closing, entries.at(-1)?.balance], [-total, -total])
  })

  it('are of one moment, also if entries come in meanwhile', async ({ market, platform, clock }) => {
    const shop = await market.addShop()
    const creator = await market.addCreator()
    await addSales(market, shop.merchantId, creator.userId, Array(1500).fill(100))
    const late: Promise<unknown>[] = []
    let count = 0
    const entry = () => {
      count += 1
      if (count === 500) late.push(addSale(market, shop.merchantId, creator.userId, 7))
    }
    const period = { ownerId: creator.userId, from: 0, to: clock.now() + DAY }
    const summaries = await readStatement(platform.database, period, { opening: () => undefined, entry })
    await Promise.all(late)
    assert.equal([count, summaries[0]?.closing], [1500, -150_000])
    assert.is((await statementOf(platform.database, creator.userId)).entries.length, 1501)
  })

  it.run()
}

function addSale(market: Marketplace, merchantId: string, creatorId: string, commission: number) {
  return addSales(market, merchantId, creatorId, [commission])
}

/** Entries of accepted sales, without the sales: the journal is all that a statement is of. */
function addSales(
  market: Marketplace,
  merchantId: string,
  creatorId: string,
  commissions: readonly number[],
) {
  const { platform, clock } = market
  const parties = { merchantId, creatorId, platformFee: 100 }
  const entries = commissions.map((commission) =>
    saleAccepted({ saleId: platform.ids.next(), commission, ...parties }),
  )
  return platform.database.transaction((tx) => writeEntries(platform, tx, entries, clock.now()))
}
