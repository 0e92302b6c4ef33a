import * as assert from 'uvu/assert'
import { retryInvoice } from '../billing/invoices.service.ts'
import { OPERATOR } from '../flags/audit.service.ts'
import { openFlags, resolveFlag } from '../flags/flags.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import { retryPayout } from '../payouts/payouts.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { claimAttempts } from '../processor/attempts.service.ts'
import type { CallOutcome, Processor } from '../processor/processor.ts'
import { updateProfile } from '../profile/profile.service.ts'
import { type MarketContext, marketSuites } from '../test/testkit/market-suites.ts'
import {
  attemptsOf,
  closeOpenCycle,
  cycleOf,
  giveBillingAccount,
  type Marketplace,
  openFlagsOf,
  payoutOf,
  type Shop,
} from '../test/testkit/marketplace.ts'
import { setSuspended } from '../test/testkit/people.ts'
import { openRival } from '../test/testkit/rival.ts'
import type { ScriptedProcessor } from '../test/testkit/scripted-processor.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import { makeDueCalls } from './processor-calls.ts'

interface Context {
  shop: Shop
  creator: Actor
  cycleId: string
}

const SALE = 800_000
const EARNED = 100_000
const BY = { actor: OPERATOR, reason: null }

interface Step {
  /** What changes of the processor. */
  set?: Partial<Pick<ScriptedProcessor, 'answers' | 'retryAfterMs' | 'lookupsFail' | 'lookupsLag'>>
  first?(market: Marketplace): unknown
  /** Ms that pass `times` times. */
  after: number
  times?: number
  /** The attempt, the calls and the look-ups so far. */
  is: [state: 'waiting' | 'created' | 'refused', calls: number, lookups: number]
  /** The kind of the one open flag, about the cycle. */
  flag?: string
}

const refusals = Array<'refuse'>(20).fill('refuse')
/** A worker that dies between claim and call. */
const crash = async ({ platform }: Marketplace) => assert.is((await claimAttempts(platform, 10)).length, 1)
const amountThere =
  (amount: number) =>
  ({ processor }: Marketplace) =>
    Object.assign(processor.invoices[0] ?? {}, { amount })

