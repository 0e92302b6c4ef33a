import { randomUUID } from 'node:crypto'
import * as assert from 'uvu/assert'
import { retryInvoice } from '../../billing/invoices.service.ts'
import { openFlags, resolveFlag } from '../../flags/flags.service.ts'
import { flagUndelivered, flagUnknownRecords } from '../../jobs/processor-lists.ts'
import { reconcile } from '../../jobs/reconciliation.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import { retryPayout } from '../../payouts/payouts.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import { changedTables, tableDigests } from '../authorization/digest.ts'
import { type MarketContext, marketSuites } from '../testkit/market-suites.ts'
import {
  attemptsOf,
  cycleOf,
  eventsOf,
  giveDestination,
  openFlagsOf,
  payoutOf,
  type Shop,
} from '../testkit/marketplace.ts'
import { assertMapped } from '../testkit/pluck.ts'
import { DAY, HOUR, MINUTE } from '../testkit/testbed.ts'
import { openSafepayWorld, SAFEPAY_SETTINGS, type SafepayWorld } from './safepay-market.ts'

interface Context {
  world: SafepayWorld
  shop: Shop
  creator: Actor
  /** Its sale of Rs 8002.80 earns Rs 1000.35. */
  cycleId: string
}

const OTHER_IBAN = 'PK24SCBL0000001171495101'
const by = { actor: 'operator', reason: null }

