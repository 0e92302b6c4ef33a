// long

import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { rollUpClicks } from '../clicks/clicks.service.ts'
import { resolveFlag } from '../flags/flags.service.ts'
import { setCoupon } from '../links/coupons.service.ts'
import { setOfferStatus } from '../offers/offers.service.ts'
import { insertRows, updateRows } from '../platform/database/protected-rows.ts'
import { RefusedDeliveries } from '../stores/refused-deliveries.service.ts'
import { recordActivity } from '../stores/store-activity.service.ts'
import { testDialects } from '../test/testkit/databases.ts'
import { addMerchant } from '../test/testkit/listings.ts'
import { partly } from '../test/testkit/market-suites.ts'
import { giveDestination } from '../test/testkit/marketplace.ts'
import { addUser, changeUser } from '../test/testkit/people.ts'
import { pluckAll } from '../test/testkit/pluck.ts'
import { columnsOf, rowOf, rowsOf } from '../test/testkit/rows.ts'
import { DAY, HOUR, MINUTE } from '../test/testkit/testbed.ts'
import { openWatchedWorld, type WatchedWorld } from '../test/testkit/watched-world.ts'
import { watchMarketplace } from './watches.service.ts'
import { addDailyVisits, offersPausedInTraffic } from './watches.store.ts'

const SETTINGS = {
  FLAG_SELF_PURCHASES: '2',
  FLAG_REJECTED_SALES: '4',
  FLAG_CONVERSION_VISITS: '10',
  FLAG_CONVERSION_NONE: '40',
  FLAG_COUPON_LEAK: '4',
}