const STORIES: Record<string, Step[]> = {
  'looks up an unknown outcome, and calls again when the processor holds nothing': [
    { set: { answers: ['drop', 'drop'] }, after: 0, is: ['waiting', 1, 0] },
    { after: MINUTE, times: 3, is: ['created', 3, 2] },
  ],
  'does not call again while the look-up fails, raises a flag in the end, and continues': [
    { set: { answers: ['lose'], lookupsFail: true }, after: 0, is: ['waiting', 1, 0] },
    { after: 11 * MINUTE, times: 10, is: ['waiting', 1, 10] },
    { after: 11 * MINUTE, is: ['waiting', 1, 11], flag: 'processor_disagrees' },
    { set: { lookupsFail: false }, after: 11 * MINUTE, is: ['created', 1, 12], flag: 'processor_disagrees' },
  ],
  'does not treat a refusal as final that may be about a call without an answer, and finds its effect': [
    { set: { answers: ['lose', 'refuse'], lookupsLag: true }, after: 0, is: ['waiting', 1, 0] },
    { after: MINUTE, is: ['waiting', 2, 1] },
    { set: { lookupsLag: false }, after: 10 * MINUTE, is: ['created', 2, 2] },
  ],
  'treats it as final after ten minutes of look-ups without a record': [
    { set: { answers: ['drop', ...refusals] }, after: 0, is: ['waiting', 1, 0] },
    { after: 3 * MINUTE, is: ['waiting', 2, 1] },
    { after: 3 * MINUTE, is: ['waiting', 3, 2] },
    { after: 3 * MINUTE, is: ['waiting', 4, 3] },
    { after: 10 * MINUTE, is: ['refused', 5, 4], flag: 'processor_refusal' },
  ],
  'treats a refusal as final immediately after tries that are known to have done nothing': [
    { set: { answers: ['throttle', 'refuse'] }, after: 0, is: ['waiting', 1, 0] },
    { after: MINUTE, is: ['refused', 2, 1], flag: 'processor_refusal' },
  ],
  'counts the ten minutes from the last call, not from failed look-ups after it': [
    { set: { answers: ['drop', 'refuse'] }, after: 0, is: ['waiting', 1, 0] },
    { set: { lookupsFail: true }, after: 11 * MINUTE, times: 3, is: ['waiting', 1, 3] },
    { set: { lookupsFail: false }, after: 11 * MINUTE, is: ['refused', 2, 4], flag: 'processor_refusal' },
  ],
  'does not treat a refusal as final after a crash between claim and call, nor after a clock was set back': [
    { set: { answers: refusals }, first: crash, after: MINUTE, is: ['waiting', 1, 1] },
    { after: -2 * DAY, is: ['waiting', 2, 2] },
    { after: 3 * MINUTE, is: ['waiting', 3, 3] },
    { after: 11 * MINUTE, times: 4, is: ['refused', 4, 4], flag: 'processor_refusal' },
  ],
  'waits as long as the processor requests': [
    { set: { answers: ['throttle'], retryAfterMs: 5 * MINUTE }, after: 0, is: ['waiting', 1, 0] },
    { after: 5 * MINUTE - 1, is: ['waiting', 1, 0] },
    { after: 1, is: ['created', 2, 1] },
  ],
  'looks up first after a crash between claim and call, once the lease is over: three time limits and 5 s': [
    { first: crash, after: 35_000 - 1, is: ['waiting', 0, 0] },
    { after: 1, is: ['created', 1, 1] },
  ],
  'looks up even the first call after ten minutes in the queue, and waits while the look-up fails': [
    { set: { lookupsFail: true }, after: 10 * MINUTE + 1, is: ['waiting', 0, 1] },
    { set: { lookupsFail: false }, after: MINUTE, is: ['created', 1, 2] },
  ],
  'makes a first call within ten minutes without a look-up': [
    { set: { lookupsFail: true }, after: 10 * MINUTE, is: ['created', 1, 0] },
  ],
  'flags another amount under our reference, and moves nothing until it agrees': [
    { set: { answers: ['lose'] }, after: 0, is: ['waiting', 1, 0] },
    { first: amountThere(1), after: MINUTE, is: ['waiting', 1, 1], flag: 'processor_disagrees' },
    { first: amountThere(110_000), after: MINUTE, is: ['created', 1, 2], flag: 'processor_disagrees' },
  ],
}

type World = MarketContext & Context

