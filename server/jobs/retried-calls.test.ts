import * as assert from 'uvu/assert'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { retryInvoice } from '../billing/invoices.service.ts'
import { OPERATOR } from '../flags/audit.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import { retryPayout } from '../payouts/payouts.service.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import {
  attemptsOf,
  cycleOf,
  cyclesOf,
  type Marketplace,
  openFlagsOf,
  payoutOf,
} from '../test/testkit/marketplace.ts'
import type { Held } from '../test/testkit/scripted-processor.ts'
import { MINUTE } from '../test/testkit/testbed.ts'

const SALE = 800_000
const BY = { actor: OPERATOR, reason: null }

for (const { it } of marketSuites('second attempts', { verify: true })) {
  /** The record that a processor stores for a call that it answered with 422. */
  const rejected = (id: string, reference: string, amount: number): Held => ({
    ...{ id, reference, amount, currency: 'PKR', status: 'rejected' },
    ...{ attemptId: `refused ${id}`, rest: null },
  })
  const closedCycle = async (market: Marketplace) => {
    const shop = await market.addShop()
    await market.order(shop, await market.addLink(shop, await market.addCreator()), SALE)
    await market.drainUntilIdle()
    const [cycle] = await cyclesOf(market.platform, shop.merchantId)
    if (!cycle) throw new Error('no cycle')
    await closeDueCycles(market.platform, { asOf: cycle.period_end })
    return cycle.id
  }
  /** A payout that waits for its call. */
  const duePayout = async (market: Marketplace) => {
    const shop = await market.addShop()
    await market.earn(shop, await market.addLink(shop, await market.addCreator()), SALE)
    const [made] = await runPayouts(market.platform, market.processor)
    if (made?.kind !== 'paid_out' || !made.payoutId) throw new Error('no payout')
    return { id: made.payoutId, amount: made.amount }
  }
  const refusedPayout = async (market: Marketplace) => {
    const payout = await duePayout(market)
    market.processor.answers = ['refuse']
    await market.drainUntilIdle()
    market.processor.payouts.push(rejected('po_dead', payout.id, payout.amount))
    return payout
  }
  const callsOf = ({ processor }: Marketplace, reference: string) =>
    processor.calls.filter((call) => call.reference === reference).map((call) => call.attemptId)
  const retry = ({ platform, processor }: Marketplace, payoutId: string) =>
    retryPayout(platform, processor, { payoutId, ...BY })

  it('send a payout whose refusal the processor stored, and it is paid', async ({ market }) => {
    const { platform, processor } = market
    const { id } = await refusedPayout(market)
    const { adopts, attemptId } = await retry(market, id)
    assert.is(adopts, null)
    await market.drainUntilIdle()
    const [first, second] = await attemptsOf(platform, id)
    assert.equal([first?.state, second?.state, second?.id], ['refused', 'created', attemptId])
    assert.equal(callsOf(market, id), [first?.id, attemptId])
    const sent = processor.payouts.find((item) => item.attemptId === attemptId)
    assert.ok(sent && sent.id !== 'po_dead')
    assert.is((await payoutOf(platform, id)).processor_payout_id, sent.id)
    await market.settlePayout(id, 'confirmed')
    await market.drainUntilIdle()
    assert.is((await payoutOf(platform, id)).state, 'paid')
    assert.equal(await openFlagsOf(platform), [])
  })

  it('adopt a record that has not failed, beside one that has', async ({ market }) => {
    const { platform, processor } = market
    const { id, amount } = await refusedPayout(market)
    processor.payouts.push({ ...rejected('po_live', id, amount), status: 'processing' })
    assert.is((await retry(market, id)).adopts, 'po_live')
    await market.drainUntilIdle()
    assert.is(callsOf(market, id).length, 1)
    assert.is((await payoutOf(platform, id)).processor_payout_id, 'po_live')
  })

  it('repeat the same key when the answer is lost, beside a stored refusal', async ({ market }) => {
    const { platform, processor } = market
    const { id } = await refusedPayout(market)
    const { attemptId } = await retry(market, id)
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

  it('can follow each other: a third one after a second stored refusal', async ({ market }) => {
    const { platform, processor } = market
    const { id, amount } = await refusedPayout(market)
    await retry(market, id)
    processor.answers = ['refuse']
    await market.drainUntilIdle()
    processor.payouts.push({ ...rejected('po_dead_too', id, amount), status: 'Cancelled' })
    await retry(market, id)
    await market.drainUntilIdle()
    const states = (await attemptsOf(platform, id)).map((attempt) => attempt.state)
    assert.equal(states, ['refused', 'refused', 'created'])
    assert.is((await payoutOf(platform, id)).state, 'submitted')
  })

  it('create an invoice whose refusal the processor stored, and it is paid', async ({ market }) => {
    const { platform, processor } = market
    const cycleId = await closedCycle(market)
    processor.answers = ['refuse']
    await market.drainUntilIdle()
    const { amount_due } = await cycleOf(platform, cycleId)
    processor.invoices.push({ ...rejected('inv_dead', cycleId, amount_due), status: 'void' })
    const made = await retryInvoice(platform, processor, { cycleId, ...BY })
    assert.is(made.adopts, null)
    await market.drainUntilIdle()
    assert.equal(callsOf(market, cycleId).slice(1), [made.attemptId])
    const sent = processor.invoices.find((item) => item.attemptId === made.attemptId)
    assert.is((await cycleOf(platform, cycleId)).processor_invoice_id, sent?.id)
    await market.confirmPayment(cycleId)
    await market.drainUntilIdle()
    assert.is((await cycleOf(platform, cycleId)).state, 'charged')
    assert.equal(await openFlagsOf(platform), [])
  })

  it('differ from first attempts: those adopt a failed record, and the signed event decides', async ({
    market,
  }) => {
    const { platform, processor } = market
    const { id } = await duePayout(market)
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
