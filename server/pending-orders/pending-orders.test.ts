import * as assert from 'uvu/assert'
import type { z } from 'zod'
import { listOffersInput } from '../../shared/schemas/offers.ts'
import type { listPendingOrdersInput } from '../../shared/schemas/pending-orders.ts'
import { openFlags } from '../flags/flags.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import { createEndpoint } from '../notifications/channels/webhooks/endpoints.service.ts'
import { getOffer, listOffers } from '../offers/offers.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { summariesRouter } from '../reports/reports.procedures.ts'
import { explainSale } from '../sales/sale-explanation.service.ts'
import { OFFER } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { eventsOf, type Marketplace, openFlagsOf, type Shop } from '../test/testkit/marketplace.ts'
import { type OrderChanges, orderBody } from '../test/testkit/orders.ts'
import { requestOf, setSuspended } from '../test/testkit/people.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { rowOf, rowsOf } from '../test/testkit/rows.ts'
import { DAY, MINUTE } from '../test/testkit/testbed.ts'
import { paidRatesByMerchant } from './paid-rates.service.ts'
import { pendingOrdersRouter } from './pending-orders.procedures.ts'
import { expirePendingOrders } from './pending-orders.service.ts'

interface Story {
  topic: string
  changes: Partial<OrderChanges>
}

const UNPAID = { financialStatus: 'pending' }

/** The order's life as a store reports it: 1 % of the price is the commission. */
const CREATE: Story = { topic: 'orders/create', changes: { ...UNPAID, price: 100_000 } }
const UPDATED: Story = { topic: 'orders/updated', changes: { ...UNPAID, price: 200_000, updatedAt: 1 } }
const CHANGED_AGAIN: Story = { topic: 'orders/updated', changes: { ...UNPAID, price: 300_000, updatedAt: 2 } }
const CANCELLED: Story = {
  topic: 'orders/cancelled',
  changes: { financialStatus: 'voided', cancelled: true, price: 200_000, updatedAt: 3 },
}
const PAID: Story = { topic: 'orders/paid', changes: { price: 250_000, updatedAt: 4 } }
const FULFILLED: Story = { topic: 'orders/updated', changes: { price: 250_000, updatedAt: 5 } }
const changed = (story: Story, changes: Story['changes'], topic = story.topic): Story => ({
  topic,
  changes: { ...story.changes, ...changes },
})
const PAID_CANCELLED = changed(PAID, { cancelled: true })
const CANCELLED_WITHOUT_LINK = changed(CANCELLED, { click: '' })
const CANCELLED_BY_TOPIC = changed(CANCELLED_WITHOUT_LINK, { ...UNPAID, cancelled: false })
const PAID_BACK = changed(FULFILLED, { financialStatus: 'refunded' })
const PAID_BACK_WITHOUT_LINK = changed(PAID_BACK, { cancelled: true, click: '' }, 'orders/cancelled')
const WITHOUT_LINK = changed(CREATE, { click: '', updatedAt: 0 })

