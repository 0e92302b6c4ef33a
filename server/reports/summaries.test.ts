import * as assert from 'uvu/assert'
import { type Paisa, parseMoney } from '../../shared/money.ts'
import type { CreatorSummaryWire, MerchantSummaryWire } from '../../shared/schemas/summaries.ts'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { grantCredit } from '../billing/credits.service.ts'
import { createClickRecorder } from '../clicks/clicks.service.ts'
import { accountBalances } from '../ledger/ledger.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { createIds } from '../platform/ids.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { cyclesOf, giveDestination, type Marketplace, type Shop } from '../test/testkit/marketplace.ts'
import { outcomeOf, requestOf, setSuspended } from '../test/testkit/people.ts'
import { assertMapped } from '../test/testkit/pluck.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { summariesRouter } from './reports.procedures.ts'

type Ask = { from?: string; to?: string; top?: number }

const ask = (market: Marketplace, actor: Actor | null, input: Ask = {}) =>
  summariesRouter.createCaller(requestOf(market.platform, actor)).get(input)

const ofCreator = async (market: Marketplace, actor: Actor, input: Ask = {}) =>
  (await ask(market, actor, input)) as CreatorSummaryWire

const ofMerchant = async (market: Marketplace, shop: Shop, input: Ask = {}) =>
  (await ask(market, shop.actor, input)) as MerchantSummaryWire

/** Every figure of a summary that the journal has too must be the journal's. */
async function assertTied(market: Marketplace, shops: Shop[], creators: Actor[]): Promise<void> {
  const balances = await accountBalances(market.platform.database.reader)
  const held = (account: string, owner: string): Paisa =>
    balances.find((row) => row.account === account && row.owner_id === owner)?.balance ?? 0
  const paisa = (text: string) => parseMoney(text) ?? Number.NaN
  for (const { userId } of creators) {
    const summary = await ofCreator(market, { userId, role: 'creator', sessionId: userId })
    assert.is(paisa(summary.pending), 0 - held('creator_pending', userId))
    assert.is(paisa(summary.released), 0 - held('creator_released', userId))
    assert.is(paisa(summary.in_transit), 0 - held('payouts_in_transit', userId))
    assert.is(summary.next_payout.amount, summary.released)
    const earned =
      paisa(summary.pending) + paisa(summary.released) + paisa(summary.in_transit) + paisa(summary.paid)
    assert.is(paisa(summary.sales.commission), earned, 'all that was ever earned was earned in the period')
  }
  for (const shop of shops) {
    const summary = await ofMerchant(market, shop)
    const cycle = summary.open_cycle
    const open = cycle ? paisa(cycle.commission_total) + paisa(cycle.fee_total) : 0
    assert.is(paisa(summary.receivable), held('merchant_receivable', shop.merchantId))
    assert.is(open - paisa(summary.available_credit), held('merchant_unbilled', shop.merchantId))
    if (!cycle) continue
    const sum = (texts: string[]) => texts.reduce((total, text) => total + paisa(text), 0)
    assert.is(sum(cycle.by_offer.map((row) => row.commission)), paisa(cycle.commission_total))
    assert.is(sum(cycle.by_offer.map((row) => row.platform_fee)), paisa(cycle.fee_total))
    assert.is(sum(cycle.by_creator.map((row) => row.commission)), paisa(cycle.commission_total))
    assert.is(
      cycle.by_creator.reduce((total, row) => total + row.sales, 0),
      cycle.sales,
    )
  }
}