for (const dialect of testDialects()) {
  const it = partly(suite<{ world: WatchedWorld }>(`the watches on ${dialect}`), dialect)
  it.before.each(async (context) => {
    context.world = await openWatchedWorld(dialect, SETTINGS)
  })
  it.after.each(({ world }) => world.close())

  const resolveAll = async (world: WatchedWorld, kind: string) => {
    for (const { id: flagId } of await world.flags(kind))
      await resolveFlag(world.platform, { flagId, actor: 'operator', note: 'looked at' })
  }
  /** The open flags of a kind after a look at all that there is. */
  const seen = async (world: WatchedWorld, kind: string) => {
    await world.watch()
    return world.flags(kind)
  }
  const giveCode = ({ platform, link, merchant }: WatchedWorld) =>
    setCoupon(platform, { slug: link.slug, actor: merchant.userId, code: 'SANA10' })
  /** An order of the creator's own, by a click of now. */
  const buyOwn = async (world: WatchedWorld) => {
    const [click = ''] = await world.visit(1)
    return world.order({ click, email: `${world.creator.userId}@example.com` })
  }

  it('flags no one for everyday trade', async ({ world }) => {
    const clicks = await world.visit(30)
    for (const click of clicks.slice(0, 3)) await world.order({ click })
    for (let count = 0; count < 20; count += 1) await world.order()
    await world.order({ financialStatus: 'pending' })
    await world.watch()
    assert.equal(await rowsOf(world.platform, 'flags'), [])
  })

  it('flags a creator who buys through the own link, once each time someone looked', async ({ world }) => {
    const own = async () => {
      const { saleId } = await buyOwn(world)
      return { saleId, flags: await seen(world, 'self_purchase') }
    }
    const counts = async () => (await own()).flags.map(({ evidence }) => evidence.self_purchases)
    assert.equal(await counts(), [])
    const { saleId, flags } = await own()
    const evidence = { self_purchases: 2, name_matches: 0, within_days: 30, latest_sale_ids: [saleId] }
    assert.equal(pluckAll(flags, 'subject_id', 'evidence'), [[world.creator.userId, evidence]])
    assert.equal(await counts(), [3], 'the same flag')
    await resolveAll(world, 'self_purchase')
    assert.equal(await counts(), [], 'what was looked at does not count again')
    assert.equal(await counts(), [2])
  })

  it('holds up only what counts clicks while visits are not checked up to now', async ({ world }) => {
    const { platform, clock } = world
    for (const click of await world.visit(12)) await world.order({ click })
    for (const _ of [1, 2]) await buyOwn(world)
    clock.pass(MINUTE)
    await rollUpClicks(platform)
    // Checks the visits of the first of many days.
    await watchMarketplace(platform)
    assert.is((await world.flags('self_purchase')).length, 1)
    assert.equal(await world.flags('conversion_unusual'), [])
    assert.is((await seen(world, 'conversion_unusual')).length, 1)
  })

  it('forgets what is older than the window', async ({ world }) => {
    for (const _ of [1, 2]) {
      await buyOwn(world)
      world.clock.pass(31 * DAY)
      await world.watch()
    }
    assert.equal(await world.flags('self_purchase'), [])
  })

  it('flags a store whose orders are rejected in numbers', async ({ world }) => {
    const clicks = await world.visit(8)
    for (const click of clicks.slice(0, 3)) await world.order({ click, financialStatus: 'pending' })
    assert.equal(await seen(world, 'rejected_sales_burst'), [])
    await world.order({ click: '0190a1b2-0000-7000-8000-000000000000' })
    await world.order()
    const [flag] = await seen(world, 'rejected_sales_burst')
    assert.is(flag?.subject_id, world.storeId)
    assert.equal(flag?.evidence, {
      ...{ merchant_id: world.merchant.userId, orders: 4, rejected: 4, within_hours: 24 },
      reasons: { not_paid: 3, unknown_tracking_reference: 1 },
    })
    await resolveAll(world, 'rejected_sales_burst')
    world.clock.pass(HOUR)
    for (const click of clicks.slice(3, 6)) await world.order({ click, financialStatus: 'pending' })
    assert.equal(await seen(world, 'rejected_sales_burst'), [])
  })

  it('flags a conversion too good to be true', async ({ world }) => {
    const sell = async (visits: number) => {
      for (const click of await world.visit(visits)) await world.order({ click })
    }
    await sell(9)
    assert.equal(await seen(world, 'conversion_unusual'), [], 'too few visits to tell')
    await sell(1)
    const [flag] = await seen(world, 'conversion_unusual')
    assert.is(flag?.subject_id, world.link.id)
    const { slug: affiliate_link_slug, creator_id, merchant_id, offer_id } = world.link
    assert.equal(flag?.evidence, {
      ...{ visits: 10, clicks: 10, sales: 10, conversion: 'too_high', within_days: 14 },
      ...{ affiliate_link_slug, creator_id, merchant_id, offer_id },
    })
    await resolveAll(world, 'conversion_unusual')
    world.clock.pass(DAY)
    await world.visit(100)
    world.clock.pass(MINUTE)
    await sell(1)
    assert.equal(await seen(world, 'conversion_unusual'), [], 'only later visits and sales count')
  })

  it('flags a coupon code that many use while no one clicks, once', async ({ world }) => {
    await giveCode(world)
    const use = async (times: number) => {
      for (let count = 0; count < times; count += 1) await world.order({ codes: ['SANA10'] })
      await world.watch()
    }
    await use(3)
    assert.equal(await world.flags('coupon_leak'), [])
    await use(1)
    const [flag, ...others] = await world.flags('coupon_leak')
    const { orders, coupon_codes } = flag?.evidence ?? {}
    assert.equal([flag?.subject_id, orders, coupon_codes, others], [world.link.id, 4, ['SANA10'], []])
    assert.equal(await world.flags('conversion_unusual'), [], 'orders without a click are no conversion')
  })

  it('flags orders with a coupon code in short pauses of its offer, once each review', async ({ world }) => {
    const { platform, merchant, link, clock } = world
    const pause = async (ms: number) => {
      const pausedAt = clock.now()
      await setOfferStatus(platform, merchant.userId, link.offer_id, 'paused')
      clock.pass(ms)
      await setOfferStatus(platform, merchant.userId, link.offer_id, 'live')
      clock.pass(MINUTE)
      return pausedAt
    }
    const sell = async (times: number, createdAt: number, code = 'SANA10') => {
      for (let count = 0; count < times; count += 1) await world.order({ codes: [code], createdAt })
      await world.watch()
    }
    const counts = async () => (await world.flags('orders_in_pauses')).map(({ evidence }) => evidence.orders)
    await giveCode(world)
    clock.pass(MINUTE)
    const long = await pause(HOUR + 1)
    const first = await pause(1000)
    const second = await pause(HOUR)
    await sell(5, long)
    await sell(5, first, 'WELCOME10')
    await sell(5, first - 1)
    await sell(2, first)
    await sell(2, second)
    assert.equal(await counts(), [])
    await sell(1, second)
    assert.equal(await counts(), [5])
    await sell(1, first)
    assert.equal(await counts(), [6])
    await resolveAll(world, 'orders_in_pauses')
    await sell(4, second)
    assert.equal(await counts(), [], 'what was looked at does not count again')
    await sell(1, first)
    assert.equal(await counts(), [5])
  })

  it('flags a store that goes silent, and one whose orders name links otherwise', async ({ world }) => {
    const { platform, clock, storeId } = world
    const counts = { cart: 0, landing: 0, line: 0, coupon: 0, none: 1 }
    const day = async (changes: Partial<typeof counts>) => {
      clock.pass(DAY)
      const row = { store_id: storeId, day: Math.floor(clock.now() / DAY), last_event_at: clock.now() }
      const values = { ...row, ...counts, ...changes }
      await platform.database.transaction((tx) => tx.insertInto('store_days').values(values).execute())
      await world.watch()
    }
    for (let count = 0; count < 14; count += 1) await day({ cart: 4 })
    assert.equal(await world.flags('tracking_source_shift'), [])
    for (let count = 0; count < 5; count += 1) await day({ landing: 4 })
    const [shift, ...others] = await world.flags('tracking_source_shift')
    assert.equal([shift?.subject_id, others], [storeId, []])
    assert.equal(shift?.evidence.moved_percent, 57)
    await resolveAll(world, 'tracking_source_shift')
    await day({ landing: 4 })
    assert.equal(await world.flags('tracking_source_shift'), [], 'a shift that was looked at')
    assert.equal(await world.flags('store_silent'), [])
    clock.pass(7 * DAY)
    const [silent] = await seen(world, 'store_silent')
    assert.equal([silent?.subject_id, silent?.evidence.order_days], [storeId, 20])
    clock.pass(DAY)
    await world.watch()
    const [notice, ...further] = await rowsOf(platform, 'outbox_events', { type: 'store.silent' })
    assert.equal([notice?.subject_id, JSON.parse(notice?.data ?? '').status], [storeId, 'silent'])
    assert.equal(further, [], 'the merchant is notified once')
    await day({})
    assert.equal(await world.flags('store_silent'), [])
  })

  it('notifies the merchant of refused deliveries daily, and flags them after a day', async ({ world }) => {
    const { platform, clock, storeId } = world
    const { shop_domain } = await rowOf(platform, 'stores')
    const refused = new RefusedDeliveries(platform)
    const refuse = async (times: number) => {
      for (let count = 0; count < times; count += 1) refused.note(shop_domain, 'wrong_signature')
      await refused.flush({ all: true })
    }
    const notices = () => rowsOf(platform, 'outbox_events', { type: 'store.rejecting' })
    await refuse(2)
    await world.watch()
    assert.equal(await notices(), [], 'two may be a prank')
    const at = new Date(clock.now()).toISOString()
    await refuse(1)
    await world.watch()
    await world.watch()
    const [notice, ...more] = await notices()
    assert.equal(more, [])
    assert.equal([notice?.account_id, notice?.subject_id], [world.merchant.userId, storeId])
    const { status, last_refusal } = JSON.parse(notice?.data ?? '')
    assert.equal([status, last_refusal], ['rejecting', { at, reason: 'wrong_signature' }])
    assert.equal(await world.flags('store_rejecting'), [])
    clock.pass(DAY)
    const [flag] = await seen(world, 'store_rejecting')
    assert.equal([flag?.subject_id, flag?.evidence.reason], [storeId, 'wrong_signature'])
    assert.is((await notices()).length, 1, 'nothing was refused since')
    await refuse(1)
    await world.watch()
    assert.is((await notices()).length, 2)
    await resolveAll(world, 'store_rejecting')
    assert.equal(await seen(world, 'store_rejecting'), [], 'someone has looked')
    clock.pass(DAY)
    await refuse(1)
    assert.is((await seen(world, 'store_rejecting')).length, 1)
    clock.pass(MINUTE)
    await platform.database.transaction((tx) =>
      recordActivity(platform, tx, [{ storeId, receivedAt: clock.now(), isPaid: true, source: 'cart' }]),
    )
    assert.equal(await seen(world, 'store_rejecting'), [], 'valid deliveries arrive again')
    const { refused_since, refused_count } = await rowOf(platform, 'stores')
    assert.equal([refused_since, refused_count], [null, 0])
  })

  it('is quiet about a coupon code whose creator sends visitors', async ({ world }) => {
    await giveCode(world)
    await world.visit(1)
    await world.watch()
    for (let count = 0; count < 10; count += 1) await world.order({ codes: ['SANA10'] })
    assert.equal(await seen(world, 'coupon_leak'), [])
  })

  it('flags visits in numbers that bought nothing, when their day is over', async ({ world }) => {
    await world.visit(25)
    world.clock.pass(DAY)
    await world.visit(20)
    assert.equal(await seen(world, 'conversion_unusual'), [])
    world.clock.pass(DAY)
    const [flag] = await seen(world, 'conversion_unusual')
    assert.is(flag?.evidence.conversion, 'none')
    assert.is(flag?.evidence.visits, 45)
  })

  it('sums up each visit once, over a pause of the worker too', async ({ world }) => {
    const sums = () => columnsOf(world.platform, 'link_days', ['day', 'visits'], {}, 'day')
    await world.visit(3)
    await world.watch()
    await world.watch()
    await world.visit(2)
    world.clock.pass(3 * DAY)
    await world.visit(4)
    await world.watch()
    const today = Math.floor(world.clock.now() / DAY)
    assert.equal(await sums(), [
      { day: today - 3, visits: 5 },
      { day: today, visits: 4 },
    ])
    world.clock.pass(45 * DAY)
    await world.watch()
    assert.equal(await sums(), [], 'days go once they are compared with no more')
  })

  it('flags a creator whose e-mail goes to a merchant’s mailbox', async ({ world }) => {
    const { platform } = world
    const other = await addUser(platform, 'creator')
    await changeUser(platform, other.userId, { email: 'a.khan+creator@gmail.com' })
    assert.equal(await seen(world, 'shared_mailbox'), [])
    const merchant = await addUser(platform, 'merchant')
    await changeUser(platform, merchant.userId, { email: 'akhan@googlemail.com' })
    const [flag, ...more] = await seen(world, 'shared_mailbox')
    assert.equal([flag?.subject_id, more], [other.userId, []])
    assert.equal(flag?.evidence, { creator_id: other.userId, merchant_ids: [merchant.userId] })
    await resolveAll(world, 'shared_mailbox')
    assert.equal(await seen(world, 'shared_mailbox'), [])
  })

  it('flags a user who gives an IBAN that another has given', async ({ world }) => {
    const { platform } = world
    const [one, two] = [await addUser(platform, 'creator'), await addUser(platform, 'creator')]
    for (const _ of [1, 2]) await giveDestination(platform, one.userId)
    assert.equal(await seen(world, 'shared_iban'), [], 'one user may give it twice')
    for (const _ of [1, 2]) await giveDestination(platform, two.userId)
    await world.watch()
    const evidence = { user_id: two.userId, other_user_ids: [one.userId], iban_last4: '6702' }
    assert.equal(pluckAll(await world.flags('shared_iban'), 'subject_id', 'evidence'), [
      [two.userId, evidence],
    ])
  })

  it('flags a cycle that is not paid for 14 days, and lets go of it when it is', async ({ world }) => {
    const { platform, clock, merchant } = world
    const id = platform.ids.next()
    const now = clock.now()
    const cycle = {
      ...{ id, merchant_id: merchant.userId, state: 'closed' as const, sales_count: 1 },
      ...{ period_start: now - DAY, period_end: now, created_at: now, closed_at: now, charged_at: null },
      ...{ commission_total: 10_000, fee_total: 1000, credit_total: 0, amount_due: 11_000 },
      ...{ processor_invoice_id: 'inv_1', processor_payment_reference: null, payment_url: null },
    }
    await platform.database.transaction((tx) => insertRows(tx, 'billing_cycles', [cycle]))
    clock.pass(14 * DAY - 2 * MINUTE)
    assert.equal(await seen(world, 'cycle_unpaid'), [])
    const [flag] = await seen(world, 'cycle_unpaid')
    assert.is(flag?.subject_id, id)
    assert.is(flag?.evidence.amount_due, '110.00')

    await resolveAll(world, 'cycle_unpaid')
    assert.equal(await seen(world, 'cycle_unpaid'), [], 'a person has looked')
    clock.pass(14 * DAY)
    assert.is((await seen(world, 'cycle_unpaid')).length, 1)
    const paid = { state: 'charged', processor_payment_reference: 'pay_1', charged_at: clock.now() } as const
    await platform.database.transaction((tx) => updateRows(tx, 'billing_cycles', { id }, paid))
    assert.equal(await seen(world, 'cycle_unpaid'), [])
  })

  it('two workers at once see each thing once', async ({ world }) => {
    await addMerchant(world.platform)
    await world.visit(20)
    world.clock.pass(MINUTE)
    await Promise.all([world.watch(), world.watch(), world.watch()])
    assert.is((await rowOf(world.platform, 'link_days', {}, 'day')).visits, 20)
  })

  it('finds offers paused in traffic, with enough visits of either sort', async ({ world }) => {
    const { database } = world.platform
    const add = (day: number, visits: number, untracked_visits: number) => {
      const row = { link_id: world.link.id, day, visits, clicks: visits, untracked_visits }
      return database.transaction((tx) => addDailyVisits(tx, [row]))
    }
    const found = async (least: number) => {
      const offers = await offersPausedInTraffic(database.reader, 11, least)
      return pluckAll([...offers.values()], 'tracked', 'untracked')
    }
    await add(9, 100, 100)
    await add(10, 30, 100)
    await add(11, 19, 50)
    assert.equal(await found(50), [], 'one tracked visit too few')
    await add(11, 2, 0)
    assert.equal(await found(50), [[51, 50]])
    assert.equal(await found(51), [], 'one untracked visit too few')
    await changeUser(world.platform, world.creator.userId, { suspended_at: 1 })
    assert.equal(await found(50), [], 'the merchant did not pause it')
  })

  it.run()
}
