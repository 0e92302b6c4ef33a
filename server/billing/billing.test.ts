import * as assert from 'uvu/assert'
import type { Paisa } from '../../shared/money.ts'
import type { LinkRecord } from '../links/links.service.ts'
import { changedTables, tableDigests } from '../test/authorization/digest.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { cyclesOf, type Marketplace, type Shop } from '../test/testkit/marketplace.ts'
import { outcomeOf } from '../test/testkit/people.ts'
import { pluckAll } from '../test/testkit/pluck.ts'
import { DAY, HOUR } from '../test/testkit/testbed.ts'
import { closeDueCycles } from './close-cycle.service.ts'
import { grantCredit } from './credits.service.ts'

interface Context {
  market: Marketplace
  shop: Shop
  link: LinkRecord
}

/** Midnights of Karachi. */
const OCTOBER_ENDS = Date.parse('2026-10-31T19:00:00.000Z')
const NOVEMBER_ENDS = Date.parse('2026-11-30T19:00:00.000Z')
const DECEMBER_ENDS = Date.parse('2026-12-31T19:00:00.000Z')
const RUPEES = 100
/** Commission 12.5 % and 10 % of it as fee: Rs 137.50 of Rs 1000. */
const SALE: Paisa = 1000 * RUPEES
const BILLED: Paisa = 13_750

