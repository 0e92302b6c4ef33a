import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import type { Paisa } from '../../shared/money.ts'
import { type FlagKind, openFlags } from '../flags/flags.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import {
  brokenRows,
  cycleOf,
  eventsOf,
  type Marketplace,
  openCycleOf,
  type Shop,
} from '../test/testkit/marketplace.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { removeTriggers } from '../test/testkit/tamper.ts'
import { listCycles, merchantAccount } from './billing.service.ts'
import { wireCycle } from './billing-wire.ts'
import { LARGEST_CYCLE } from './close-cycle.rule.ts'
import { closeDueCycles } from './close-cycle.service.ts'

interface Seller {
  shop: Shop
  link: LinkRecord
  creatorId: string
  cycleId: string
}

interface Context {
  market: Marketplace
  /** Each with one sale in an open cycle. The middle one's amounts are changed in the database. */
  sellers: [Seller, Seller, Seller]
}

const SALE: Paisa = 1_000_000
const COMMISSION: Paisa = 125_000
const BILLED: Paisa = COMMISSION + 12_500
const PAST_ALL_CYCLES = Date.UTC(2027, 11, 1)

for (const { it } of marketSuites<Context>('amounts around 2^53 paisa in one merchant')) {
  it.before.each(async (context) => {
    const { market } = context
    const sellers: Seller[] = []
    for (let place = 0; place < 3; place += 1) {
      const { shop, creator, link } = await market.addTrade()
      await market.sell(shop, link, SALE)
      const { id: cycleId } = await openCycleOf(market.platform, shop)
      sellers.push({ shop, link, creatorId: creator.userId, cycleId })
    }
    Object.assign(context, { sellers })
  })

  const change = ({ market }: Context, statement: string) =>
    market.platform.database.transaction((tx) => sql.raw(statement).execute(tx))
  const holds = (context: Context, commission: bigint) =>
    change(
      context,
      `update billing_cycles set commission_total = ${commission} where id = '${context.sellers[1].cycleId}'`,
    )
  const flagged = async ({ market }: Context, kind: FlagKind) =>
    (await openFlags(market.platform.database.reader, kind)).map(({ subject_id }) => subject_id)
  const statesOf = ({ market, sellers }: Context) =>
    Promise.all(sellers.map(async ({ cycleId }) => (await cycleOf(market.platform, cycleId)).state))

  for (const commission of [2n ** 53n - 1n, 2n ** 53n + 1n]) {
    it(`a cycle of ${commission} paisa stays open and is flagged; the others close, are invoiced and charged`, async (context) => {
      const { market, sellers } = context
      const { platform } = market
      await holds(context, commission)
      const run = { asOf: PAST_ALL_CYCLES, actor: 'operator' }
      const kinds = (await closeDueCycles(platform, { ...run, dryRun: true })).map(({ kind }) => kind)
      assert.equal(kinds, ['closed', 'failed', 'closed'])
      assert.equal(await flagged(context, 'run_failed'), [])
      const outcomes = await closeDueCycles(platform, run)
      assert.equal(pluckAll(outcomes, 'kind', 'amountDue'), [
        ['closed', BILLED],
        ['failed', 0],
        ['closed', BILLED],
      ])
      assert.is(BigInt(outcomes[1]?.commissionTotal ?? 0), commission)
      assert.equal(await flagged(context, 'run_failed'), [sellers[1].cycleId])
      await market.drainUntilIdle()
      assert.equal(pluck(market.processor.invoices, 'amount'), [BILLED, BILLED])
      for (const { cycleId } of [sellers[0], sellers[2]]) await market.confirmPayment(cycleId)
      await market.drainUntilIdle()
      assert.equal(await statesOf(context), ['charged', 'open', 'charged'])
      // Everybody's lists answer, with every digit.
      const all = await listCycles(platform, { merchantId: null, state: null, limit: 9, before: null })
      const shown = all.map((row) => wireCycle(platform, row)).find(({ id }) => id === sellers[1].cycleId)
      assert.is(shown?.commission_total.replace('.', ''), String(commission))
      assert.ok(await merchantAccount(platform.database.reader, sellers[1].shop.merchantId))
      assert.equal(await brokenRows(market.platform, 'amounts-in-range'), [`cycle ${sellers[1].cycleId}`])
      // Repaired, it closes with the next run, which resolves the flag.
      await holds(context, BigInt(COMMISSION))
      assert.equal(pluck(await closeDueCycles(platform, run), 'kind'), ['closed'])
      assert.equal(await flagged(context, 'run_failed'), [])
      await market.verify()
    })

    it(`a creator's balance of ${commission} paisa is flagged and not paid; the others are paid`, async (context) => {
      const { market, sellers } = context
      const { platform } = market
      await closeDueCycles(platform, { asOf: PAST_ALL_CYCLES })
      await market.drainUntilIdle()
      for (const { cycleId } of sellers) await market.confirmPayment(cycleId)
      await market.drainUntilIdle()
      const own = `where creator_id = '${sellers[1].creatorId}'`
      const shares = (amount: bigint) =>
        change(context, `update billing_cycle_shares set commission = ${amount} ${own}`)
      await removeTriggers(market.bed.testDatabase.database)
      // One paisa below 2^53 is exact.
      await shares(commission < 2n ** 53n ? commission + 1n : commission)
      const outcomes = await runPayouts(platform, market.processor)
      const kinds = new Map(outcomes.map(({ creatorId, kind }) => [creatorId, kind]))
      assert.equal(
        sellers.map(({ creatorId }) => kinds.get(creatorId)),
        ['paid_out', 'failed', 'paid_out'],
      )
      assert.equal(await flagged(context, 'run_failed'), [sellers[1].creatorId])
      await market.drainUntilIdle()
      assert.equal(pluck(market.processor.payouts, 'amount'), [COMMISSION, COMMISSION])
      assert.equal(await brokenRows(market.platform, 'amounts-in-range'), [
        `share of cycle ${sellers[1].cycleId}`,
      ])
      await shares(BigInt(COMMISSION))
      const again = await runPayouts(platform, market.processor)
      assert.equal(pluck(again, 'kind'), ['paid_out'])
      assert.equal(await flagged(context, 'run_failed'), [])
      await market.drainUntilIdle()
      await market.verify()
    })
  }

  it('the sale that would take a cycle beyond its bound is set aside and flagged; the others are taken', async (context) => {
    const { market, sellers } = context
    const { platform } = market
    // Room for one more of the two sales.
    await holds(context, BigInt(LARGEST_CYCLE - 12_500 - BILLED - 1))
    for (const name of ['#fits', '#does not'])
      await market.order(sellers[1].shop, sellers[1].link, SALE, { name })
    for (const { shop, link } of [sellers[0], sellers[2]]) await market.order(shop, link, SALE)
    await market.drainUntilIdle()
    const [refused, ...others] = await rowsOf(platform, 'inbound_events', { state: 'set_aside' })
    assert.equal([refused?.order_name, others], ['#does not', []])
    assert.match(refused?.reason ?? '', /exceed Rs 100,000,000,000.00/)
    assert.equal(await flagged(context, 'event_set_aside'), [`${sellers[1].shop.storeId}:failed`])
    for (const { cycleId } of [sellers[0], sellers[2]])
      assert.is((await cycleOf(platform, cycleId)).commission_total, 2 * COMMISSION)
    assert.is((await cycleOf(platform, sellers[1].cycleId)).sales_count, 2)
    await holds(context, BigInt(2 * COMMISSION))
    await market.verify()
  })

  it('an order of a billion rupees counts; one of a paisa more, or of fifteen digits, is set aside and flagged', async (context) => {
    const { market, sellers } = context
    const { platform } = market
    const [{ shop, link }] = sellers
    for (const price of [100_000_000_000, 100_000_000_001, 9_999_999_999_999])
      await market.order(shop, link, price)
    await market.drainUntilIdle()
    const events = (await eventsOf(platform)).slice(-3)
    assert.equal(pluck(events, 'state'), ['done', 'set_aside', 'set_aside'])
    assert.equal(await flagged(context, 'event_set_aside'), [`${shop.storeId}:unreadable`])
    const cycle = await cycleOf(platform, sellers[0].cycleId)
    assert.is(cycle.commission_total, COMMISSION + 12_500_000_000)
    await market.verify()
  })

  it.run()
}
