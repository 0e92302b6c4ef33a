import * as assert from 'uvu/assert'
import type { Paisa } from '../../shared/money.ts'
import { creatorBalance } from '../ledger/ledger.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import {
  cycleOf,
  cyclesOf,
  eventsOf,
  type Marketplace,
  openFlagsOf,
  type Shop,
} from '../test/testkit/marketplace.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { cycleShares } from './billing.service.ts'
import { closeDueCycles } from './close-cycle.service.ts'

interface Context {
  market: Marketplace
  shop: Shop
  creators: [Actor, Actor]
  cycleId: string
}

const MONTH_END = Date.parse('2026-11-30T19:00:00.000Z')
/** 12.5 % of Rs 1000 and of Rs 3000. */
const COMMISSIONS: [Paisa, Paisa] = [12_500, 37_500]

for (const { it } of marketSuites<Context>('payment confirmations', { verify: true })) {
  /** A closed cycle of two creators' sales, whose invoice the processor has made. */
  it.before.each(async (context) => {
    const { market } = context
    const shop = await market.addShop()
    const creators: [Actor, Actor] = [await market.addCreator(), await market.addCreator()]
    for (const [index, creator] of creators.entries()) {
      await market.order(shop, await market.addLink(shop, creator), (COMMISSIONS[index] ?? 0) * 8)
    }
    await market.drainUntilIdle()
    const [cycle] = await cyclesOf(market.platform, shop.merchantId)
    Object.assign(context, { shop, creators, cycleId: cycle?.id })
  })

  const close = async ({ market }: Context) => {
    market.clock.set('2026-11-30T19:05:00.000Z')
    assert.is((await closeDueCycles(market.platform)).length, 1)
  }
  const closeAndInvoice = async (context: Context) => {
    await close(context)
    await context.market.drainUntilIdle()
  }
  const stateOf = async ({ market, cycleId }: Context) => (await cycleOf(market.platform, cycleId)).state
  const lastEvent = async ({ market }: Context) => (await eventsOf(market.platform)).at(-1)
  const balances = ({ market, creators }: Context) =>
    Promise.all(
      creators.map(async ({ userId }) => {
        const { pending, released } = await creatorBalance(market.platform.database.reader, userId)
        return [pending, released]
      }),
    )

  it('charges the cycle, and releases what each creator earned in it', async (context) => {
    const { market, cycleId } = context
    await closeAndInvoice(context)
    assert.equal(await balances(context), [
      [COMMISSIONS[0], 0],
      [COMMISSIONS[1], 0],
    ])
    await market.confirmPayment(cycleId)
    await market.drainUntilIdle()
    const cycle = await cycleOf(market.platform, cycleId)
    assert.equal(
      [cycle.state, cycle.processor_payment_reference, cycle.charged_at, cycle.period_end],
      ['charged', `pay_${cycleId}`, market.clock.now(), MONTH_END],
    )
    assert.equal(await balances(context), [
      [0, COMMISSIONS[0]],
      [0, COMMISSIONS[1]],
    ])
    const shares = await cycleShares(market.platform.database.reader, cycleId)
    assert.ok(shares.every((share) => share.released_at === market.clock.now()))
    assert.equal(JSON.parse((await lastEvent(context))?.result ?? ''), {
      billing_cycle_id: cycleId,
      state: 'charged',
    })
    assert.equal(await openFlagsOf(market.platform), [])
  })

  it('changes nothing when the same confirmation comes again, under this or another delivery id', async (context) => {
    const { market, cycleId } = context
    await closeAndInvoice(context)
    for (const _ of [1, 2, 3]) await market.confirmPayment(cycleId)
    await market.drainUntilIdle()
    await market.confirmPayment(cycleId)
    await market.drainUntilIdle()
    const events = (await eventsOf(market.platform)).filter((event) => event.source === 'processor')
    assert.equal(pluck(events, 'state'), ['done', 'ignored', 'ignored', 'ignored'])
    assert.equal(await balances(context), [
      [0, COMMISSIONS[0]],
      [0, COMMISSIONS[1]],
    ])
    assert.equal(await openFlagsOf(market.platform), [])
  })

  it('flags a confirmation of another amount or currency and a second payment, and changes nothing', async (context) => {
    const { market, cycleId } = context
    await closeAndInvoice(context)
    const mismatch = `payment_amount_mismatch ${cycleId}`
    const second = `second_payment_reference ${cycleId}`
    for (const [changes, event, state, flags] of [
      [{ amount: '549.99' }, 'set_aside', 'closed', [mismatch]],
      [{ currency: 'USD' }, 'set_aside', 'closed', [mismatch]],
      [{}, 'done', 'charged', [mismatch]],
      [{ payment_reference: 'pay_again' }, 'set_aside', 'charged', [mismatch, second]],
    ] as const) {
      await market.confirmPayment(cycleId, changes)
      await market.drainUntilIdle()
      assert.equal([(await lastEvent(context))?.state, await stateOf(context)], [event, state])
      assert.equal(await openFlagsOf(market.platform), flags)
    }
    assert.is((await cycleOf(market.platform, cycleId)).processor_payment_reference, `pay_${cycleId}`)
  })

  it.run()
}
