import * as assert from 'uvu/assert'
import type { Paisa } from '../../shared/money.ts'
import { appRouter } from '../http/router.ts'
import { creatorBalance } from '../ledger/ledger.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { addTrade, type MarketContext, marketSuites } from '../test/testkit/market-suites.ts'
import {
  closeOpenCycle,
  cycleOf,
  cyclesOf,
  eventsOf,
  type Marketplace,
  openFlagsOf,
  type Shop,
  type Trade,
} from '../test/testkit/marketplace.ts'
import { outcomeOf, requestOf } from '../test/testkit/people.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { columnsOf } from '../test/testkit/rows.ts'
import { DAY, HOUR } from '../test/testkit/testbed.ts'
import { billingRouter } from './billing.procedures.ts'
import { cycleShares } from './billing.service.ts'
import { closeDueCycles } from './close-cycle.service.ts'
import { grantCredit } from './credits.service.ts'

type Context = MarketContext & Trade

/** Midnights of Karachi. */
const OCTOBER_ENDS = Date.parse('2026-10-31T19:00:00.000Z')
const NOVEMBER_ENDS = Date.parse('2026-11-30T19:00:00.000Z')
const DECEMBER_ENDS = Date.parse('2026-12-31T19:00:00.000Z')
const RUPEES = 100
/** Commission 12.5 % and 10 % of it as fee: Rs 137.50 of Rs 1000. */
const SALE: Paisa = 1000 * RUPEES
const BILLED: Paisa = 13_750

for (const { it } of marketSuites<Trade>('billing cycles', { verify: true })) {
  it.before.each(addTrade)

  const sell = ({ market, shop, link }: Context, price = SALE) => market.sell(shop, link, price)
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
    const invoice = ['invoice', closed?.id, 2 * BILLED]
    assert.equal(pluckAll(market.processor.calls, 'kind', 'reference', 'amount'), [invoice])
    const { processor_invoice_id: id, payment_url } = closed ?? {}
    assert.equal([id, payment_url], ['inv_1', 'https://pay.example/inv_1'])
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
    const period = [OCTOBER_ENDS, Date.parse('2027-01-31T19:00:00.000Z')]
    assert.equal(await cycles(context), [{ state: 'open', period, sales: 2, credit: 0, due: 0 }])
    market.clock.set('2027-02-01T00:00:00.000Z')
    const [closed] = await closeDueCycles(market.platform)
    assert.is(closed?.amountDue, BILLED + 97)
  })

  it('credits a merchant up to what was accepted, uses it up and takes the rest along', async (context) => {
    const { market } = context
    const other = await market.addTrade()
    await market.sell(other.shop, other.link, 1_000_000)
    assert.is(await outcomeOf(grant(context, 1, 'too early')), 'conflict', 'of another merchant')
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
    const action = { action: 'billing.credit' }
    assert.equal(await columnsOf(market.platform, 'audit_entries', ['actor', 'reason'], action), [
      { actor: 'operator', reason: 'damaged in delivery' },
    ])
  })

  it.run()
}

/** 12.5 % of Rs 1000 and of Rs 3000. */
const COMMISSIONS: [Paisa, Paisa] = [12_500, 37_500]

interface Payable extends Trade {
  creators: [Actor, Actor]
  cycleId: string
}

