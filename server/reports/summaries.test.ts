import * as assert from 'uvu/assert'
import { type Paisa, parseMoney } from '../../shared/money.ts'
import type { CreatorSummaryWire, MerchantSummaryWire } from '../../shared/schemas/summaries.ts'
import { grantCredit } from '../billing/credits.service.ts'
import { createClickRecorder, rollUpClicks } from '../clicks/clicks.service.ts'
import { accountBalances } from '../ledger/ledger.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { createIds } from '../platform/ids.ts'
import { dateOfDay, localDay } from '../platform/local-days.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import {
  closeOpenCycle,
  cycleOf,
  giveDestination,
  type Marketplace,
  type Shop,
} from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { outcomeOf, requestOf, setSuspended } from '../test/testkit/people.ts'
import { pluckAll } from '../test/testkit/pluck.ts'
import { DAY, HOUR } from '../test/testkit/testbed.ts'
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
    const sum = (amounts: number[]) => amounts.reduce((total, amount) => total + amount, 0)
    const { by_offer, by_creator } = cycle
    assert.is(sum(by_offer.map((row) => paisa(row.commission))), paisa(cycle.commission_total))
    assert.is(sum(by_offer.map((row) => paisa(row.platform_fee))), paisa(cycle.fee_total))
    assert.is(sum(by_creator.map((row) => paisa(row.commission))), paisa(cycle.commission_total))
    assert.is(sum(by_creator.map((row) => row.sales)), cycle.sales)
  }
}

