import * as assert from 'uvu/assert'
import { formatMoney } from '../../shared/money.ts'
import { drainUntilIdle } from '../jobs/worker.ts'
import { processorEventsSchema } from '../processor/events.settings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import {
  closeOpenCycle,
  cycleOf,
  eventsOf,
  type Marketplace,
  openFlagsOf,
} from '../test/testkit/marketplace.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { rowOf, rowsOf } from '../test/testkit/rows.ts'
import { retryEvent } from './events.service.ts'
import { retryUnmapped } from './set-aside.service.ts'

const RENAMED = 'invoice.paid_in_full'
const FLAG = `processor_event_unmapped ${RENAMED}`

for (const { it } of marketSuites('processor events that no rule maps', { verify: true })) {
  /** Works with rules that give the processor's own name a meaning. */
  async function workAs(meaning: string, { platform, processor }: Marketplace): Promise<void> {
    const eventRules = processorEventsSchema.parse({ rules: [{ types: [RENAMED], meaning }] })
    await drainUntilIdle({ platform, processor, eventRules })
  }

  async function evidenceOf({ platform }: Marketplace): Promise<Record<string, unknown>> {
    const open = { kind: 'processor_event_unmapped', subject_id: RENAMED, status: 'open' } as const
    return JSON.parse((await rowOf(platform, 'flags', open)).evidence)
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
    await market.processorSays(RENAMED, {})
    await workAs('ignore', market)
    assert.equal(pluck(await eventsOf(market.platform), 'state'), ['ignored'])
    assert.equal(await openFlagsOf(market.platform), [])
  })

  it('charge the cycle once the rules are corrected and the type is tried again', async ({ market }) => {
    const { platform } = market
    const { shop, link } = await market.addTrade()
    await market.sell(shop, link, 500_000)
    const id = await closeOpenCycle(platform, shop)
    await market.drainUntilIdle()
    const { processor_invoice_id: invoice_id, amount_due } = await cycleOf(platform, id)
    const payment = { payment_reference: 'pay_1', amount: formatMoney(amount_due), currency: 'PKR' }
    await market.processorSays(RENAMED, { invoice_id, ...payment })
    await market.drainUntilIdle()
    assert.is((await cycleOf(platform, id)).state, 'closed')
    assert.equal(await openFlagsOf(platform), [FLAG])
    assert.is(await retryUnmapped(platform, RENAMED, 'rule added'), 1)
    assert.equal(await openFlagsOf(platform), [])
    await workAs('billing_payment_confirmed', market)
    assert.is((await cycleOf(platform, id)).state, 'charged')
    const audit = await rowsOf(platform, 'audit_entries', { action: 'event.retry' })
    assert.equal(pluckAll(audit, 'actor', 'subject_id', 'reason'), [['operator', RENAMED, 'rule added']])
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
    for (const n of [1, 2]) await market.processorSays(RENAMED, { n })
    await market.drainUntilIdle()
    for (const [index, { id }] of (await eventsOf(platform)).entries()) {
      await retryEvent(platform, id, null)
      assert.equal(await openFlagsOf(platform), index === 0 ? [FLAG] : [])
    }
  })

  it('have a flag each when their bodies cannot be read', async ({ market }) => {
    const { platform } = market
    for (const n of [1, 2]) await market.processorSays('payout.confirmed', { n })
    await market.drainUntilIdle()
    const [first = '', second] = (await eventsOf(platform)).map(({ id }) => id)
    assert.equal(await openFlagsOf(platform), [`event_set_aside ${first}`, `event_set_aside ${second}`])
    await retryEvent(platform, first, null)
    assert.equal(await openFlagsOf(platform), [`event_set_aside ${second}`])
  })

  it('of a type that nothing waits for are refused', async ({ market }) => {
    const refusal = await retryUnmapped(market.platform, 'never.seen', null).catch((error) => error)
    assert.is(refusal.code, 'not_found')
    assert.is(refusal.detail, 'No event of type never.seen waits for a rule.')
  })

  it.run()
}