/** What a set of reports leads to, in any order: state and expected commission, and the sale's status. */
const STORIES: [
  what: string,
  reports: Story[],
  end: [state: string, expected: number, sale: string | null] | null,
][] = [
  ['placed', [CREATE], ['pending', 1000, null]],
  ['placed and changed twice', [CREATE, UPDATED, CHANGED_AGAIN], ['pending', 3000, null]],
  ['placed and paid', [CREATE, PAID], ['became_sale', 2500, 'accepted']],
  ['changed, paid and fulfilled', [CREATE, UPDATED, PAID, FULFILLED], ['became_sale', 2500, 'accepted']],
  ['placed and canceled', [CREATE, CANCELLED], ['cancelled', 2000, null]],
  ['placed, changed and canceled', [CREATE, CHANGED_AGAIN, CANCELLED], ['cancelled', 2000, null]],
  ['canceled, and paid anyway', [CREATE, CANCELLED, PAID], ['became_sale', 2500, 'accepted']],
  ['paid when it was canceled', [CREATE, CANCELLED, PAID_CANCELLED], ['cancelled', 2000, 'rejected']],
  ['placed, and canceled without a link', [CREATE, CANCELLED_WITHOUT_LINK], ['cancelled', 1000, null]],
  ['placed, and canceled by the topic alone', [CREATE, CANCELLED_BY_TOPIC], ['cancelled', 1000, null]],
  [
    'changed, canceled without a link, and paid anyway',
    [CREATE, UPDATED, CANCELLED_WITHOUT_LINK, PAID],
    ['became_sale', 2500, 'accepted'],
  ],
  ['placed, and paid back', [CREATE, PAID_BACK], ['cancelled', 1000, null]],
  ['paid back without a link', [CREATE, UPDATED, PAID_BACK_WITHOUT_LINK], ['cancelled', 2000, null]],
  ['placed, paid and paid back', [CREATE, PAID, PAID_BACK], ['became_sale', 2500, 'accepted']],
  ['prepaid and paid back', [PAID, FULFILLED, PAID_BACK], null],
  ['canceled only, without a link', [CANCELLED_WITHOUT_LINK], null],
  ['a link that comes later', [WITHOUT_LINK, UPDATED, PAID], ['became_sale', 2500, 'accepted']],
  ['no link at all', [WITHOUT_LINK], null],
  ['prepaid', [PAID, FULFILLED], null],
]

function permutations<Item>(items: readonly Item[]): Item[][] {
  if (items.length < 2) return [[...items]]
  return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]))
}

