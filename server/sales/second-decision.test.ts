import * as assert from 'uvu/assert'
import type { Actor } from '../platform/api/procedure.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { cyclesOf, eventsOf, type Marketplace, openFlagsOf, type Shop } from '../test/testkit/marketplace.ts'
import { type OrderChanges, orderBody } from '../test/testkit/orders.ts'
import { setSuspended } from '../test/testkit/people.ts'
import { assertMapped, pluck } from '../test/testkit/pluck.ts'
import { rowOf, rowsOf } from '../test/testkit/rows.ts'
import { DAY, HOUR, MINUTE } from '../test/testkit/testbed.ts'
import { reprocessOrders } from './reprocess.service.ts'
import { explainSale } from './sale-explanation.service.ts'
import { wireExplanation } from './sale-wire.ts'

for (const { it } of marketSuites('a sale that is decided again')) {
  let market: Marketplace
  let shop: Shop
  let creator: Actor
  let order: OrderChanges & { id: string }

  it.before.each(async (context) => {
    market = context.market
    const trade = await market.addTrade()
    ;({ shop, creator } = trade)
    const click = await market.click(trade.link)
    order = { id: '5001', name: '#5001', price: 400_000, click, createdAt: market.clock.now() }
  })

  const send = (changes: Partial<OrderChanges>, deliveryId = market.platform.ids.next()) =>
    market.deliver(shop, orderBody({ ...order, ...changes }), { deliveryId })
  /** Sends and applies a report; answers the sale. */
  const report = async (changes: Partial<OrderChanges>, deliveryId?: string) => {
    await send(changes, deliveryId)
    await market.drainUntilIdle()
    return rowOf(market.platform, 'sales')
  }
  const former = () => rowsOf(market.platform, 'sale_decisions', {}, 'sale_id')
  const flags = async () => (await openFlagsOf(market.platform)).filter((flag) => flag.startsWith('order_'))
  const changedParts = async () => {
    const { evidence } = await rowOf(market.platform, 'flags', { kind: 'order_changed' })
    return JSON.parse(evidence).latest_orders.map((one: { changed: string[] }) => one.changed)
  }
  const UNPAID = { financialStatus: 'pending' }

  it('keeps its id and time, reads all facts again, and joins the cycle of its second decision', async () => {
    const unpaid = await report(UNPAID)
    assert.equal([unpaid.rejection_reason, unpaid.decided_at], ['not_paid', null])
    market.clock.pass(40 * DAY)
    const sale = await report({ price: 300_000 })
    assert.equal(
      [sale.id, sale.created_at, sale.decided_at, sale.acceptance_status, sale.net_amount, sale.commission],
      [unpaid.id, unpaid.created_at, market.clock.now(), 'accepted', 300_000, 37_500],
    )
    const [cycle, ...others] = await cyclesOf(market.platform, shop.merchantId)
    assert.equal(others, [])
    assert.ok(cycle && cycle.period_start > unpaid.created_at && sale.billing_cycle_id === cycle.id)
    assert.equal(await former(), [
      { sale_id: sale.id, event_id: unpaid.event_id, decided_at: unpaid.created_at, receipt: unpaid.receipt },
    ])
    const [first, second] = await eventsOf(market.platform)
    assert.equal([first?.state, second?.state], ['done', 'done'])
    assert.equal(JSON.parse(second?.result ?? ''), {
      sale_id: sale.id,
      acceptance_status: 'accepted',
      decided_again: true,
    })
    assert.equal(await flags(), [], 'amounts may change before an order is paid')
    await market.verify()
  })

  it('is judged as things stand then, and rejected for good when they are bad', async () => {
    await report(UNPAID)
    await setSuspended(market.platform, creator.userId, true)
    const sale = await report({})
    assert.is(sale.rejection_reason, 'creator_suspended')
    await setSuspended(market.platform, creator.userId, false)
    assert.equal(await report({}), sale)
  })

  it('is decided once more only: redeliveries, other paid reports and the unpaid one change nothing', async () => {
    await send(UNPAID, 'first')
    for (const delivery of ['second', 'second', 'third']) await send({}, delivery)
    const sale = await report(UNPAID, 'fourth')
    assert.equal([sale.acceptance_status, (await former()).length], ['accepted', 1])
    assert.equal(await flags(), [])
    await send({ financialStatus: 'refunded' }, 'fifth')
    assert.equal(await report({}, 'sixth'), sale)
    const states = pluck(await eventsOf(market.platform), 'state')
    assert.equal(states, ['done', 'done', ...Array(4).fill('ignored')])
    assert.equal(await flags(), [`order_changed ${shop.storeId}`], 'the store gave the money back')
    await market.verify()
  })

  it('is the only one: no sale that was rejected for anything else is decided again', async () => {
    const click = '0190a1b2-0000-7000-8000-000000000000'
    const sale = await report({ email: `${creator.userId}@example.com`, click })
    assert.is(sale.rejection_reason, 'unknown_tracking_reference')
    assert.equal(await report({}), sale)
    assert.equal(await changedParts(), [['tracking_reference']])
    await market.verify()
  })

  it('is shown with both decisions to both parties and the operator', async () => {
    await report(UNPAID)
    market.clock.pass(HOUR)
    const { id } = await report({})
    for (const [role, scope] of [
      ['merchant', { merchantId: shop.merchantId }],
      ['creator', { creatorId: creator.userId }],
    ] as const) {
      const story = await explainSale(market.platform, scope, id)
      const wire = wireExplanation(story, role)
      assert.is(wire.acceptance_status, 'accepted')
      assert.is(Date.parse(wire.decided_at) - Date.parse(wire.created_at), HOUR)
      assert.equal(
        wire.former_decisions.map((one) => [one.decided_at, one.rejection_reason, one.receipt.net_amount]),
        [[wire.created_at, 'not_paid', '4000.00']],
      )
      assert.equal(JSON.stringify(wire).includes('buyer_name'), false)
    }
    const explained = await explainSale(market.platform, 'all', id)
    assert.is(explained.decidedAt, market.clock.now())
    assertMapped(explained.formerDecisions, ({ receipt }) => receipt.decision.rejection_reason, ['not_paid'])
    const differences: unknown[] = []
    const onDifference = (one: unknown) => differences.push(one)
    const { counts } = await reprocessOrders(market.platform, { onDifference })
    assert.equal([counts.judged, counts.repeats, counts.different, differences], [2, 0, 0, []])
  })

  it('keeps a former creator’s click from the present creator, and flags the change', async () => {
    const other = await market.addCreator('Zoya')
    const click = await market.click(await market.addLink(shop, other))
    await send(UNPAID)
    const sale = await report({ click })
    assert.equal([sale.acceptance_status, sale.creator_id], ['accepted', other.userId])
    const story = await explainSale(market.platform, { creatorId: other.userId }, sale.id)
    assert.equal(wireExplanation(story, 'creator').former_decisions, [])
    assert.equal(await changedParts(), [['tracking_reference']])
    await market.verify()
  })

  it('a known order that comes again with other facts changes nothing and raises one flag for its store', async () => {
    for (const changes of [{ click: '' }, {}]) await send(changes)
    const sale = await report({ price: 1 })
    assert.is(sale.rejection_reason, 'no_tracking_reference')
    market.clock.pass(MINUTE)
    assert.equal(await report({ createdAt: order.createdAt - DAY }), sale)
    assert.equal(await flags(), [`order_changed ${shop.storeId}`])
    assert.equal(await changedParts(), [
      ['tracking_reference'],
      ['tracking_reference', 'amounts'],
      ['tracking_reference', 'created_at'],
    ])
    await market.verify()
  })

  it.run()
}
