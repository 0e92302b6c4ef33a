import * as assert from 'uvu/assert'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { retryInvoice } from '../billing/invoices.service.ts'
import { openFlags, resolveFlag } from '../flags/flags.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { claimAttempts } from '../processor/attempts.service.ts'
import type { CallOutcome, Processor } from '../processor/processor.ts'
import { updateProfile } from '../profile/profile.service.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import {
  attemptsOf,
  cycleOf,
  cyclesOf,
  giveBillingAccount,
  type Marketplace,
  openFlagsOf,
  payoutOf,
  type Shop,
} from '../test/testkit/marketplace.ts'
import { setSuspended } from '../test/testkit/people.ts'
import { openRival } from '../test/testkit/rival.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import { makeDueCalls } from './processor-calls.ts'

interface Context {
  market: Marketplace
  shop: Shop
  creator: Actor
  cycleId: string
}

const SALE = 800_000

for (const { it } of marketSuites<Context>('calls to the processor', { verify: true })) {
  /** A closed cycle whose invoice has not been requested. */
  it.before.each(async (context) => {
    const { market } = context
    const shop = await market.addShop()
    const creator = await market.addCreator()
    await market.order(shop, await market.addLink(shop, creator), SALE)
    await market.drainUntilIdle()
    const [cycle] = await cyclesOf(market.platform, shop.merchantId)
    await closeDueCycles(market.platform, { asOf: cycle?.period_end ?? 0 })
    Object.assign(context, { shop, creator, cycleId: cycle?.id })
  })

  const attempt = async ({ market, cycleId }: Context) => {
    const [row, ...others] = await attemptsOf(market.platform, cycleId)
    assert.is(others.length, 0)
    if (!row) throw new Error('no attempt')
    return row
  }
  /** Charges the cycle and makes the creator's payout, unsent; returns its id. */
  const makePayout = async ({ market, cycleId }: Context) => {
    await market.drainUntilIdle()
    await market.confirmPayment(cycleId)
    await market.drainUntilIdle()
    const [made] = await runPayouts(market.platform, market.processor)
    if (made?.kind !== 'paid_out' || !made.payoutId) throw new Error('no payout')
    return made.payoutId
  }

  it('sends the frozen amount under the key of the attempt', async (context) => {
    const { market, shop, cycleId } = context
    await market.drainUntilIdle()
    const row = await attempt(context)
    assert.equal(market.processor.calls, [
      { kind: 'invoice', attemptId: row.id, reference: cycleId, amount: 110_000 },
    ])
    const email = `${shop.merchantId}@example.com`
    assert.equal(market.processor.invoices[0]?.rest, { id: shop.merchantId, email, name: 'merchant' })
    assert.equal([row.state, row.tries, row.processor_id], ['created', 1, 'inv_1'])
    assert.is((await cycleOf(market.platform, cycleId)).processor_invoice_id, 'inv_1')
  })

  it('looks up an unknown outcome, and calls again with the same key when the processor holds nothing', async (context) => {
    const { market, cycleId } = context
    market.processor.answers = ['drop', 'drop']
    await market.drainUntilIdle()
    for (let tries = 0; tries < 3; tries += 1) await market.after(MINUTE)
    const row = await attempt(context)
    assert.equal(
      market.processor.calls.map((call) => [call.attemptId, call.amount]),
      [1, 2, 3].map(() => [row.id, 110_000]),
    )
    assert.equal(market.processor.lookups, [cycleId, cycleId])
    assert.equal([row.state, market.processor.invoices.length], ['created', 1])
  })

  it('does not call again while the look-up fails, raises a flag in the end, and continues', async (context) => {
    const { market, cycleId } = context
    market.processor.answers = ['lose']
    market.processor.lookupsFail = true
    await market.drainUntilIdle()
    for (let tries = 2; tries < 12; tries += 1) await market.after(11 * MINUTE)
    assert.equal(await openFlagsOf(market.platform), [])
    await market.after(11 * MINUTE)
    assert.equal(await openFlagsOf(market.platform), [`processor_disagrees ${cycleId}`])
    assert.is(market.processor.calls.length, 1)
    market.processor.lookupsFail = false
    await market.after(11 * MINUTE)
    assert.is((await attempt(context)).state, 'created')
  })

  it('does not treat a refusal as final that may be about a call without an answer, and finds its effect', async (context) => {
    const { market } = context
    const { processor } = market
    processor.answers = ['lose', 'refuse']
    processor.lookupsLag = true
    await market.drainUntilIdle()
    await market.after(MINUTE)
    assert.equal([(await attempt(context)).state, processor.calls.length], ['waiting', 2])
    processor.lookupsLag = false
    await market.after(10 * MINUTE)
    const row = await attempt(context)
    assert.equal([row.state, row.processor_id, processor.calls.length], ['created', 'inv_1', 2])
    assert.equal(await openFlagsOf(market.platform), [])
  })

  it('treats it as final after ten minutes of look-ups without a record', async (context) => {
    const { market, cycleId } = context
    market.processor.answers = ['drop', ...Array<'refuse'>(20).fill('refuse')]
    await market.drainUntilIdle()
    for (const minute of [1, 2, 3]) {
      await market.after(3 * MINUTE)
      assert.is((await attempt(context)).state, 'waiting', `after ${3 * minute} minutes`)
    }
    await market.after(10 * MINUTE)
    assert.is((await attempt(context)).state, 'refused')
    assert.equal(await openFlagsOf(market.platform), [`processor_refusal ${cycleId}`])
    assert.is(new Set(market.processor.calls.map(({ attemptId }) => attemptId)).size, 1)
  })

  it('treats a refusal as final immediately after tries that are known to have done nothing', async (context) => {
    const { market } = context
    market.processor.answers = ['throttle', 'refuse']
    await market.drainUntilIdle()
    await market.after(MINUTE)
    assert.equal([(await attempt(context)).state, market.processor.calls.length], ['refused', 2])
  })

  it('counts the ten minutes from the last call, not from failed look-ups after it', async (context) => {
    const { market } = context
    market.processor.answers = ['drop', 'refuse']
    await market.drainUntilIdle()
    market.processor.lookupsFail = true
    for (let tries = 0; tries < 3; tries += 1) await market.after(11 * MINUTE)
    market.processor.lookupsFail = false
    await market.after(11 * MINUTE)
    assert.equal([(await attempt(context)).state, market.processor.calls.length], ['refused', 2])
  })

  it('does not treat a refusal as final after a crash between claim and call, nor after a clock was set back', async (context) => {
    const { market } = context
    market.processor.answers = Array<'refuse'>(20).fill('refuse')
    assert.is((await claimAttempts(market.platform, 10)).length, 1)
    await market.after(MINUTE)
    assert.is((await attempt(context)).state, 'waiting')
    market.clock.pass(-2 * DAY)
    await market.drainUntilIdle()
    await market.after(3 * MINUTE)
    assert.is((await attempt(context)).state, 'waiting')
    for (let looks = 0; looks < 4; looks += 1) await market.after(11 * MINUTE)
    assert.is((await attempt(context)).state, 'refused')
  })

  it('waits as long as the processor requests', async (context) => {
    const { market } = context
    market.processor.answers = ['throttle']
    market.processor.retryAfterMs = 5 * MINUTE
    await market.drainUntilIdle()
    await market.after(5 * MINUTE - 1)
    assert.is(market.processor.calls.length, 1)
    await market.after(1)
    assert.is(market.processor.calls.length, 2)
    assert.is((await attempt(context)).state, 'created')
  })

  it('looks up first after a crash between claim and call', async (context) => {
    const { market, cycleId } = context
    assert.is((await claimAttempts(market.platform, 10)).length, 1)
    // Three time limits of a call, and five seconds more.
    await market.after(35_000 - 1)
    assert.is(market.processor.calls.length, 0)
    await market.after(1)
    assert.equal(market.processor.lookups, [cycleId])
    assert.is(market.processor.calls.length, 1)
    assert.equal([(await attempt(context)).state, (await attempt(context)).tries], ['created', 2])
  })

  it('looks up even the first call after ten minutes in the queue, and waits while the look-up fails', async (context) => {
    const { market, cycleId } = context
    const { processor } = market
    processor.lookupsFail = true
    await market.after(10 * MINUTE + 1)
    assert.equal([(await attempt(context)).state, processor.calls.length], ['waiting', 0])
    processor.lookupsFail = false
    await market.after(MINUTE)
    assert.equal(processor.lookups, [cycleId, cycleId])
    assert.equal([(await attempt(context)).state, processor.calls.length], ['created', 1])
  })

  it('makes a first call within ten minutes without a look-up', async (context) => {
    const { market } = context
    market.processor.lookupsFail = true
    await market.after(10 * MINUTE)
    assert.equal([(await attempt(context)).state, market.processor.calls.length], ['created', 1])
  })

  const LATE_ANSWERS: CallOutcome[] = [
    { kind: 'refused', status: 400, detail: 'too late' },
    { kind: 'created', id: 'inv_too_late', hostedUrl: null },
    { kind: 'unknown', detail: 'too late' },
  ]
  for (const late of LATE_ANSWERS) {
    it(`keeps nothing of what a worker hears after its lease ran out: ${late.kind}`, async (context) => {
      const { market, cycleId } = context
      const { processor } = market
      const rival = await openRival(market.bed)
      const slow: Processor = {
        async createInvoice(call) {
          await processor.createInvoice(call)
          market.clock.pass(MINUTE)
          await makeDueCalls(rival.platform, processor)
          return late
        },
        payoutUnit: 1,
        createPayout: (call) => processor.createPayout(call),
        findInvoices: (keys) => processor.findInvoices(keys),
        findPayouts: (keys) => processor.findPayouts(keys),
      }
      await makeDueCalls(market.platform, slow)
      await rival.close()
      assert.equal(
        [(await attempt(context)).state, (await attempt(context)).processor_id],
        ['created', 'inv_1'],
      )
      assert.is((await cycleOf(market.platform, cycleId)).processor_invoice_id, 'inv_1')
      assert.equal(await openFlagsOf(market.platform), [])
    })
  }

  it('flags another amount under our reference, and moves nothing until it agrees', async (context) => {
    const { market, cycleId } = context
    market.processor.answers = ['lose']
    await market.drainUntilIdle()
    const held = market.processor.invoices[0]
    if (held) held.amount = 1
    await market.after(MINUTE)
    assert.equal(await openFlagsOf(market.platform), [`processor_disagrees ${cycleId}`])
    assert.is((await attempt(context)).state, 'waiting')
    if (held) held.amount = 110_000
    await market.after(MINUTE)
    assert.is((await attempt(context)).state, 'created')
    assert.is(market.processor.calls.length, 1)
  })

  it('flags an id that another invoice has, and keeps the other calls going', async (context) => {
    const { market, creator, cycleId } = context
    const other = await market.addShop()
    await market.order(other, await market.addLink(other, creator), SALE)
    market.processor.nextId = () => 'inv_same'
    await market.drainUntilIdle()
    const [cycle] = await cyclesOf(market.platform, other.merchantId)
    await closeDueCycles(market.platform, { asOf: cycle?.period_end ?? 0 })
    await market.drainUntilIdle()
    assert.is((await cycleOf(market.platform, cycleId)).processor_invoice_id, 'inv_same')
    assert.equal(await openFlagsOf(market.platform), [`processor_disagrees ${cycle?.id}`])
    const [row] = await attemptsOf(market.platform, cycle?.id ?? '')
    assert.is(row?.state, 'waiting')
  })

  it('sends no invoice to a processor that needs the billing account before the merchant has one', async (context) => {
    const { market, shop, cycleId } = context
    market.processor.needsBillingAccount = true
    await market.drainUntilIdle()
    await market.after(DAY)
    assert.equal(market.processor.calls, [])
    const waiting = await attempt(context)
    assert.equal(
      [waiting.state, waiting.tries, waiting.detail],
      ['waiting', 0, 'the merchant has given no billing account'],
    )
    assert.equal(await openFlagsOf(market.platform), [`billing_account_missing ${cycleId}`])
    const [flag] = await openFlags(market.platform.database.reader, 'billing_account_missing', cycleId)
    assert.equal(JSON.parse(flag?.evidence ?? ''), { merchant_id: shop.merchantId, amount: '1100.00' })

    const billingAccount = { raast_id: '0300 1234567' }
    await updateProfile(market.platform, shop.merchantId, { billingAccount })
    await market.drainUntilIdle()
    assert.equal((await attempt(context)).state, 'created')
    const { rest } = market.processor.invoices[0] as { rest: { billingAccount: unknown } }
    assert.equal(rest.billingAccount, { raastId: '03001234567' })
    assert.equal(await openFlagsOf(market.platform), [])
  })

  it('does not put an invoice off when its account is given while the call is prepared', async (context) => {
    const { market, shop } = context
    const { platform, processor } = market
    const { database } = platform
    processor.needsBillingAccount = true
    const transaction = database.transaction.bind(database)
    let begun = 0
    // The first claims the attempt; at the second the account is known to be missing.
    database.transaction = async (work) => {
      begun += 1
      if (begun === 2)
        await updateProfile(platform, shop.merchantId, { billingAccount: { raast_id: '03001234567' } })
      return transaction(work)
    }
    await makeDueCalls(platform, processor)
    assert.equal(processor.calls, [])
    await market.drainUntilIdle()
    assert.is((await attempt(context)).state, 'created')
    assert.equal(await openFlagsOf(platform), [])
  })

  it('flags a missing billing account once: not again when a person has resolved the flag', async (context) => {
    const { market, cycleId } = context
    market.processor.needsBillingAccount = true
    await market.drainUntilIdle()
    const [flag] = await openFlags(market.platform.database.reader, 'billing_account_missing', cycleId)
    await resolveFlag(market.platform, { flagId: flag?.id ?? '', actor: 'operator', note: 'called them' })
    await market.after(DAY)
    assert.equal(await openFlagsOf(market.platform), [])
    assert.is((await attempt(context)).state, 'waiting')
  })

  it('sends every try of an invoice to one billing account, and a new attempt to the present one', async (context) => {
    const { market, shop, cycleId } = context
    const { processor } = market
    const [wrong, right] = [{ raastId: '03001234567' }, { iban: 'PK36SCBL0000001123456702' }]
    processor.needsBillingAccount = true
    await market.drainUntilIdle()
    await giveBillingAccount(market.platform, shop.merchantId, wrong)
    const accounts: unknown[] = []
    const { createInvoice } = processor
    processor.createInvoice = (call) => {
      accounts.push(call.billingAccount)
      return createInvoice.call(processor, call)
    }
    processor.answers = ['drop', 'throttle', 'refuse']
    await market.after(10 * MINUTE)
    await giveBillingAccount(market.platform, shop.merchantId, right)
    await market.after(MINUTE)
    await market.after(20 * MINUTE)
    assert.equal(accounts, [wrong, wrong, wrong])
    assert.is((await attempt(context)).state, 'refused')
    await retryInvoice(market.platform, processor, { cycleId, actor: 'operator', reason: 'a wrong number' })
    await market.drainUntilIdle()
    assert.equal(accounts, [wrong, wrong, wrong, right])
  })

  it("holds a suspended creator's payout until the reinstatement", async (context) => {
    const { market, creator } = context
    const payoutId = await makePayout(context)
    await setSuspended(market.platform, creator.userId, true)
    await market.drainUntilIdle()
    await market.after(DAY)
    assert.is(market.processor.payouts.length, 0)
    assert.is((await attemptsOf(market.platform, payoutId))[0]?.tries, 0)
    await setSuspended(market.platform, creator.userId, false)
    await market.after(MINUTE)
    assert.is(market.processor.payouts.length, 1)
    assert.is((await payoutOf(market.platform, payoutId)).state, 'submitted')
  })

  it('holds it too after an earlier refusal, and does not stop what was sent', async (context) => {
    const { market, creator } = context
    const payoutId = await makePayout(context)
    market.processor.answers = ['throttle']
    await market.drainUntilIdle()
    await setSuspended(market.platform, creator.userId, true)
    await market.after(MINUTE)
    await market.after(MINUTE)
    assert.is(market.processor.payouts.length, 0)
    await setSuspended(market.platform, creator.userId, false)
    market.processor.answers = ['lose']
    await market.after(MINUTE)
    await setSuspended(market.platform, creator.userId, true)
    await market.after(MINUTE)
    assert.is((await payoutOf(market.platform, payoutId)).state, 'submitted')
    await market.settlePayout(payoutId, 'confirmed')
    await market.drainUntilIdle()
    assert.is((await payoutOf(market.platform, payoutId)).state, 'paid')
  })

  it.run()
}
