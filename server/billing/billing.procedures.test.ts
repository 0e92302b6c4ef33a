import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../proof/testbed/databases.ts'
import { type Marketplace, openMarketplace, type Shop } from '../proof/testbed/marketplace.ts'
import { outcomeOf, requestOf } from '../proof/testbed/people.ts'
import { billingRouter } from './billing.procedures.ts'
import { closeDueCycles } from './billing.service.ts'

for (const dialect of testDialects()) {
  const it = suite<{ market: Marketplace; shop: Shop; other: Shop }>(
    `the list of billing cycles on ${dialect}`,
  )

  it.before.each(async (context) => {
    const market = await openMarketplace(dialect)
    const [shop, other] = [await market.addShop(), await market.addShop()]
    const creator = await market.addCreator()
    const link = await market.addLink(shop, creator)
    await market.earn(shop, link, 1_000_000)
    await market.order(shop, link, 500_000)
    await market.order(other, await market.addLink(other, creator), 300_000)
    await market.workOff()
    Object.assign(context, { market, shop, other })
  })
  it.after.each(({ market }) => market.close())

  const as = (market: Marketplace, { actor }: Shop) =>
    billingRouter.createCaller(requestOf(market.platform, actor))

  it('shows own cycles newest first, with the invoice and the payment of a charged one', async ({
    market,
    shop,
  }) => {
    const { items, next_cursor } = await as(market, shop).listCycles({})
    assert.equal(
      items.map(({ state }) => state),
      ['open', 'charged'],
    )
    assert.is(next_cursor, null)
    const [open, charged] = items
    assert.is(open?.commission_total, '625.00')
    assert.is(open?.fee_total, '62.50')
    assert.is(open?.amount_due, '0.00')
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
    assert.equal(
      closed.items.map(({ state }) => state),
      ['closed'],
    )
    const first = await caller.listCycles({ limit: 1 })
    assert.ok(first.next_cursor)
    const second = await caller.listCycles({ limit: 1, cursor: first.next_cursor })
    assert.equal([...first.items, ...second.items], (await caller.listCycles({})).items)
    assert.is(second.next_cursor, null)
  })

  it("shows nobody else's, and refuses everybody else", async ({ market, shop, other }) => {
    const own = (await as(market, shop).listCycles({})).items.map(({ id }) => id)
    const others = (await as(market, other).listCycles({})).items.map(({ id }) => id)
    assert.is(others.length, 1)
    assert.not.ok(own.includes(others[0] ?? ''))
    const creator = await market.addCreator()
    const listAs = (actor: typeof creator | null) =>
      outcomeOf(billingRouter.createCaller(requestOf(market.platform, actor)).listCycles({}))
    assert.is(await listAs(null), 'unauthenticated')
    assert.is(await listAs(creator), 'forbidden')
    const caller = as(market, shop)
    assert.is(await outcomeOf(caller.listCycles({ cursor: 'no cursor' })), 'validation_failed')
    assert.is(await outcomeOf(caller.listCycles({ limit: 101 })), 'validation_failed')
    assert.is(await outcomeOf(caller.listCycles({ state: 'paid' as 'open' })), 'validation_failed')
  })

  it.run()
}
