import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { listCycles } from '../../billing/billing.service.ts'
import { closeDueCycles } from '../../billing/close-cycle.service.ts'
import { grantCredit } from '../../billing/credits.service.ts'
import { TamperedRow } from '../../platform/database/protected-rows.ts'
import { watchCycles } from '../../watches/cycle-watch.service.ts'
import { marketSuites } from '../testkit/market-suites.ts'
import {
  brokenRows,
  cycleOf,
  cyclesOf,
  eventsOf,
  type Marketplace,
  openFlagsOf,
  type Shop,
} from '../testkit/marketplace.ts'
import { outcomeOf } from '../testkit/people.ts'
import { rowOf, rowsOf } from '../testkit/rows.ts'
import { writeWithoutKey } from '../testkit/tamper.ts'
import { DAY } from '../testkit/testbed.ts'

interface Context {
  /** The shop whose cycle is changed, and another one. */
  shop: Shop
  other: Shop
  order(shop: Shop): Promise<void>
}

for (const { it } of marketSuites<Context>('billing cycles that a database writer changes')) {
  it.before.each(async (context) => {
    const { market } = context
    context.shop = await market.addShop('shop')
    context.other = await market.addShop('other')
    const creator = await market.addCreator()
    context.order = async (shop) => {
      await market.order(shop, await market.addLink(shop, creator), 100_000)
      await outcomeOf(market.drainUntilIdle())
    }
    for (const shop of [context.shop, context.other]) await context.order(shop)
  })

  const change = (market: Marketplace, shop: Shop, set: string) =>
    writeWithoutKey(
      market.bed.testDatabase.database,
      sql`update billing_cycles set ${sql.raw(set)} where merchant_id = ${shop.merchantId}`,
    )
  const stateOf = async ({ platform }: Marketplace, { merchantId }: Shop) =>
    (await cyclesOf(platform, merchantId)).map(({ state }) => state)
  const close = async ({ market }: { market: Marketplace }) => {
    market.clock.pass(40 * DAY)
    return closeDueCycles(market.platform)
  }
  const assertFlagged = async ({ platform }: Marketplace) =>
    assert.ok((await openFlagsOf(platform)).includes('integrity_violation billing_cycles'))

  it('does not close one with another end, and closes the others', async (context) => {
    const { market, platform, shop, other } = context
    await change(market, shop, 'period_end = period_end - 1')
    const outcomes = await close(context)
    assert.equal(outcomes.map(({ kind }) => kind).toSorted(), ['closed', 'failed'])
    assert.equal([await stateOf(market, shop), await stateOf(market, other)], [['open'], ['closed']])
    await assertFlagged(market)
    const [cycle] = await cyclesOf(platform, shop.merchantId)
    assert.ok((await openFlagsOf(platform)).includes(`run_failed ${cycle?.id}`))
    assert.is.not((await brokenRows(platform, 'rows-authentic-billing-cycles')).length, 0)
  })

  it('closes none with a credit that was not granted, and closes the others', async (context) => {
    const { market, platform, shop, other } = context
    const grant = { amount: 100, reason: 'damaged', actor: 'operator' }
    await grantCredit(platform, { ...grant, merchantId: other.merchantId, reference: 'granted' })
    const { writer } = market.bed.testDatabase.database
    const granted = await rowOf(platform, 'credits')
    const forged = { id: platform.ids.next(), merchant_id: shop.merchantId, reference: 'forged' }
    const row = { ...granted, ...forged }
    await writer.insertInto('credits').values(row).execute()
    await close(context)
    assert.equal([await stateOf(market, shop), await stateOf(market, other)], [['open'], ['closed']])
    assert.ok((await openFlagsOf(platform)).includes('integrity_violation credits'))
    const regrant = grantCredit(platform, { ...grant, merchantId: shop.merchantId, reference: 'another' })
    assert.instance(await regrant.catch((error) => error), TamperedRow)
  })

  it('closes none with a credit that a former cycle has used', async (context) => {
    const { market, platform, shop, other, order } = context
    const grant = { amount: 100, reason: 'damaged', actor: 'operator', reference: 'granted' }
    await grantCredit(platform, { ...grant, merchantId: shop.merchantId })
    await close(context)
    await change(market, shop, 'credit_total = 0')
    for (const one of [shop, other]) await order(one)
    await close(context)
    const states = [await stateOf(market, shop), await stateOf(market, other)]
    assert.equal(states, [
      ['closed', 'open'],
      ['closed', 'closed'],
    ])
    await assertFlagged(market)
  })

  it('adds no sale to one of another period, and adds those of other merchants', async (context) => {
    const { market, platform, shop, other, order } = context
    await change(market, shop, 'period_end = period_end + 1')
    await order(shop)
    await order(other)
    assert.is((await rowsOf(platform, 'sales', { merchant_id: shop.merchantId })).length, 1)
    assert.is((await rowsOf(platform, 'sales', { merchant_id: other.merchantId })).length, 2)
    assert.is((await eventsOf(platform)).filter(({ state }) => state === 'pending').length, 1)
    await assertFlagged(market)
  })

  it('shows no payment address that it did not write, and mails none', async (context) => {
    const { market, platform, shop, other } = context
    await close(context)
    await market.drainUntilIdle()
    await change(market, shop, "payment_url = 'https://eve.example.com'")
    const listed = await listCycles(platform, { merchantId: null, state: null, limit: 10, before: null })
    const of = ({ merchantId }: Shop) => listed.find(({ merchant_id }) => merchant_id === merchantId)
    assert.is(of(shop)?.payment_url, null)
    assert.match(of(other)?.payment_url ?? '', /^https:/)
    await assertFlagged(market)
    market.clock.pass(40 * DAY)
    await watchCycles(platform)
    const events = await rowsOf(platform, 'outbox_events', { type: 'billing_cycle.overdue' })
    assert.is(events.length, 2)
    assert.not(events.some(({ data }) => data.includes('eve.example.com')))
  })

  it('charges none whose closing was changed, and charges the others', async (context) => {
    const { market, platform, shop, other } = context
    await close(context)
    await market.drainUntilIdle()
    const ids: string[] = []
    for (const { merchantId } of [shop, other]) ids.push((await cyclesOf(platform, merchantId))[0]?.id ?? '')
    await change(market, shop, 'period_end = period_end - 1')
    for (const id of ids) await market.confirmPayment(id)
    await outcomeOf(market.drainUntilIdle())
    const states: (string | undefined)[] = []
    for (const id of ids) states.push((await cycleOf(platform, id))?.state)
    assert.equal(states, ['closed', 'charged'])
    await assertFlagged(market)
  })

  it.run()
}