for (const { it } of marketSuites('summaries', { idsOf: createIds })) {
  it('ties to the journal at every step of the money', async ({ market }) => {
    const { platform } = market
    const shops = [await market.addShop('One'), await market.addShop('Two')] as const
    const creators = [await market.addCreator('Ayesha'), await market.addCreator('Bilal')] as const
    const links = [
      await market.addLink(shops[0], creators[0]),
      await market.addLink(shops[0], creators[1], { commission_rate: 2000 }),
      await market.addLink(shops[1], creators[0]),
    ] as const
    const tied = () => assertTied(market, [...shops], [...creators])
    await tied()
    for (const [index, price] of [2_000_000, 333_333, 77_777].entries()) {
      const link = links[index] as (typeof links)[number]
      await market.order(index === 2 ? shops[1] : shops[0], link, price)
    }
    await market.order(shops[0], links[0], 10_000, { financialStatus: 'pending' })
    await market.drainUntilIdle()
    await tied()
    await grantCredit(platform, {
      merchantId: shops[0].merchantId,
      amount: 100_000,
      reference: 'R-1',
      reason: 'returned goods',
      actor: 'operator',
    })
    await tied()
    const [cycle] = await cyclesOf(platform, shops[0].merchantId)
    if (!cycle) throw new Error('no cycle')
    const before = (await ofMerchant(market, shops[0])).open_cycle
    await closeDueCycles(platform, { merchantId: shops[0].merchantId, asOf: cycle.period_end })
    await market.drainUntilIdle()
    const closed = (await cyclesOf(platform, shops[0].merchantId))[0]
    assert.is(parseMoney(before?.expected_amount_due ?? ''), closed?.amount_due)
    assert.is(parseMoney(before?.expected_credit ?? ''), closed?.credit_total)
    await tied()
    assert.is((await ofMerchant(market, shops[0])).open_cycle, null)
    await market.confirmPayment(cycle.id)
    await market.drainUntilIdle()
    await tied()
    assert.is((await ofMerchant(market, shops[0])).receivable, '0.00')
    const payoutId = await market.payOut()
    await tied()
    await market.settlePayout(payoutId, 'confirmed')
    await market.drainUntilIdle()
    await tied()
    assert.is((await ofCreator(market, creators[0])).paid, '2500.00')
    await market.verify()
  })

  it('counts visits, and sales by their reason, each party its own', async ({ market }) => {
    const shop = await market.addShop()
    const other = await market.addShop()
    const creator = await market.addCreator()
    const link = await market.addLink(shop, creator)
    await market.order(shop, link, 100_000)
    await market.order(shop, link, 100_000, { financialStatus: 'pending' })
    await market.order(shop, link, 100_000, { financialStatus: 'pending' })
    await market.deliver(shop, await market.order(other, link, 100_000))
    await market.click(link, false)
    const recorder = createClickRecorder(market.platform)
    const second = await market.addLink(other, creator)
    for (const { id: linkId } of [link, link, second, second, second]) {
      const [id, createdAt] = [market.platform.ids.next(), market.clock.now()]
      const visit = { id, linkId, tracked: true, kind: 'visit', createdAt } as const
      await recorder.record({ ...visit, address: '203.0.113.7', agent: 'Phone' })
    }
    await market.drainUntilIdle()
    const summary = await ofCreator(market, creator)
    assert.equal([summary.clicks, summary.unique_clicks], [9, 6])
    assert.is(summary.sales.accepted, 2)
    assert.is(summary.sales.rejected, 2)
    assert.equal(summary.sales.rejected_by_reason, [{ reason: 'not_paid', sales: 2 }])
    assert.equal((await ofMerchant(market, shop)).sales.rejected_by_reason, [
      { reason: 'not_paid', sales: 2 },
    ])
    assert.equal((await ofMerchant(market, other)).sales.rejected_by_reason, [
      { reason: 'other_merchants_link', sales: 1 },
    ])
    const yesterday = { to: new Date(market.clock.now() - DAY).toISOString() }
    assert.is((await ofCreator(market, creator, yesterday)).sales.accepted, 0)
    const today = { from: new Date(market.clock.now() - DAY).toISOString() }
    assert.is((await ofCreator(market, creator, today)).sales.accepted, 2)
    const sofar = { ...today, to: new Date(market.clock.now()).toISOString() }
    assert.is((await ofCreator(market, creator, sofar)).sales.accepted, 0, '`to` is exclusive')
  })

  it('shows the best offers and creators first, and only so many', async ({ market }) => {
    const shop = await market.addShop()
    const prices = [100_000, 300_000, 200_000]
    for (const [index, price] of prices.entries()) {
      const link = await market.addLink(shop, await market.addCreator(`creator ${index}`), {
        title: `offer ${index}`,
      })
      await market.order(shop, link, price)
    }
    await market.drainUntilIdle()
    const cycle = (await ofMerchant(market, shop, { top: 2 })).open_cycle
    assertMapped(cycle?.by_offer, (row) => [row.title, row.sales, row.commission, row.platform_fee], [
      ['offer 1', 1, '375.00', '37.50'],
      ['offer 2', 1, '250.00', '25.00'],
    ])
    assertMapped(cycle?.by_creator, (row) => [row.display_name, row.commission], [
      ['creator 1', '375.00'],
      ['creator 2', '250.00'],
    ])
    assert.is(cycle?.expected_amount_due, '825.00')
  })

  it('says what the next payout run does, as the run then does it', async ({ market }) => {
    const { platform, processor } = market
    const shop = await market.addShop()
    const creator = await market.addCreator('Ayesha', false)
    const link = await market.addLink(shop, creator)
    const next = async () => (await ofCreator(market, creator)).next_payout
    const run = async () => {
      const [outcome] = await runPayouts(platform, processor, { dryRun: true })
      return outcome?.kind === 'waits' ? outcome.why : (outcome?.kind ?? null)
    }
    assert.equal(await next(), {
      amount: '0.00',
      waits_for: 'below_threshold',
      missing: '1000.00',
      replaces_failed: false,
    })
    await market.earn(shop, link, 400_000)
    assert.equal([(await next()).waits_for, (await next()).missing], ['below_threshold', '500.00'])
    assert.is(await run(), 'below_threshold')
    market.clock.pass(40 * DAY)
    await market.earn(shop, link, 800_000)
    assert.is((await next()).waits_for, 'no_destination')
    assert.is(await run(), 'no_destination')
    await giveDestination(platform, creator.userId)
    await setSuspended(platform, creator.userId, true)
    assert.is((await next()).waits_for, 'suspended')
    await setSuspended(platform, creator.userId, false)
    assert.equal(await next(), {
      amount: '1500.00',
      waits_for: null,
      missing: '0.00',
      replaces_failed: false,
    })
    assert.is(await run(), 'paid_out')
    const payoutId = await market.payOut()
    assert.is((await next()).amount, '0.00')
    await market.settlePayout(payoutId, 'failed')
    await market.drainUntilIdle()
    assert.equal(await next(), { amount: '1500.00', waits_for: null, missing: '0.00', replaces_failed: true })
    const held = processor.payouts.find((item) => item.reference === payoutId)
    if (held) held.status = 'paid'
    await runPayouts(platform, processor)
    assert.is((await next()).waits_for, 'failure_not_confirmed')
  })

  it('refuses what is no period', async ({ market }) => {
    const shop = await market.addShop()
    const periods: Ask[] = [
      { from: '2026-11-02T00:00:00Z', to: '2026-11-01T00:00:00Z' },
      { from: '2025-11-01T00:00:00Z', to: '2026-11-10T00:00:00Z' },
      { from: '2126-11-01T00:00:00Z' },
      { from: 'yesterday' },
      { top: 0 },
      { top: 101 },
    ]
    for (const period of periods) {
      assert.is(await outcomeOf(ask(market, shop.actor, period)), 'validation_failed', JSON.stringify(period))
    }
  })

  it('counts a sale in the period of its latest decision', async ({ market }) => {
    const shop = await market.addShop()
    const creator = await market.addCreator()
    const link = await market.addLink(shop, creator)
    const started = market.clock.now()
    const unpaid = await market.order(shop, link, 100_000, { financialStatus: 'pending' })
    await market.drainUntilIdle()
    market.clock.pass(10 * DAY)
    await market.deliver(shop, unpaid.replace('"pending"', '"paid"'))
    await market.drainUntilIdle()
    const at = (moment: number) => new Date(moment).toISOString()
    const first = { from: at(started - DAY), to: at(started + DAY) }
    const second = { from: at(started + 9 * DAY), to: at(started + 11 * DAY) }
    for (const [period, accepted] of [
      [first, 0],
      [second, 1],
    ] as const) {
      assert.is((await ofCreator(market, creator, period)).sales.accepted, accepted)
      const { sales } = await ofMerchant(market, shop, period)
      assert.equal(
        [sales.accepted, sales.rejected, sales.commission],
        [accepted, 0, accepted ? '125.00' : '0.00'],
      )
    }
  })

  it.run()
}