for (const { it } of marketSuites<Context>('billing cycles')) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
    context.link = await context.market.addLink(context.shop, await context.market.addCreator())
  })

  const sell = async ({ market, shop, link }: Context, price = SALE) => {
    await market.order(shop, link, price)
    await market.drainUntilIdle()
  }
  const cycles = async ({ market, shop }: Context) =>
    (await cyclesOf(market.platform, shop.merchantId)).map((cycle) => ({
      state: cycle.state,
      period: [cycle.period_start, cycle.period_end],
      sales: cycle.sales_count,
      credit: cycle.credit_total,
      due: cycle.amount_due,
    }))
  const grant = ({ market, shop }: Context, amount: Paisa, reference: string) =>
    grantCredit(market.platform, {
      merchantId: shop.merchantId,
      amount,
      reference,
      reason: 'damaged in delivery',
      actor: 'operator',
    })

  it('opens the first cycle over the calendar month of the first acceptance in Karachi', async (context) => {
    await sell(context)
    await sell(context)
    assert.equal(await cycles(context), [
      { state: 'open', period: [OCTOBER_ENDS, NOVEMBER_ENDS], sales: 2, credit: 0, due: 0 },
    ])
    assert.equal(await closeDueCycles(context.market.platform), [])
    await context.market.verify()
  })

  it('puts the last millisecond into the old cycle, and the end itself into the next', async (context) => {
    const { market, shop } = context
    await sell(context)
    market.clock.set('2026-11-30T18:59:59.999Z')
    await sell(context)
    assert.is((await cycles(context)).length, 1)
    market.clock.pass(1)
    await sell(context)
    const expected = [
      { state: 'closed', period: [OCTOBER_ENDS, NOVEMBER_ENDS], sales: 2, credit: 0, due: 2 * BILLED },
      { state: 'open', period: [NOVEMBER_ENDS, DECEMBER_ENDS], sales: 1, credit: 0, due: 0 },
    ]
    assert.equal(await cycles(context), expected)
    // The job that comes late finds nothing to do.
    market.clock.pass(5 * HOUR)
    assert.equal(await closeDueCycles(market.platform), [])
    await market.drainUntilIdle()
    assert.equal(await cycles(context), expected)
    const [closed] = await cyclesOf(market.platform, shop.merchantId)
    assert.equal(
      market.processor.calls.map((call) => [call.kind, call.reference, call.amount]),
      [['invoice', closed?.id, 2 * BILLED]],
    )
    assert.is(closed?.processor_invoice_id, 'inv_1')
    assert.is(closed?.payment_url, 'https://pay.example/inv_1')
    await market.verify()
  })

  it('starts the next cycle where the last ended, however long nothing was sold', async (context) => {
    const { market } = context
    await sell(context)
    market.clock.set('2026-12-01T00:00:00.000Z')
    const [closed] = await closeDueCycles(market.platform)
    assert.equal([closed?.kind, closed?.amountDue], ['closed', BILLED])
    market.clock.set('2027-03-10T00:00:00.000Z')
    await sell(context)
    const [, open] = await cycles(context)
    assert.equal(open?.period, [NOVEMBER_ENDS, Date.parse('2027-03-31T19:00:00.000Z')])
    await market.verify()
  })

  it('extends a cycle of less than a rupee, by the job and by an acceptance', async (context) => {
    const { market } = context
    await sell(context, 7 * RUPEES)
    market.clock.set('2026-12-05T00:00:00.000Z')
    const [extended] = await closeDueCycles(market.platform)
    assert.equal([extended?.kind, extended?.periodEnd, extended?.amountDue], ['extended', DECEMBER_ENDS, 0])
    assert.equal(await closeDueCycles(market.platform), [])
    market.clock.set('2026-12-31T19:00:00.000Z')
    await sell(context)
    assert.equal(await cycles(context), [
      {
        state: 'open',
        period: [OCTOBER_ENDS, Date.parse('2027-01-31T19:00:00.000Z')],
        sales: 2,
        credit: 0,
        due: 0,
      },
    ])
    market.clock.set('2027-02-01T00:00:00.000Z')
    const [closed] = await closeDueCycles(market.platform)
    assert.is(closed?.amountDue, BILLED + 97)
    await market.verify()
  })

  it('shows in a dry run what a close would do, and writes nothing', async (context) => {
    const { market } = context
    await sell(context)
    await grant(context, 1000, 'r1')
    const before = await tableDigests(market.platform.database.reader)
    const [preview] = await closeDueCycles(market.platform, { asOf: NOVEMBER_ENDS, dryRun: true })
    assert.equal(
      [preview?.kind, preview?.creditTotal, preview?.amountDue, preview?.salesCount],
      ['closed', 1000, BILLED - 1000, 1],
    )
    assert.equal(changedTables(before, await tableDigests(market.platform.database.reader)), [])
    assert.equal(await closeDueCycles(market.platform, { asOf: NOVEMBER_ENDS - 1 }), [])
    assert.equal(await closeDueCycles(market.platform, { asOf: NOVEMBER_ENDS }), [preview])
    await market.verify()
  })

  it('credits a merchant up to what was accepted, uses it up and takes the rest along', async (context) => {
    const { market } = context
    assert.is(await outcomeOf(grant(context, 1, 'too early')), 'conflict')
    await sell(context)
    assert.is(await outcomeOf(grant(context, 0, 'nothing')), 'validation_failed')
    assert.is(await outcomeOf(grant(context, BILLED + 1, 'too much')), 'conflict')
    const first = await grant(context, BILLED, 'all')
    assert.is(await outcomeOf(grant(context, 1, 'one more')), 'conflict')
    assert.equal(await grant(context, BILLED, 'all'), { ...first, created: false })
    assert.is(await outcomeOf(grant(context, 1, 'all')), 'conflict')
    await closeDueCycles(market.platform, { asOf: NOVEMBER_ENDS })
    await sell(context)
    await closeDueCycles(market.platform, { asOf: NOVEMBER_ENDS + 40 * DAY })
    assert.equal(pluckAll(await cycles(context), 'credit', 'due'), [
      [BILLED - 100, 100],
      [100, BILLED - 100],
    ])
    const audit = await market.platform.database.reader.selectFrom('audit_entries').selectAll().execute()
    assert.equal(
      audit.filter((entry) => entry.action === 'billing.credit').map((entry) => [entry.actor, entry.reason]),
      [['operator', 'damaged in delivery']],
    )
    await market.verify()
  })

  it.run()
}