for (const { it } of marketSuites('summaries', { idsOf: createIds })) {
  it('ties to the journal at every step of the money', async ({ market }) => {
    const { platform } = market
    const shops = [await market.addShop('One'), await market.addShop('Two')] as const
    const creators = [await market.addCreator('Ayesha'), await market.addCreator('Bilal')] as const
    const tied = () => assertTied(market, [...shops], [...creators])
    await tied()
    const link = await market.addLink(shops[0], creators[0])
    await market.order(shops[0], link, 2_000_000)
    const second = await market.addLink(shops[0], creators[1], { commission_rate: 2000 })
    await market.order(shops[0], second, 333_333)
    await market.order(shops[1], await market.addLink(shops[1], creators[0]), 77_777)
    await market.sell(shops[0], link, 10_000, { financialStatus: 'pending' })
    await tied()
    const credit = { amount: 100_000, reference: 'R-1', reason: 'returned goods', actor: 'operator' }
    await grantCredit(platform, { ...credit, merchantId: shops[0].merchantId })
    await tied()
    const before = (await ofMerchant(market, shops[0])).open_cycle
    const cycleId = await closeOpenCycle(platform, shops[0])
    await market.drainUntilIdle()
    const closed = await cycleOf(platform, cycleId)
    assert.is(parseMoney(before?.expected_amount_due ?? ''), closed.amount_due)
    assert.is(parseMoney(before?.expected_credit ?? ''), closed.credit_total)
    await tied()
    assert.is((await ofMerchant(market, shops[0])).open_cycle, null)
    await market.confirmPayment(cycleId)
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
    const { shop, creator, link } = await market.addTrade()
    const other = await market.addShop()
    for (const financialStatus of ['paid', 'pending', 'pending'])
      await market.order(shop, link, 100_000, { financialStatus })
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
    assert.equal([summary.sales.accepted, summary.sales.rejected], [2, 2])
    const unpaid = [{ reason: 'not_paid', sales: 2 }]
    assert.equal(summary.sales.rejected_by_reason, unpaid)
    assert.equal((await ofMerchant(market, shop)).sales.rejected_by_reason, unpaid)
    const foreign = [{ reason: 'other_merchants_link', sales: 1 }]
    assert.equal((await ofMerchant(market, other)).sales.rejected_by_reason, foreign)
    const [now, yesterday] = [market.clock.now(), market.clock.now() - DAY].map((at) =>
      new Date(at).toISOString(),
    )
    for (const [period, accepted] of [
      [{ to: yesterday }, 0],
      [{ from: yesterday }, 2],
      [{ from: yesterday, to: now }, 0], // `to` is exclusive
    ] as const)
      assert.is((await ofCreator(market, creator, period as Ask)).sales.accepted, accepted)
  })

  it('shows the best offers and creators first, and only so many', async ({ market }) => {
    const shop = await market.addShop()
    for (const [index, price] of [100_000, 300_000, 200_000].entries()) {
      const creator = await market.addCreator(`creator ${index}`)
      await market.order(shop, await market.addLink(shop, creator, { title: `offer ${index}` }), price)
    }
    await market.drainUntilIdle()
    const cycle = (await ofMerchant(market, shop, { top: 2 })).open_cycle
    assert.equal(pluckAll(cycle?.by_offer, 'title', 'sales', 'commission', 'platform_fee'), [
      ['offer 1', 1, '375.00', '37.50'],
      ['offer 2', 1, '250.00', '25.00'],
    ])
    assert.equal(pluckAll(cycle?.by_creator, 'display_name', 'commission'), [
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
    const nothing = {
      amount: '0.00',
      waits_for: 'below_threshold',
      missing: '1000.00',
      replaces_failed: false,
    }
    assert.equal(await next(), nothing)
    await market.earn(shop, link, 400_000)
    assert.equal([(await next()).waits_for, (await next()).missing], ['below_threshold', '500.00'])
    assert.is(await run(), 'below_threshold')
    market.clock.pass(40 * DAY)
    await market.earn(shop, link, 800_000)
    assert.is((await next()).waits_for, 'no_destination')
    assert.is(await run(), 'no_destination')
    await giveDestination(platform, creator.userId)
    await setSuspended(platform, creator.userId, true)
    assert.equal([(await next()).waits_for, await run()], ['suspended', 'suspended'])
    await setSuspended(platform, creator.userId, false)
    const ready = { amount: '1500.00', waits_for: null, missing: '0.00', replaces_failed: false }
    assert.equal(await next(), ready)
    assert.is(await run(), 'paid_out')
    const payoutId = await market.payOut()
    assert.is((await next()).amount, '0.00')
    await market.settlePayout(payoutId, 'failed')
    await market.drainUntilIdle()
    assert.equal(await next(), { ...ready, replaces_failed: true })
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
    const { shop, creator, link } = await market.addTrade()
    const started = market.clock.now()
    const unpaid = await market.sell(shop, link, 100_000, { financialStatus: 'pending' })
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

type AskSeries = { by: 'day' | 'link' | 'offer' | 'sub_id'; from?: string; to?: string }

const seriesOf = (market: Marketplace, actor: Actor, input: AskSeries) =>
  summariesRouter.createCaller(requestOf(market.platform, actor)).series(input)

/** The items that are not zero, as one line each. */
async function linesOf(market: Marketplace, actor: Actor, input: AskSeries): Promise<string[]> {
  const { items } = await seriesOf(market, actor, input)
  return items
    .filter(({ clicks, sales, rejected }) => clicks + sales + rejected > 0)
    .map(({ key, clicks, unique_clicks, sales, rejected, net_amount, commission }) =>
      [key, clicks, unique_clicks, sales, rejected, net_amount, commission].join(' '),
    )
}

const dayOf = (time: number) => dateOfDay(localDay(time, 'Asia/Karachi'))

interface Context {
  shop: Shop
  sana: Actor
  lawn: LinkRecord
  lamp: LinkRecord
}

for (const { it } of marketSuites<Context>('series', { idsOf: createIds })) {
  it.before.each(async (context) => {
    const { market } = context
    const shop = await market.addShop()
    const sana = await market.addCreator('Sana')
    const lawn = await market.addLink(shop, sana, { title: 'Lawn' })
    const lamp = await market.addLink(shop, sana, { title: 'Lamp' })
    Object.assign(context, { shop, sana, lawn, lamp })
  })

  const sell = async (
    market: Marketplace,
    shop: Shop,
    link: LinkRecord,
    subId: string | null,
    paid = true,
  ) => {
    const click = await market.click(link, true, subId)
    const order = { price: 100_000, click, createdAt: market.clock.now() }
    await market.deliver(shop, orderBody({ ...order, financialStatus: paid ? 'paid' : 'pending' }))
    await market.drainUntilIdle()
  }

  it('counts visits and sales by day, link, offer and sub id, before and after the roll-up', async (context) => {
    const { market, shop, sana, lawn, lamp } = context
    const started = market.clock.now()
    await sell(market, shop, lawn, 'reel')
    await market.click(lawn, true, 'reel')
    await market.click(lawn, false, 'reel')
    market.clock.pass(DAY)
    await sell(market, shop, lamp, null)
    await sell(market, shop, lamp, 'story', false)
    await market.click(lamp)
    const expectAll = async () => {
      const later = market.clock.now()
      const days = [`${dayOf(started)} 2 2 1 0 1000.00 125.00`, `${dayOf(later)} 3 3 1 1 1000.00 125.00`]
      assert.equal(await linesOf(market, sana, { by: 'day' }), days)
      assert.equal(await linesOf(market, shop.actor, { by: 'day' }), days)
      assert.equal(await linesOf(market, sana, { by: 'link' }), [
        `${lamp.slug} 3 3 1 1 1000.00 125.00`,
        `${lawn.slug} 2 2 1 0 1000.00 125.00`,
      ])
      assert.equal(await linesOf(market, shop.actor, { by: 'offer' }), [
        `${lamp.offer_id} 3 3 1 1 1000.00 125.00`,
        `${lawn.offer_id} 2 2 1 0 1000.00 125.00`,
      ])
      const subs = [' 2 2 1 0 1000.00 125.00', 'reel 2 2 1 0 1000.00 125.00', 'story 1 1 0 1 0.00 0.00']
      assert.equal(await linesOf(market, sana, { by: 'sub_id' }), subs)
      const today = { from: new Date(later - 1).toISOString() }
      assert.equal(await linesOf(market, sana, { by: 'sub_id', ...today }), [subs[0], subs[2]])
    }
    await expectAll()
    await rollUpClicks(market.platform)
    await expectAll()
    await market.verify()
  })

  it('names links and offers, and shows each party its own', async ({ market, shop, sana, lawn }) => {
    await sell(market, shop, lawn, null)
    for (const [actor, by, label] of [
      [sana, 'link', 'Lawn'],
      [shop.actor, 'link', 'Lawn, Sana'],
      [shop.actor, 'offer', 'Lawn'],
    ] as const)
      assert.is((await seriesOf(market, actor, { by })).items[0]?.label, label)
    for (const other of [await market.addCreator(), (await market.addShop()).actor])
      assert.equal(await linesOf(market, other, { by: 'day' }), [])
  })

  it('holds each local day of the period once, in order, and refuses a period of more than 366 days', async (context) => {
    const { market, sana, lawn } = context
    const midnight = Date.parse('2026-03-01T00:00:00+05:00')
    market.clock.pass(midnight - market.clock.now() - 1)
    await market.click(lawn)
    market.clock.pass(1)
    await market.click(lawn)
    await rollUpClicks(market.platform)
    const period = { from: '2026-02-27T20:00:00Z', to: '2026-03-02T19:00:00Z' }
    const { items, timezone, currency } = await seriesOf(market, sana, { by: 'day', ...period })
    assert.equal([timezone, currency], ['Asia/Karachi', 'PKR'])
    assert.equal(pluckAll(items, 'key', 'clicks'), [
      ['2026-02-28', 1],
      ['2026-03-01', 1],
      ['2026-03-02', 0],
    ])
    const at = (time: number) => new Date(time).toISOString()
    const year = await seriesOf(market, sana, { by: 'day', from: at(midnight - 366 * DAY), to: at(midnight) })
    assert.is(year.items.length, 366)
    const [start, end] = [at(midnight - 366 * DAY - HOUR), at(midnight)]
    assert.equal((await seriesOf(market, sana, { by: 'day', from: end, to: end })).items, [])
    for (const [from, to] of [
      [start, end],
      [end, start],
    ] as const)
      assert.is(await outcomeOf(seriesOf(market, sana, { by: 'day', from, to })), 'validation_failed')
  })

  it.run()
}
