import * as assert from 'uvu/assert'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { removeStore } from '../stores/remove-store.service.ts'
import { connectStore } from '../stores/stores.service.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Marketplace } from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { addUser, outcomeOf } from '../test/testkit/people.ts'
import { assertMapped } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { explainSale, findOrder } from './sale-explanation.service.ts'

for (const { it } of marketSuites('the story of a sale', { shared: true, dialects: proofDialects() })) {
  let market: Marketplace
  it.before((context) => {
    market = context.market
  })

  it('covers the whole story: paid after a failure, with the terms of the approval', async () => {
    const { platform, clock } = market
    const shop = await market.addShop('Chenab Lawn')
    const creator = await market.addCreator('Sana')
    const link = await market.addLink(shop, creator, { title: 'Lawn suit', product_ids: ['8123456789012'] })
    clock.pass(60_000)
    await market.order(shop, link, 1_600_000, { id: '42', name: '#77' })
    await market.drainUntilIdle()
    const [found] = await findOrder(platform, '42', null)
    assert.ok(found)
    const open = await explainSale(platform, 'all', found.id)
    assert.equal([open.cycle?.state, open.cycle?.creatorShare, open.payouts], ['open', 200_000, []])
    assert.equal([open.click?.link.locked_at, open.sale.offer?.title], [link.created_at, 'Lawn suit'])
    assert.equal(
      [open.creator?.id, open.creator?.display_name, open.creator?.email],
      [creator.userId, 'Sana', `${creator.userId}@example.com`],
    )

    clock.set(new Date(open.cycle?.period_end ?? 0).toISOString())
    await closeDueCycles(platform)
    market.processor.answers = ['refuse']
    await market.drainUntilIdle()
    const refused = await explainSale(platform, 'all', found.id)
    assert.equal([refused.cycle?.state, refused.cycle?.processor_invoice_id], ['closed', null])
    assert.match(refused.cycle?.invoiceProblem ?? '', /no such account/)

    await market.earn(shop, link, 3_200_000)
    const other = (await rowsOf(platform, 'sales')).at(-1)?.id ?? ''
    for (const word of ['failed', 'confirmed'] as const) {
      clock.pass(60_000)
      await market.payOut(word)
    }
    const story = await explainSale(platform, 'all', other)
    assert.is(story.cycle?.state, 'charged')
    assertMapped(story.payouts, (payout) => [payout.state, payout.amount, payout.failure_reason], [
      ['failed', 400_000, 'returned by the bank'],
      ['paid', 400_000, null],
    ])
  })

  it('finds an order by id before name, and keeps the domain of a removed store', async () => {
    const { platform, clock } = market
    const [one, two] = [await market.addShop(), await market.addShop()]
    const order = (name: string, id: string) => orderBody({ price: 100, createdAt: clock.now(), name, id })
    await market.deliver(one, order('#5001', '900001'))
    await market.deliver(one, order('900001', '900002'))
    await market.deliver(two, order('#5001', '900001'))
    await market.drainUntilIdle()
    const meant = async (text: string, store: string | null = null) =>
      (await findOrder(platform, text, store)).map((sale) => [sale.store_id, sale.order_id])
    assert.equal(await meant('900001', one.storeId), [[one.storeId, '900001']])
    assert.equal((await meant('5001')).length, 2)
    assert.equal(await meant(' #5001 ', `S${two.merchantId}.myshopify.com`), [[two.storeId, '900001']])
    await removeStore(platform, two.merchantId, two.storeId)
    const [sale] = await findOrder(platform, '#5001', `s${two.merchantId}.myshopify.com`)
    assert.is(sale?.shopDomain, `s${two.merchantId}.myshopify.com`)
    assert.equal(await meant(sale?.id ?? ''), [[two.storeId, '900001']])
    // Another merchant's claim on the domain has orders of its own, by the same names.
    const domain = `s${two.merchantId}.myshopify.com`
    const { userId: squatter } = await addUser(platform, 'merchant')
    const claim = { shop_domain: domain, webhook_secret: 'secret-of-squatter' }
    const { id: storeId } = await connectStore(platform, squatter, claim)
    await market.deliver({ ...one, storeId, merchantId: squatter }, order('#5001', '900001'))
    await market.drainUntilIdle()
    assert.is((await meant('#5001', domain)).length, 2)
    assert.equal(await meant('#5001', storeId), [[storeId, '900001']])
    for (const [text, store] of [
      ['nothing', null],
      ['#5001', 'unknown.pk'],
      [sale?.id ?? '', one.storeId],
    ] as const) {
      assert.is(await outcomeOf(findOrder(platform, text, store)), 'not_found')
    }
    assert.is(await outcomeOf(explainSale(platform, 'all', platform.ids.next())), 'not_found')
  })

  it.run()
}