for (const { it } of marketSuites<Payable>('payment confirmations', { verify: true })) {
  it.before.each(addTrade)
  /** A closed cycle of two creators' sales, whose invoice the processor has made. */
  it.before.each(async (context) => {
    const { market, shop, creator, link } = context
    context.creators = [creator, await market.addCreator()]
    await market.order(shop, link, COMMISSIONS[0] * 8)
    await market.sell(shop, await market.addLink(shop, context.creators[1]), COMMISSIONS[1] * 8)
    market.clock.set('2026-11-30T19:05:00.000Z')
    const [closed, ...others] = await closeDueCycles(market.platform)
    assert.equal(others, [])
    context.cycleId = closed?.cycleId ?? ''
    await market.drainUntilIdle()
  })

  type Context = MarketContext & Payable
  const confirm = async ({ market, cycleId }: Context, changes = {}) => {
    await market.confirmPayment(cycleId, changes)
    await market.drainUntilIdle()
  }
  const cycle = ({ platform, cycleId }: Context) => cycleOf(platform, cycleId)
  const lastEvent = async ({ platform }: Context) => (await eventsOf(platform)).at(-1)
  const balances = ({ platform, creators }: Context) =>
    Promise.all(
      creators.map(async ({ userId }) => {
        const { pending, released } = await creatorBalance(platform.database.reader, userId)
        return [pending, released]
      }),
    )
  const RELEASED = COMMISSIONS.map((commission) => [0, commission])

  it('charges the cycle, and releases what each creator earned in it', async (context) => {
    const { platform, clock, cycleId } = context
    const pending = COMMISSIONS.map((commission) => [commission, 0])
    assert.equal(await balances(context), pending)
    await confirm(context)
    const { state, processor_payment_reference, charged_at, period_end } = await cycle(context)
    assert.equal(
      [state, processor_payment_reference, charged_at, period_end],
      ['charged', `pay_${cycleId}`, clock.now(), NOVEMBER_ENDS],
    )
    assert.equal(await balances(context), RELEASED)
    const shares = await cycleShares(platform.database.reader, cycleId)
    assert.equal(pluck(shares, 'released_at'), [clock.now(), clock.now()])
    const result = JSON.parse((await lastEvent(context))?.result ?? '')
    assert.equal(result, { billing_cycle_id: cycleId, state: 'charged' })
    assert.equal(await openFlagsOf(platform), [])
  })

  it('changes nothing when the same confirmation comes again, under this or another delivery id', async (context) => {
    const { market, platform, cycleId } = context
    for (const _ of [1, 2, 3]) await market.confirmPayment(cycleId)
    await market.drainUntilIdle()
    await confirm(context)
    const events = (await eventsOf(platform)).filter((event) => event.source === 'processor')
    assert.equal(pluck(events, 'state'), ['done', 'ignored', 'ignored', 'ignored'])
    assert.equal(await balances(context), RELEASED)
    assert.equal(await openFlagsOf(platform), [])
  })

  it('flags a confirmation of another amount or currency and a second payment, and changes nothing', async (context) => {
    const { platform, cycleId } = context
    const mismatch = `payment_amount_mismatch ${cycleId}`
    const second = `second_payment_reference ${cycleId}`
    for (const [changes, event, state, flags] of [
      [{ amount: '549.99' }, 'set_aside', 'closed', [mismatch]],
      [{ currency: 'USD' }, 'set_aside', 'closed', [mismatch]],
      [{}, 'done', 'charged', [mismatch]],
      [{ payment_reference: 'pay_again' }, 'set_aside', 'charged', [mismatch, second]],
    ] as const) {
      await confirm(context, changes)
      assert.equal([(await lastEvent(context))?.state, (await cycle(context)).state], [event, state])
      assert.equal(await openFlagsOf(platform), flags)
    }
    assert.is((await cycle(context)).processor_payment_reference, `pay_${cycleId}`)
  })

  it.run()
}

for (const { it } of marketSuites<Trade>('the list of billing cycles')) {
  it.before.each(addTrade)
  it.before.each(async ({ market, shop, link }) => {
    await market.earn(shop, link, 1_000_000)
    await market.sell(shop, link, 500_000)
  })

  const as = (market: Marketplace, { actor }: Shop) =>
    billingRouter.createCaller(requestOf(market.platform, actor))

  it('shows own cycles newest first, with invoice and payment if charged', async ({ market, shop }) => {
    const other = await market.addTrade()
    await market.sell(other.shop, other.link, 300_000)
    const { items, next_cursor } = await as(market, shop).listCycles({})
    assert.is(next_cursor, null)
    const [invoice, payment] = ['processor_invoice_id', 'processor_payment_reference'] as const
    assert.equal(pluckAll(items, 'state', 'commission_total', 'fee_total', 'amount_due', invoice, payment), [
      ['open', '625.00', '62.50', '687.50', null, null],
      ['charged', '1250.00', '125.00', '1375.00', 'inv_1', `pay_${items[1]?.id}`],
    ])
  })

  it('filters by state and goes on page by page', async ({ market, shop }) => {
    const caller = as(market, shop)
    await closeOpenCycle(market.platform, shop)
    const closed = await caller.listCycles({ state: 'closed' })
    assert.equal(pluck(closed.items, 'state'), ['closed'])
    const first = await caller.listCycles({ limit: 1 })
    assert.ok(first.next_cursor)
    const second = await caller.listCycles({ limit: 1, cursor: first.next_cursor })
    assert.equal([...first.items, ...second.items], (await caller.listCycles({})).items)
    assert.is(second.next_cursor, null)
  })

  it('shows what an open cycle would charge if it closed now, after credit', async ({ market, shop }) => {
    const { platform } = market
    const none = { open_cycle_due: '0.00', unpaid: '0.00', credit_available: '0.00', currency: 'PKR' }
    const shown = async () => {
      const [cycle] = (await as(market, shop).listCycles({})).items
      const { account } = await appRouter.createCaller(requestOf(platform, shop.actor)).users.me({})
      return { cycle, account }
    }
    for (const [amount, credit_total, amount_due, credit_available] of [
      [10_000, '100.00', '587.50', '100.00'],
      // More credit than the cycle can use: the least invoice is one rupee, the rest moves on.
      [70_000, '686.50', '1.00', '800.00'],
    ] as const) {
      const grant = { amount, reference: `C${amount}`, reason: 'return', actor: 'operator' }
      await grantCredit(platform, { ...grant, merchantId: shop.merchantId })
      const { cycle, account } = await shown()
      assert.equal([cycle?.state, cycle?.credit_total, cycle?.amount_due], ['open', credit_total, amount_due])
      assert.equal(account, { ...none, open_cycle_due: amount_due, credit_available })
    }
    const before = await shown()
    await closeOpenCycle(platform, shop)
    const { cycle, account } = await shown()
    const { credit_total, amount_due } = before.cycle ?? {}
    assert.equal([cycle?.state, cycle?.credit_total, cycle?.amount_due], ['closed', credit_total, amount_due])
    assert.equal(account, { ...none, unpaid: '1.00', credit_available: '113.50' })
  })

  it.run()
}