for (const { it } of marketSuites('a pending order')) {
  let market: Marketplace
  let shop: Shop
  let creator: Actor
  let link: LinkRecord
  let click: string
  let placedAt: number
  let orders = 0

  it.before.each(async (context) => {
    market = context.market
    ;({ shop, creator, link } = await market.addTrade({ commission_rate: 100 }))
    click = await market.click(link)
    placedAt = market.clock.now()
  })

  const nextId = () => String(8_000_000_000_000 + orders++)
  const send = (id: string, { topic, changes }: Story, deliveryId?: string) => {
    const { updatedAt = 0, ...rest } = changes
    const times = { createdAt: placedAt, updatedAt: placedAt + updatedAt * MINUTE }
    const body = orderBody({ id, name: `#${id}`, click, price: 100_000, ...times, ...rest })
    return market.deliver(shop, body, { topic, ...(deliveryId !== undefined && { deliveryId }) })
  }
  const place = async (changes: Story['changes']) => {
    await send(nextId(), changed(CREATE, changes))
    await market.drainUntilIdle()
  }
  const rows = () => rowsOf(market.platform, 'pending_orders')
  const sales = () => rowsOf(market.platform, 'sales')
  const entries = async () => (await rowsOf(market.platform, 'ledger_entries')).length
  const theOnly = async () => {
    const [, ...others] = await rows()
    assert.equal(others, [])
    return rowOf(market.platform, 'pending_orders')
  }

  type Drains = 'after each report' | 'once'
  /** Sends the reports of all orders, each of them twice. */
  const play = async (tales: readonly { id: string; order: Story[] }[], drains: Drains) => {
    for (let step = 0; step < 4; step += 1) {
      for (const { id, order } of tales) {
        const report = order[step]
        if (!report) continue
        await send(id, report)
        await send(id, report)
      }
      if (drains === 'after each report') await market.drainUntilIdle()
    }
    await market.drainUntilIdle()
  }

  for (const drains of ['after each report', 'once'] as const) {
    it(`ends alike in every order of its reports, each of them twice, applied ${drains}`, async () => {
      const tales = STORIES.flatMap(([what, reports, end]) =>
        permutations(reports).map((order) => ({ id: nextId(), order, end, what })),
      )
      await play(tales, drains)
      const found = new Map((await rows()).map((row) => [row.order_id, row]))
      const decided = new Map((await sales()).map((sale) => [sale.order_id, sale]))
      for (const { id, order, end, what } of tales) {
        const [row, sale] = [found.get(id), decided.get(id)]
        const sequence = `${what}: ${order.map(({ topic }) => topic).join(', ')}`
        const is = row && [row.state, row.expected_commission, sale?.acceptance_status ?? null]
        assert.equal(is ?? null, end, sequence)
        if (row) assert.is(row.sale_id, row.state === 'became_sale' ? sale?.id : null, sequence)
      }
      const versions = [...Map.groupBy(tales, ({ what }) => what).values()].map(
        (same) => new Set(same.map(({ id }) => found.get(id)?.version.slice(0, 33))).size,
      )
      assert.ok(versions.every((count) => count === 1))
      await market.verify()
    })

    it(`is flagged when its store takes a paid order back, in every order of its reports, applied ${drains}`, async () => {
      const tales = [
        [CREATE, PAID, PAID_BACK],
        [CREATE, CANCELLED_WITHOUT_LINK, PAID],
        [PAID, PAID_BACK],
      ]
      const flagged = tales.flatMap(permutations).map((order) => ({ id: nextId(), order }))
      const others = [
        [CREATE, CANCELLED],
        [CREATE, PAID, FULFILLED],
        [PAID_CANCELLED, PAID_BACK],
      ]
      await play([...flagged, ...others.map((order) => ({ id: nextId(), order }))], drains)
      const [flag, ...more] = await openFlags(market.platform.database.reader, 'order_changed')
      assert.equal(more, [])
      const { reports, latest_orders } = JSON.parse(flag?.evidence ?? '')
      assert.is(reports, flagged.length, 'each order once')
      assert.equal(pluck(latest_orders, 'order_id').sort(), pluck(flagged, 'id').sort())
      assert.equal(new Set(pluck(latest_orders, 'changed').map(String)), new Set(['refunded']))
    })
  }

  it('moves no money, and its payment is decided as without it', async () => {
    const id = nextId()
    await send(id, CREATE)
    await market.drainUntilIdle()
    assert.equal([await entries(), (await sales()).length], [0, 0])
    const row = await theOnly()
    assert.equal(
      [row.merchant_id, row.creator_id, row.link_id, row.offer_id, row.placed_at, row.order_id],
      [shop.merchantId, creator.userId, link.id, link.offer_id, placedAt, id],
    )
    market.clock.pass(3 * DAY)
    await send(id, PAID)
    await send(nextId(), PAID)
    await market.drainUntilIdle()
    const [one, other] = pluckAll(await sales(), 'acceptance_status', 'commission', 'net_amount')
    assert.equal(one, other)
    assert.is(await entries(), 2)
  })

  it('expires when its time is over, in pages, and a payment a year later still becomes a sale', async () => {
    const ids = Array.from({ length: 3 }, () => nextId())
    for (const id of ids) await send(id, CREATE)
    await market.drainUntilIdle()
    market.clock.pass(60 * DAY)
    assert.is(await expirePendingOrders(market.platform), 0)
    market.clock.pass(1)
    assert.is(await expirePendingOrders(market.platform), 3)
    assert.is(await expirePendingOrders(market.platform), 0)
    assert.equal(pluck(await rows(), 'state'), ['expired', 'expired', 'expired'])
    await send(ids[0] ?? '', CANCELLED)
    market.clock.pass(365 * DAY)
    await send(ids[1] ?? '', PAID)
    await send(ids[2] ?? '', CHANGED_AGAIN)
    await market.drainUntilIdle()
    assert.equal(pluckAll(await rows(), 'state', 'expected_commission'), [
      ['cancelled', 2000],
      ['became_sale', 2500],
      ['expired', 3000],
    ])
    await market.verify()
  })

  it('expects what the rule of sales would pay: nothing where it would reject the order', async () => {
    const other = await market.addShop('Another')
    const foreign = await market.click(await market.addLink(other, creator))
    for (const click of [foreign, market.platform.ids.next()]) await place({ click })
    assert.equal(await rows(), [], 'a link of another merchant, and an unknown click, lead to nothing')
    assert.ok((await eventsOf(market.platform)).every(({ state, reason }) => state === 'ignored' && reason))
    for (const changes of [{ currency: 'USD' }, { email: `${creator.userId}@example.com` }])
      await place(changes)
    await setSuspended(market.platform, creator.userId, true)
    await place({})
    assert.equal(pluckAll(await rows(), 'state', 'expected_commission'), Array(3).fill(['pending', 0]))
    await market.verify()
  })

  it('of a body that cannot be read is set aside, and a cancellation of an unknown order is ignored', async () => {
    const order = JSON.parse(orderBody({ price: 1, createdAt: 0, click }))
    const long = JSON.stringify({ ...order, line_items: Array(1001).fill({}) })
    for (const body of ['{', '[]', '{"id":7}', long])
      await market.deliver(shop, body, { topic: 'orders/create' })
    await send(nextId(), CANCELLED_WITHOUT_LINK)
    await market.drainUntilIdle()
    const events = await eventsOf(market.platform)
    assert.equal(pluck(events, 'state'), ['set_aside', 'set_aside', 'set_aside', 'set_aside', 'ignored'])
    assert.match(events[4]?.reason ?? '', /leads to no link/)
    assert.equal(await openFlagsOf(market.platform), [`event_set_aside ${shop.storeId}:unreadable`])
    assert.equal(await rows(), [])
  })

  it('is published to both sides when it is placed and when it is canceled, without the buyer', async () => {
    const endpoint = { url: 'https://shop.example.com/hooks', events: ['order.pending', 'order.cancelled'] }
    for (const owner of [shop.actor, creator])
      await createEndpoint(market.platform, owner, { ...endpoint, description: '' })
    const [kept, canceled, paid] = [nextId(), nextId(), nextId()]
    for (const id of [kept, canceled]) {
      await send(id, CREATE)
      await market.drainUntilIdle()
      market.clock.pass(1)
    }
    await send(paid, PAID)
    await market.drainUntilIdle()
    await send(kept, UPDATED)
    await send(canceled, CANCELLED)
    await send(canceled, CANCELLED)
    await send(paid, CREATE)
    await market.drainUntilIdle()
    const ids = new Map((await rows()).map(({ id, order_id }) => [id, order_id]))
    const events = (await rowsOf(market.platform, 'outbox_events')).filter(({ type }) =>
      type.startsWith('order.'),
    )
    const published = events.map(({ type, account_id, subject_id }) => {
      return `${type} ${ids.get(subject_id) ?? ''} ${account_id === shop.merchantId ? 'merchant' : 'creator'}`
    })
    const expected = [`order.cancelled ${canceled}`, `order.pending ${kept}`, `order.pending ${canceled}`]
    assert.equal(
      published.sort(),
      expected.flatMap((event) => [`${event} creator`, `${event} merchant`]),
    )
    const about = (accountId: string) => {
      const event = events.find(
        ({ account_id, type }) => account_id === accountId && type === 'order.pending',
      )
      return JSON.parse(event?.data ?? '')
    }
    const [toMerchant, toCreator] = [about(shop.merchantId), about(creator.userId)]
    assert.equal([toMerchant.order_id, toMerchant.store.id], [kept, shop.storeId])
    assert.equal([toCreator.order_name, toCreator.expected_commission], [`#${kept}`, '10.00'])
    assert.is(toCreator.creator.display_name, 'creator')
    assert.not('order_id' in toCreator || 'store' in toCreator)
    assert.not.match(JSON.stringify(events), /bushra|buyer/i)
  })

  it('that was changed in the database keeps no sale from being decided', async () => {
    const [id, other] = [nextId(), nextId()]
    await send(id, CREATE)
    await market.drainUntilIdle()
    const { testDatabase } = market.bed
    await testDatabase.database.writer.updateTable('pending_orders').set({ expected_commission: 5 }).execute()
    await send(id, PAID)
    await send(other, PAID)
    await market.drainUntilIdle()
    assert.equal(pluck(await sales(), 'acceptance_status'), ['accepted', 'accepted'])
    assert.is((await theOnly()).state, 'pending')
    assert.equal(await openFlagsOf(market.platform), ['integrity_violation pending_orders'])
  })

  it('that another link earned shows its creator no sale', async () => {
    const id = nextId()
    const other = await market.addCreator('Bilal')
    const otherClick = await market.click(await market.addLink(shop, other, { commission_rate: 200 }))
    await send(id, CREATE)
    await market.drainUntilIdle()
    assert.is((await theOnly()).creator_id, creator.userId)
    await send(id, changed(PAID, { click: otherClick }))
    await market.drainUntilIdle()
    const row = await theOnly()
    assert.equal([row.creator_id, row.expected_commission], [other.userId, 5000])
    const { sale } = await explainSale(market.platform, 'all', row.sale_id ?? '')
    assert.is(sale.creator_id, other.userId)
    await market.verify()
  })

  it('is listed for its merchant and creator by GET /pending-orders, with what each may see, and counted in summaries', async () => {
    const [first, second, third] = [nextId(), nextId(), nextId()]
    await send(first, CREATE)
    market.clock.pass(DAY)
    placedAt = market.clock.now()
    await send(second, UPDATED)
    await send(third, CANCELLED)
    await market.drainUntilIdle()
    const ask = async (actor: Actor, input: z.input<typeof listPendingOrdersInput> = {}) =>
      pendingOrdersRouter.createCaller(requestOf(market.platform, actor)).list(input)
    const names = async (...asked: Parameters<typeof ask>) => pluck((await ask(...asked)).items, 'order_name')
    const all = [`#${third}`, `#${second}`, `#${first}`]
    for (const actor of [shop.actor, creator]) {
      assert.equal(await names(actor), all)
      assert.equal(await names(actor, { state: 'cancelled' }), [`#${third}`])
      const moment = new Date(placedAt).toISOString()
      assert.equal(await names(actor, { from: moment }), all.slice(0, 2))
      assert.equal(await names(actor, { to: moment }), all.slice(2))
      assert.equal(await names(actor, { offer_id: link.offer_id }), all)
      assert.equal(await names(actor, { offer_id: link.id }), [])
      const page = await ask(actor, { limit: 2 })
      assert.equal(await names(actor, { limit: 2, cursor: page.next_cursor ?? '' }), all.slice(2))
      const summaries = summariesRouter.createCaller(requestOf(market.platform, actor))
      const { pending_orders, expected_commission } = await summaries.get({})
      assert.equal([pending_orders, expected_commission], [2, '30.00'])
    }
    for (const stranger of [(await market.addShop()).actor, await market.addCreator()])
      assert.equal(await names(stranger), [])
    const [shown] = (await ask(shop.actor)).items
    const { id, updated_at, ...rest } = shown ?? {}
    assert.equal(rest, {
      order_name: `#${third}`,
      state: 'cancelled',
      offer: { id: link.offer_id, title: OFFER.title },
      creator: { id: creator.userId, display_name: 'creator' },
      ...{ affiliate_link_slug: link.slug, attributed_by: 'click', sale_id: null },
      ...{ expected_commission: '20.00', currency: 'PKR', placed_at: new Date(placedAt).toISOString() },
      ...{ order_id: third, store: shown?.store },
    })
    const { order_id, store, ...forCreator } = shown ?? {}
    assert.equal((await ask(creator)).items[0], forCreator)
  })

  it('shows how much of the cash on delivery of an offer is paid, from 20 decided orders of 90 days on', async () => {
    const rate = async () => {
      const offer = await getOffer(market.platform, null, link.offer_id)
      const listed = async (paid_rate_min?: number) => {
        const query = { ...listOffersInput.parse({}), paid_rate_min }
        return pluck((await listOffers(market.platform, null, query)).items, 'paid_rate_90d')
      }
      assert.equal(await listed(), [offer.paid_rate_90d])
      assert.equal(await listed(6667), offer.paid_rate_90d === null ? [] : [66.67])
      assert.equal(await listed(6668), [])
      return offer.paid_rate_90d
    }
    for (let order = 0; order < 21; order += 1) {
      const id = nextId()
      await send(id, CREATE)
      if (order < 19) await send(id, order < 14 ? PAID : CANCELLED)
    }
    await market.drainUntilIdle()
    assert.is(await rate(), null, '19 are decided')
    market.clock.pass(61 * DAY)
    await expirePendingOrders(market.platform)
    assert.is(await rate(), 66.67)
    const rates = await paidRatesByMerchant(market.platform, 10)
    assert.equal(pluckAll(rates, 'placed', 'decided', 'paid', 'rate'), [[21, 21, 14, 66.67]])
    market.clock.pass(30 * DAY)
    assert.is(await rate(), null, 'they are older than 90 days')
  })

  it.run()
}