for (const { it } of marketSuites<Context>('calls to the processor', { verify: true })) {
  /** A closed cycle whose invoice has not been requested. */
  it.before.each(async (context) => {
    const { market } = context
    const shop = await market.addShop()
    const creator = await market.addCreator()
    await market.order(shop, await market.addLink(shop, creator), SALE)
    await market.drainUntilIdle()
    Object.assign(context, { shop, creator, cycleId: await closeOpenCycle(market.platform, shop) })
  })

  const attempt = async ({ market, cycleId }: World) => {
    const [row, ...others] = await attemptsOf(market.platform, cycleId)
    assert.is(others.length, 0)
    if (!row) throw new Error('no attempt')
    return row
  }
  /** Charges the cycle and makes the creator's payout, unsent; returns its id. */
  const makePayout = async ({ market, cycleId }: World) => {
    await market.drainUntilIdle()
    await market.confirmPayment(cycleId)
    await market.drainUntilIdle()
    const [made] = await runPayouts(market.platform, market.processor)
    if (made?.kind !== 'paid_out' || !made.payoutId) throw new Error('no payout')
    return made.payoutId
  }
  const callsOf = ({ processor }: Marketplace, reference: string) =>
    processor.calls.filter((call) => call.reference === reference).map((call) => call.attemptId)

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

  for (const [what, steps] of Object.entries(STORIES)) {
    it(what, async (context) => {
      const { market, cycleId } = context
      const { calls, lookups } = market.processor
      for (const [index, { set, first, after, times = 1, is, flag }] of steps.entries()) {
        Object.assign(market.processor, structuredClone(set))
        await first?.(market)
        for (let time = 0; time < times; time += 1) await market.after(after)
        assert.equal([(await attempt(context)).state, calls.length, lookups.length], is, `step ${index}`)
        const flags = flag ? [`${flag} ${cycleId}`] : []
        assert.equal(await openFlagsOf(market.platform), flags, `step ${index}`)
      }
      // Every try has the key and the amount of the first one.
      const { id } = await attempt(context)
      for (const call of calls) assert.equal([call.attemptId, call.amount], [id, 110_000])
    })
  }

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
      const createInvoice: Processor['createInvoice'] = async (call) => {
        await processor.createInvoice(call)
        market.clock.pass(MINUTE)
        await makeDueCalls(rival.platform, processor)
        return late
      }
      await makeDueCalls(market.platform, processor.instead({ createInvoice }))
      await rival.close()
      const { state, processor_id } = await attempt(context)
      assert.equal([state, processor_id], ['created', 'inv_1'])
      assert.is((await cycleOf(market.platform, cycleId)).processor_invoice_id, 'inv_1')
      assert.equal(await openFlagsOf(market.platform), [])
    })
  }

  it('flags an id that another invoice has, and keeps the other calls going', async (context) => {
    const { market, platform, creator, cycleId } = context
    const other = await market.addShop()
    await market.order(other, await market.addLink(other, creator), SALE)
    market.processor.nextId = () => 'inv_same'
    await market.drainUntilIdle()
    const otherId = await closeOpenCycle(platform, other)
    await market.drainUntilIdle()
    assert.is((await cycleOf(platform, cycleId)).processor_invoice_id, 'inv_same')
    assert.equal(await openFlagsOf(platform), [`processor_disagrees ${otherId}`])
    assert.is((await attemptsOf(platform, otherId))[0]?.state, 'waiting')
  })

  it('sends no invoice to a processor that needs the billing account before the merchant has one', async (context) => {
    const { market, shop, cycleId } = context
    market.processor.needsBillingAccount = true
    await market.drainUntilIdle()
    await market.after(DAY)
    assert.equal(market.processor.calls, [])
    const { state, tries, detail } = await attempt(context)
    assert.equal([state, tries, detail], ['waiting', 0, 'the merchant has given no billing account'])
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
    const { market, platform, shop } = context
    const { processor } = market
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

  it('flags a missing account once, sends every try to one account, and a new attempt to the present one', async (context) => {
    const { market, platform, shop, cycleId } = context
    const { processor } = market
    const [wrong, right] = [{ raastId: '03001234567' }, { iban: 'PK36SCBL0000001123456702' }]
    processor.needsBillingAccount = true
    await market.drainUntilIdle()
    const [flag] = await openFlags(platform.database.reader, 'billing_account_missing', cycleId)
    await resolveFlag(platform, { flagId: flag?.id ?? '', actor: 'operator', note: 'called them' })
    await market.after(DAY)
    assert.equal(await openFlagsOf(platform), [], 'a person has looked')
    await giveBillingAccount(platform, shop.merchantId, wrong)
    const accounts: unknown[] = []
    const { createInvoice } = processor
    processor.createInvoice = (call) => {
      accounts.push(call.billingAccount)
      return createInvoice.call(processor, call)
    }
    processor.answers = ['drop', 'throttle', 'refuse']
    await market.after(10 * MINUTE)
    await giveBillingAccount(platform, shop.merchantId, right)
    await market.after(MINUTE)
    await market.after(20 * MINUTE)
    assert.equal(accounts, [wrong, wrong, wrong])
    assert.is((await attempt(context)).state, 'refused')
    await retryInvoice(platform, processor, { cycleId, ...BY })
    await market.drainUntilIdle()
    assert.equal(accounts, [wrong, wrong, wrong, right])
  })

  it("holds a suspended creator's payout until the reinstatement, and does not stop what was sent", async (context) => {
    const { market, platform, creator } = context
    const { processor } = market
    const payoutId = await makePayout(context)
    const holdsFor = async (ms: number, answer: 'throttle' | 'lose', tries: number) => {
      await setSuspended(platform, creator.userId, true)
      await market.after(ms)
      assert.equal([processor.payouts.length, (await attemptsOf(platform, payoutId))[0]?.tries], [0, tries])
      processor.answers = [answer]
      await setSuspended(platform, creator.userId, false)
      await market.after(MINUTE)
    }
    await holdsFor(DAY, 'throttle', 0)
    // It was called before, and had no effect.
    await holdsFor(2 * MINUTE, 'lose', 1)
    await setSuspended(platform, creator.userId, true)
    await market.after(MINUTE)
    assert.is((await payoutOf(platform, payoutId)).state, 'submitted')
    await market.settlePayout(payoutId, 'confirmed')
    await market.drainUntilIdle()
    assert.is((await payoutOf(platform, payoutId)).state, 'paid')
  })

  /** A payout whose call was answered with 422, and the record that the processor keeps of it. */
  const refusedPayout = async (context: World) => {
    const { processor, drainUntilIdle } = context.market
    const id = await makePayout(context)
    processor.answers = ['refuse']
    await drainUntilIdle()
    const refused = { id: 'po_dead', status: 'rejected', attemptId: 'refused', rest: null }
    const record = { ...refused, reference: id, amount: EARNED, currency: 'PKR' }
    processor.payouts.push(record)
    return { id, record }
  }

  it('adopts, on a second attempt, a record that has not failed, beside one that has', async (context) => {
    const { market, platform } = context
    const { id, record } = await refusedPayout(context)
    market.processor.payouts.push({ ...record, id: 'po_live', status: 'processing' })
    await retryPayout(platform, market.processor, { payoutId: id, ...BY })
    await market.drainUntilIdle()
    assert.is(callsOf(market, id).length, 1)
    assert.is((await payoutOf(platform, id)).processor_payout_id, 'po_live')
  })

  it('repeats the key of a second attempt when the answer is lost, beside a stored refusal', async (context) => {
    const { market, platform } = context
    const { processor } = market
    const { id } = await refusedPayout(context)
    const { attemptId } = await retryPayout(platform, processor, { payoutId: id, ...BY })
    processor.answers = ['drop', 'lose']
    await market.drainUntilIdle()
    await market.after(MINUTE)
    const sent = processor.payouts.find((item) => item.attemptId === attemptId)
    assert.ok(sent)
    // It fails before its id arrived: the same key returns the id again, and nothing is sent twice.
    sent.status = 'failed'
    await market.after(MINUTE)
    assert.equal(callsOf(market, id).slice(1), [attemptId, attemptId, attemptId])
    assert.is(processor.payouts.length, 2)
    assert.is((await payoutOf(platform, id)).processor_payout_id, sent.id)
    await market.settlePayout(id, 'failed')
    await market.drainUntilIdle()
    assert.is((await payoutOf(platform, id)).state, 'failed')
  })

  it('adopts a failed record on a first attempt, and the signed event decides', async (context) => {
    const { market, platform } = context
    const { processor } = market
    const id = await makePayout(context)
    processor.answers = ['lose']
    await market.drainUntilIdle()
    const [held] = processor.payouts
    if (held) held.status = 'failed'
    await market.after(MINUTE)
    assert.is(callsOf(market, id).length, 1)
    assert.is((await payoutOf(platform, id)).processor_payout_id, held?.id)
    await market.settlePayout(id, 'failed')
    await market.drainUntilIdle()
    assert.is((await payoutOf(platform, id)).state, 'failed')
  })

  it.run()
}
