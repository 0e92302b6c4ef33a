import * as assert from 'uvu/assert'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { drainUntilIdle } from '../jobs/worker.ts'
import { processorEventsSchema } from '../processor/events.settings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { cyclesOf, eventsOf, type Marketplace, openFlagsOf } from '../test/testkit/marketplace.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { columnsOf, rowOf } from '../test/testkit/rows.ts'
import { retryEvent } from './events.service.ts'
import { retryUnmapped } from './set-aside.service.ts'

const RENAMED = 'invoice.paid_in_full'
const FLAG = `processor_event_unmapped ${RENAMED}`

for (const { it } of marketSuites('processor events that no rule maps', { verify: true })) {
  /** Rules that give the processor's own name for a confirmed payment its meaning. */
  async function workWithCorrectedRules({ platform, processor }: Marketplace): Promise<void> {
    const eventRules = processorEventsSchema.parse({
      rules: [{ types: [RENAMED], meaning: 'billing_payment_confirmed' }],
    })
    await drainUntilIdle({ platform, processor, eventRules })
  }

  async function evidenceOf({ platform }: Marketplace): Promise<Record<string, unknown>> {
    const flag = await rowOf(platform, 'flags', {
      kind: 'processor_event_unmapped',
      subject_id: RENAMED,
      status: 'open',
    })
    return JSON.parse(flag.evidence)
  }

  it('are set aside under one flag for each type', async ({ market }) => {
    for (const type of [RENAMED, RENAMED, RENAMED, 'refund.created']) await market.processorSays(type, {})
    await market.drainUntilIdle()
    assert.equal(await openFlagsOf(market.platform), [FLAG, 'processor_event_unmapped refund.created'])
    const events = await eventsOf(market.platform)
    assert.equal([...new Set(events.map(({ state, attempts }) => `${state} ${attempts}`))], ['set_aside 1'])
    assert.equal(await evidenceOf(market), {
      event_type: RENAMED,
      events: 3,
      latest_event_id: events[2]?.id,
      latest_delivery_id: events[2]?.delivery_id,
    })
  })

  it('are not flagged when they are mapped to ignore', async ({ market }) => {
    const { platform, processor } = market
    const eventRules = processorEventsSchema.parse({ rules: [{ types: [RENAMED], meaning: 'ignore' }] })
    await market.processorSays(RENAMED, {})
    await drainUntilIdle({ platform, processor, eventRules })
    assert.equal(pluck(await eventsOf(platform), 'state'), ['ignored'])
    assert.equal(await openFlagsOf(platform), [])
  })

  it('charge the cycle once the rules are corrected and the type is tried again', async ({ market }) => {
    const { platform } = market
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    await market.order(shop, link, 500_000)
    await market.drainUntilIdle()
    const [open] = await cyclesOf(platform, shop.merchantId)
    await closeDueCycles(platform, { asOf: open?.period_end ?? 0 })
    await market.drainUntilIdle()
    const [cycle] = await cyclesOf(platform, shop.merchantId)
    await market.processorSays(RENAMED, {
      invoice_id: cycle?.processor_invoice_id,
      payment_reference: 'pay_1',
      amount: ((cycle?.amount_due ?? 0) / 100).toFixed(2),
      currency: 'PKR',
    })
    await market.drainUntilIdle()
    assert.is((await cyclesOf(platform, shop.merchantId))[0]?.state, 'closed')
    assert.equal(await openFlagsOf(platform), [FLAG])
    assert.is(await retryUnmapped(platform, RENAMED, 'rule added'), 1)
    assert.equal(await openFlagsOf(platform), [])
    await workWithCorrectedRules(market)
    assert.is((await cyclesOf(platform, shop.merchantId))[0]?.state, 'charged')
    const audit = await columnsOf(platform, 'audit_entries', ['actor', 'subject_id', 'reason'], {
      action: 'event.retry',
    })
    assert.equal(audit, [{ actor: 'operator', subject_id: RENAMED, reason: 'rule added' }])
  })

  it('raise the flag again when they are tried again too early', async ({ market }) => {
    for (let n = 0; n < 450; n += 1) await market.processorSays(RENAMED, { n })
    await market.drainUntilIdle()
    assert.is(await retryUnmapped(market.platform, RENAMED, null), 450)
    await market.drainUntilIdle()
    assert.equal(await openFlagsOf(market.platform), [FLAG])
    assert.is((await evidenceOf(market)).events, 450)
  })

  it('can be tried again one by one; the last one resolves the flag', async ({ market }) => {
    const { platform } = market
    await market.processorSays(RENAMED, { n: 1 })
    await market.processorSays(RENAMED, { n: 2 })
    await market.drainUntilIdle()
    const [first, second] = await eventsOf(platform)
    await retryEvent(platform, first?.id ?? '', null)
    assert.equal(await openFlagsOf(platform), [FLAG])
    await retryEvent(platform, second?.id ?? '', null)
    assert.equal(await openFlagsOf(platform), [])
  })

  it('of a type that nothing waits for are refused', async ({ market }) => {
    const refusal = await retryUnmapped(market.platform, 'never.seen', null).catch((error) => error)
    assert.is(refusal.code, 'not_found')
    assert.is(refusal.detail, 'No event of type never.seen waits for a rule.')
  })

  it.run()
}