for (const { it } of marketSuites<Context>('Safepay', { verify: true, settings: SAFEPAY_SETTINGS })) {
  it.before.each(async (context) => {
    const { market } = context
    const world = await openSafepayWorld(market)
    const shop = await market.addShop()
    const creator = await market.addCreator()
    const link = await market.addLink(shop, creator)
    const cycleId = await world.invoice(shop, () => market.order(shop, link, 800_280))
    Object.assign(context, { world, shop, creator, cycleId })
  })
  it.after.each(async ({ world }) => {
    await world?.close()
    assert.equal(world?.double.complaints, [])
  })

  const last = ({ world }: Pick<Context, 'world'>) => {
    const payment = world.double.payments.at(-1)
    if (!payment) throw new Error('nothing was requested')
    return payment
  }
  const pay = async (context: Pick<Context, 'world'>) => {
    await context.world.tell(context.world.double.settle(last(context), 'paid'))
  }
  const run = ({ market, world }: Context & MarketContext) =>
    runPayouts(market.platform, world.parts.processor)
  /** Charges the cycle and makes the payout, unsent; returns its id. */
  const makePayout = async (context: Context & MarketContext) => {
    await pay(context)
    const [made] = await run(context)
    if (made?.kind !== 'paid_out' || !made.payoutId) throw new Error(`no payout: ${JSON.stringify(made)}`)
    return made.payoutId
  }
  const states = async ({ market }: MarketContext) =>
    (await eventsOf(market.platform)).filter(({ source }) => source === 'processor').map(({ state }) => state)

  it('goes from an order to a payout in whole rupees, and the second event about it changes nothing', async (context) => {
    const { market, world, cycleId } = context
    const [attempt] = await attemptsOf(market.platform, cycleId)
    assert.is(last(context).requestId, attempt?.id)
    assert.is((await cycleOf(market.platform, cycleId)).processor_invoice_id, last(context).token)
    const payoutId = await makePayout(context)
    const cycle = await cycleOf(market.platform, cycleId)
    assert.equal([cycle.state, cycle.processor_payment_reference], ['charged', last(context).token])
    await world.drain()
    assert.equal([last(context).amount, last(context).type], [100_000, 'PAYOUT'])
    await pay(context)
    assert.is((await payoutOf(market.platform, payoutId)).state, 'paid')
    assert.equal(await states(context), ['done', 'ignored', 'ignored', 'done'])
    assert.equal(await openFlagsOf(market.platform), [])
    assertMapped(await run(context), (outcome) => [outcome.kind, outcome.amount], [['waits', 35]])
  })

  it('flags a rejected request, invoices the cycle again, and charges it once', async (context) => {
    const { market, world, cycleId } = context
    const { platform } = market
    const { processor } = world.parts
    const first = last(context)
    await world.tell(world.double.settle(first, 'rejected'))
    await world.tell([world.double.eventAbout(first, 'payment.failed')])
    assert.equal(await openFlagsOf(platform), [`invoice_failed ${cycleId}`])
    assert.equal(await states(context), ['done', 'ignored'])
    await market.verify()
    await retryInvoice(platform, processor, { cycleId, ...by })
    assert.equal(await openFlagsOf(platform), [])
    // Paid after all, while the second request is on its way: the cycle waits for that.
    const late = world.double.eventAbout(first, 'payment.completed')
    await market.processorSends(late, late.identifier)
    await world.drain()
    const second = last(context)
    assert.is.not(second.token, first.token)
    const closed = await cycleOf(platform, cycleId)
    assert.equal([closed.state, closed.processor_invoice_id], ['closed', second.token])
    await pay(context)
    assert.is((await cycleOf(platform, cycleId)).processor_payment_reference, second.token)
    await retryInvoice(platform, processor, { cycleId, ...by }).then(
      () => assert.unreachable(),
      (error: Error) => assert.match(error.message, /is paid/),
    )
    assert.is(world.double.payments.length, 2)
  })

  it('charges a cycle whose request was rejected and is paid after all, and closes its flag', async (context) => {
    const { market, world, cycleId } = context
    await world.tell(world.double.settle(last(context), 'rejected'))
    assert.equal(await openFlagsOf(market.platform), [`invoice_failed ${cycleId}`])
    await pay(context)
    assert.is((await cycleOf(market.platform, cycleId)).state, 'charged')
    assert.equal(await openFlagsOf(market.platform), [])
  })

  it('takes a rejection inside a 200 for a refusal; only a person sends the payout again', async (context) => {
    const { market, world } = context
    const { platform } = market
    const payoutId = await makePayout(context)
    world.double.switches.status = 'P_REJECTED'
    await world.drain()
    assert.equal(await openFlagsOf(platform), [`processor_refusal ${payoutId}`])
    await world.tell([world.double.eventAbout(last(context), 'payment.rejected')])
    assert.is((await states(context)).at(-1), 'ignored')
    await world.tell([world.double.eventAbout(last(context), 'payment.settled')])
    assert.is((await states(context)).at(-1), 'pending')
    world.double.switches.status = 'P_INITIATED'
    await market.after(DAY)
    assert.is(world.double.payments.length, 2)
    await retryPayout(platform, world.parts.processor, { payoutId, ...by })
    await world.drain()
    await pay(context)
    assert.is((await payoutOf(platform, payoutId)).state, 'paid')
    assert.is(world.double.payments.length, 3)
  })

  it('holds a payout back while the bank names another holder, until a person accepts it', async (context) => {
    const { market, world } = context
    const { platform, clock } = market
    const payoutId = await makePayout(context)
    world.double.title = 'Another Holder'
    world.double.instead.set('GET title-fetch', [{ status: 500, body: 'busy' }])
    await world.drain()
    assert.equal(await openFlagsOf(platform), [])
    for (let minute = 0; minute < 3; minute += 1) {
      clock.pass(MINUTE)
      await world.drain()
    }
    assert.equal(await openFlagsOf(platform), [`account_title_differs ${payoutId}`])
    const fetched = () => world.double.requests.filter(({ path }) => path === 'title-fetch').length
    assert.equal([world.double.payments.length, fetched()], [1, 2])
    const [flag] = await openFlags(platform.database.reader, 'account_title_differs')
    await resolveFlag(platform, { flagId: flag?.id ?? '', actor: 'operator', note: 'a business name' })
    clock.pass(MINUTE)
    await world.drain()
    await pay(context)
    assert.is((await payoutOf(platform, payoutId)).state, 'paid')
    // The account has been paid now: its title is not asked for again.
    const { shop, creator } = context
    const link = await market.addLink(shop, creator)
    await world.invoice(shop, () => market.order(shop, link, 800_280))
    await makePayout(context)
    await world.drain()
    assert.equal([world.double.payments.length, fetched()], [4, 2])
  })

  it('does not send to such an account once the creator has another one', async (context) => {
    const { market, world, creator } = context
    const { platform, clock } = market
    const payoutId = await makePayout(context)
    world.double.titles.set('PK36SCBL0000001123456702', 'Another Holder')
    await world.drain()
    await giveDestination(platform, creator.userId, OTHER_IBAN)
    clock.pass(2 * DAY)
    await world.drain()
    assert.is(world.double.payments.length, 1)
    assert.ok((await openFlagsOf(platform)).includes(`processor_refusal ${payoutId}`))
    await retryPayout(platform, world.parts.processor, { payoutId, ...by })
    await world.drain()
    assert.is(last(context).body.creditor_iban, OTHER_IBAN)
  })

  it('makes no payouts while the balance is too low, with one flag until it is enough', async (context) => {
    const { market, world } = context
    const { platform } = market
    await pay(context)
    world.double.balance = 99_999
    for (let again = 0; again < 2; again += 1) {
      const [outcome] = await run(context)
      assert.is(outcome?.kind === 'waits' && outcome.why, 'balance_too_low')
    }
    assert.equal(await openFlagsOf(platform), ['processor_balance_low safepay-raast'])
    world.double.instead.set('GET ledger/accounts', [{ status: 200, body: '<html>' }])
    const [unanswered] = await run(context)
    assert.is(unanswered?.kind === 'waits' && unanswered.why, 'processor_unavailable')
    world.double.balance = 100_000
    assert.is((await run(context))[0]?.kind, 'paid_out')
    assert.equal(await openFlagsOf(platform), [])
  })

  it('reconciles by request id, and flags events that were given up; both move nothing', async (context) => {
    const { market, world, cycleId } = context
    const { platform, clock } = market
    const { processor } = world.parts
    clock.pass(DAY)
    const [lost] = world.double.settle(last(context), 'paid')
    world.double.endpoints.push({
      token: 'wh_1',
      url: 'https://x',
      enabled: true,
      event_types: [],
      secret: '',
    })
    const created_at = new Date(clock.now()).toISOString()
    world.double.dead.push({ event_id: lost?.identifier ?? '', type: 'payment.completed', created_at })
    const outcome = await reconcile(platform, processor, { pauseMs: 0 })
    assert.equal(
      outcome.differing.map(({ ours, differences }) => [ours.id, differences]),
      [[cycleId, ['paid_there']]],
    )
    assert.is(await flagUndelivered(platform, processor), 1)
    assert.is((await cycleOf(platform, cycleId)).state, 'closed')
    const flags = [`events_undelivered safepay-raast`, `reconciliation_difference ${cycleId}`]
    assert.equal(await openFlagsOf(platform), flags)
    // Seen by a person, it is not flagged again; once it has arrived, there is none.
    const [flag] = await openFlags(platform.database.reader, 'events_undelivered')
    await resolveFlag(platform, { flagId: flag?.id ?? '', actor: 'operator', note: 'asked for it' })
    assert.is(await flagUndelivered(platform, processor), 1)
    assert.equal(await openFlagsOf(platform), [flags[1]])
    if (lost) await world.tell([lost])
    assert.is(await flagUndelivered(platform, processor), 0)
    assert.is((await cycleOf(platform, cycleId)).state, 'charged')
  })

  it('flags payments and payouts that no call of ours made, once, and moves nothing', async (context) => {
    const { market, world } = context
    const { platform, clock } = market
    const { processor } = world.parts
    const find = async () => {
      const found = await flagUnknownRecords(platform, processor, { pauseMs: 0 })
      return [found?.count, found?.records.length]
    }
    const subject = 'reconciliation_difference safepay-raast'
    /** As another system with the same key does; the newest last. */
    const paidElsewhere = (count: number, requestId?: string) => {
      for (let one = 0; one < count; one += 1) {
        const id = requestId ?? randomUUID()
        const body = { request_id: id, amount: '500', creditor_iban: OTHER_IBAN }
        world.double.payments.push({
          token: `pm_${one}_${id}`,
          requestId: id,
          orderId: '',
          type: 'PAYOUT',
          amount: 50_000,
          status: 'P_SETTLED',
          createdAt: clock.now(),
          body,
        })
      }
    }
    const payoutId = await makePayout(context)
    await world.drain()
    await pay(context)
    clock.pass(HOUR)
    assert.equal(await find(), [0, 0])
    paidElsewhere(1, 'not a UUID')
    // What was just made waits for the next run.
    assert.equal(await find(), [0, 0])
    clock.pass(HOUR)
    const before = await tableDigests(platform.database.reader)
    assert.equal(await find(), [1, 1])
    assert.equal(changedTables(before, await tableDigests(platform.database.reader)), ['flags', 'watermarks'])
    assert.equal(await openFlagsOf(platform), [subject])
    paidElsewhere(250)
    clock.pass(HOUR)
    assert.equal(await find(), [251, 200])
    const [flag] = await openFlags(platform.database.reader, 'reconciliation_difference')
    const { count, records } = JSON.parse(flag?.evidence ?? '')
    assert.equal([count, records.length], [251, 200])
    const { id: _id, request_id: _request, at: _at, ...shown } = records[0]
    assert.equal(shown, { type: 'PAYOUT', amount: '500.00', status: 'P_SETTLED' })
    await resolveFlag(platform, { flagId: flag?.id ?? '', actor: 'operator', note: 'another shop of ours' })
    assert.equal(await find(), [0, 0])
    paidElsewhere(1)
    clock.pass(HOUR)
    assert.equal(await find(), [1, 1])
    assert.equal(await openFlagsOf(platform), [subject])
    assert.is((await payoutOf(platform, payoutId)).state, 'paid')
    // Without an answer, or with a list that breaks off, nothing is concluded.
    world.double.instead.set('GET payments', [
      { status: 500, body: 'busy' },
      { status: 200, body: JSON.stringify({ data: { count: '3', payments: [] } }) },
    ])
    for (const _time of [1, 2]) assert.equal(await find(), [undefined, undefined])
  })

  it('moves nothing for money that came back, or an amount in another unit', async (context) => {
    const { market, world, cycleId } = context
    const { platform } = market
    const invoice = last(context)
    const payoutId = await makePayout(context)
    await world.drain()
    world.double.switches.payoutUnit = 'paisa'
    await pay(context)
    assert.is((await payoutOf(platform, payoutId)).state, 'submitted')
    assert.equal(await openFlagsOf(platform), [`payout_amount_mismatch ${payoutId}`])
    world.double.switches.payoutUnit = 'rupees'
    await pay(context)
    await world.tell([
      ...world.double.settle(last(context), 'reversed'),
      world.double.eventAbout(invoice, 'payment.refunded'),
      world.double.eventAbout(invoice, 'payment.failed'),
    ])
    assert.is((await payoutOf(platform, payoutId)).state, 'paid')
    assert.is((await cycleOf(platform, cycleId)).state, 'charged')
    assert.equal(
      await openFlagsOf(platform),
      [
        `payment_reversed ${cycleId}`,
        `payment_reversed ${payoutId}`,
        `payout_amount_mismatch ${payoutId}`,
      ].sort(),
    )
  })

  it.run()
}
