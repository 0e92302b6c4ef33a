import * as assert from 'uvu/assert'
import { appRouter } from '../http/router.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Marketplace, Shop } from '../test/testkit/marketplace.ts'
import { requestOf } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { billingRouter } from './billing.procedures.ts'
import { closeDueCycles } from './close-cycle.service.ts'
import { grantCredit } from './credits.service.ts'

for (const { it } of marketSuites<{ shop: Shop; other: Shop }>('the list of billing cycles')) {
  it.before.each(async (context) => {
    const { market } = context
    const [shop, other] = [await market.addShop(), await market.addShop()]
    const creator = await market.addCreator()
    const link = await market.addLink(shop, creator)
    await market.earn(shop, link, 1_000_000)
    await market.order(shop, link, 500_000)
    await market.order(other, await market.addLink(other, creator), 300_000)
    await market.drainUntilIdle()
    Object.assign(context, { shop, other })
  })

  const as = (market: Marketplace, { actor }: Shop) =>
    billingRouter.createCaller(requestOf(market.platform, actor))

  it('shows own cycles newest first, with invoice and payment if charged', async ({ market, shop }) => {
    const { items, next_cursor } = await as(market, shop).listCycles({})
    assert.equal(pluck(items, 'state'), ['open', 'charged'])
    assert.is(next_cursor, null)
    const [open, charged] = items
    assert.is(open?.commission_total, '625.00')
    assert.is(open?.fee_total, '62.50')
    assert.is(open?.amount_due, '687.50')
    assert.is(open?.processor_invoice_id, null)
    assert.is(charged?.amount_due, '1375.00')
    assert.is(charged?.processor_payment_reference, `pay_${charged?.id}`)
    assert.type(charged?.processor_invoice_id, 'string')
    assert.is(charged?.currency, 'PKR')
  })

  it('filters by state and goes on page by page', async ({ market, shop }) => {
    const caller = as(market, shop)
    const { platform } = market
    await closeDueCycles(platform, {
      merchantId: shop.merchantId,
      asOf: platform.clock.now() + 100 * 86_400_000,
    })
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
    await closeDueCycles(platform, {
      merchantId: shop.merchantId,
      asOf: Date.parse(before.cycle?.period_end ?? ''),
    })
    const { cycle, account } = await shown()
    assert.is(cycle?.state, 'closed')
    assert.equal(
      [cycle?.credit_total, cycle?.amount_due],
      [before.cycle?.credit_total, before.cycle?.amount_due],
    )
    assert.equal(account, { ...none, unpaid: '1.00', credit_available: '113.50' })
  })

  it("shows no one else's", async ({ market, shop, other }) => {
    const own = (await as(market, shop).listCycles({})).items.map(({ id }) => id)
    const others = (await as(market, other).listCycles({})).items.map(({ id }) => id)
    assert.is(others.length, 1)
    assert.not.ok(own.includes(others[0] ?? ''))
  })

  it.run()
}
