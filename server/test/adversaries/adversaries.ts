import { setCoupon } from '../../links/coupons.service.ts'
import { setOfferStatus } from '../../offers/offers.service.ts'
import { giveDestination } from '../testkit/marketplace.ts'
import { addUser, changeUser } from '../testkit/people.ts'
import { DAY, HOUR, MINUTE } from '../testkit/testbed.ts'
import type { AdversaryWorld, Report } from './adversary-world.ts'

/** What stops or shows an evasion or fraud. At least one of them is not empty. */
export interface Outcome {
  /** Why the orders were rejected. */
  rejected?: string[]
  /** Kinds of flags that are open then. */
  flagged?: string[]
  /** The statuses with which requests were refused. */
  refused?: number[]
}

export interface Adversary {
  who: 'merchant' | 'creator' | 'visitor' | 'outsider'
  does: string
  /** Resolves to the statuses of refused requests, if any. */
  act(world: AdversaryWorld): Promise<unknown>
  expect: Outcome
}

const emailOf = (world: AdversaryWorld) => `${world.creator.userId}@example.com`

async function setEmail({ platform, creator }: AdversaryWorld, email: string): Promise<void> {
  await changeUser(platform, creator.userId, { email })
}

/** One tracked click, and what the store makes of the order that follows. */
async function sell(world: AdversaryWorld, report: Report = {}): Promise<void> {
  const click = (await world.follow()) ?? ''
  await world.report({ click, ...report })
}

/** Gives the link the code SANA10, or takes it away. */
async function giveCode(
  { market, platform, shop, link }: AdversaryWorld,
  code: string | null = 'SANA10',
): Promise<void> {
  await setCoupon(platform, { slug: link.slug, actor: shop.merchantId, code })
  market.clock.pass(MINUTE)
}

async function reportSix(world: AdversaryWorld, createdAt: number): Promise<void> {
  world.market.clock.pass(HOUR)
  for (let order = 0; order < 6; order += 1) await world.report({ codes: ['SANA10'], createdAt })
}

/** Days of honest trade: each with some visits; every other visitor buys. */
async function trade(world: AdversaryWorld, days: number): Promise<void> {
  for (let day = 0; day < days; day += 1) {
    const clicks = await world.follows(8)
    for (const [index, click] of clicks.entries()) if (index % 2 === 0) await world.report({ click })
    await world.work()
    await world.days(1)
  }
}

const MERCHANTS: Omit<Adversary, 'who'>[] = [
  {
    does: 'dates an order a month ahead, out of the attribution window',
    act: (world) => sell(world, { createdAt: world.market.clock.now() + 31 * DAY }),
    expect: { rejected: ['outside_attribution_window'], flagged: ['order_date_suspicious'] },
  },
  {
    does: 'dates an order into the year 9999',
    act: (world) => sell(world, { createdAt: Date.parse('9999-12-31T23:59:59Z') }),
    expect: { rejected: ['outside_attribution_window'], flagged: ['order_date_suspicious'] },
  },
  {
    does: 'dates an order before its click',
    act: (world) => sell(world, { createdAt: world.market.clock.now() - 10 * MINUTE }),
    expect: { rejected: ['click_after_order'], flagged: ['order_date_suspicious'] },
  },
  {
    does: 'dates an order after the moment at which its platform sent it',
    async act(world) {
      const click = (await world.follow()) ?? ''
      const triggeredAt = world.market.clock.now()
      world.market.clock.pass(HOUR)
      await world.report({ click, triggeredAt })
    },
    expect: { flagged: ['order_date_suspicious'] },
  },
  {
    does: 'says that an order was placed months before it was paid',
    async act(world) {
      const click = (await world.follow()) ?? ''
      const createdAt = world.market.clock.now()
      world.market.clock.pass(100 * DAY)
      await world.report({ click, createdAt })
    },
    expect: { flagged: ['order_date_suspicious'] },
  },
  {
    does: 'reports an order without its reference before the platform does',
    async act(world) {
      const click = (await world.follow()) ?? ''
      await world.report({ id: '77' })
      await world.report({ id: '77', click })
    },
    expect: { rejected: ['no_tracking_reference'], flagged: ['order_changed'] },
  },
  {
    does: 'reports an order with a small amount before the platform does',
    async act(world) {
      const click = (await world.follow()) ?? ''
      await world.report({ id: '77', click, price: 100 })
      await world.report({ id: '77', click })
    },
    expect: { flagged: ['order_changed'] },
  },
  {
    does: 'reports an order with an old date before the platform does',
    async act(world) {
      const click = (await world.follow()) ?? ''
      const createdAt = world.market.clock.now()
      await world.report({ id: '77', click, createdAt: createdAt - MINUTE })
      await world.report({ id: '77', click, createdAt })
    },
    expect: { flagged: ['order_changed'] },
  },
  {
    does: 'reports an unpaid order, and leaves the reference out once it is paid',
    async act(world) {
      const click = (await world.follow()) ?? ''
      const createdAt = world.market.clock.now()
      await world.report({ id: '77', click, createdAt, financialStatus: 'pending' })
      await world.work()
      await world.report({ id: '77', createdAt })
    },
    expect: { rejected: ['no_tracking_reference'], flagged: ['order_changed'] },
  },
  {
    does: 'reports an order without its coupon code before the platform does',
    async act(world) {
      await giveCode(world)
      await world.report({ id: '77' })
      await world.report({ id: '77', codes: ['SANA10'] })
    },
    expect: { rejected: ['no_tracking_reference'], flagged: ['order_changed'] },
  },
  {
    does: 'reports an unpaid order, and leaves the coupon code out once it is paid',
    async act(world) {
      await giveCode(world)
      const createdAt = world.market.clock.now()
      await world.report({ id: '77', codes: ['SANA10'], createdAt, financialStatus: 'pending' })
      await world.work()
      await world.report({ id: '77', createdAt })
    },
    expect: { rejected: ['no_tracking_reference'], flagged: ['order_changed'] },
  },
  {
    does: 'dates an order with a coupon code 400 days back',
    async act(world) {
      await giveCode(world)
      await world.report({ codes: ['SANA10'], createdAt: world.market.clock.now() - 400 * DAY })
    },
    expect: { rejected: ['coupon_not_in_force'], flagged: ['order_date_suspicious'] },
  },
  {
    does: 'dates an order to before its coupon code',
    async act(world) {
      await giveCode(world)
      await world.report({ codes: ['SANA10'], createdAt: world.market.clock.now() - 10 * MINUTE })
    },
    expect: { rejected: ['coupon_not_in_force'], flagged: ['order_date_suspicious'] },
  },
  {
    does: 'pauses an offer for a second, and dates six orders with its coupon code into it',
    async act(world) {
      await giveCode(world)
      const pausedAt = world.market.clock.now()
      await setOfferStatus(world.platform, world.shop.merchantId, world.link.offer_id, 'paused')
      world.market.clock.pass(1000)
      await setOfferStatus(world.platform, world.shop.merchantId, world.link.offer_id, 'live')
      await reportSix(world, pausedAt)
    },
    expect: { rejected: Array(6).fill('coupon_not_in_force'), flagged: ['orders_in_pauses'] },
  },
  {
    does: 'takes a coupon code away for a minute, and dates six orders with it into that',
    async act(world) {
      await giveCode(world)
      const endedAt = world.market.clock.now()
      await giveCode(world, null)
      await giveCode(world)
      await reportSix(world, endedAt)
    },
    expect: { rejected: Array(6).fill('coupon_not_in_force'), flagged: ['orders_in_pauses'] },
  },
  {
    does: 'reports another body under the webhook id of an order',
    async act(world) {
      const click = (await world.follow()) ?? ''
      await world.report({ id: '77', webhookId: 'same', financialStatus: 'pending', click })
      await world.report({ id: '77', webhookId: 'same', click })
    },
    expect: { rejected: ['not_paid'], flagged: ['event_body_conflict'] },
  },
  {
    does: 'reports through a second account what the links of the first one sold',
    async act(world) {
      const second = await world.market.addShop('Chenab Lawn again')
      await sell(world, { shop: second })
    },
    expect: { rejected: ['other_merchants_link'] },
  },
  {
    does: 'pauses the offer while its links have traffic',
    async act(world) {
      await world.follows(12)
      await setOfferStatus(world.platform, world.shop.merchantId, world.link.offer_id, 'paused')
      for (let visit = 0; visit < 12; visit += 1) await world.follow()
      await world.days(1)
    },
    expect: { flagged: ['offer_paused_in_traffic'] },
  },
  {
    does: 'stops reporting what a link sells after it earned',
    async act(world) {
      await trade(world, 6)
      for (let day = 0; day < 4; day += 1) {
        await world.follows(8)
        await world.days(1)
      }
    },
    expect: { flagged: ['conversion_dropped'] },
  },
  {
    does: 'has a few orders rejected that it would have paid before',
    async act(world) {
      await trade(world, 5)
      for (const click of await world.follows(5)) await world.report({ click, financialStatus: 'voided' })
    },
    expect: { rejected: Array(5).fill('not_paid'), flagged: ['rejected_sales_burst'] },
  },
  {
    does: 'has many orders rejected from the start',
    async act(world) {
      const clicks = await world.follows(19)
      for (const click of clicks) await world.report({ click, test: true })
      await sell(world, { test: true })
    },
    expect: { rejected: Array(20).fill('test_order'), flagged: ['rejected_sales_burst'] },
  },
  {
    does: 'reports an order in another currency',
    act: (world) => sell(world, { currency: 'USD' }),
    expect: { rejected: ['currency_not_pkr'] },
  },
]

const CREATORS: Omit<Adversary, 'who'>[] = [
  {
    does: 'buys through the own link',
    act: (world) => sell(world, { email: emailOf(world) }),
    expect: { rejected: ['self_purchase'], flagged: ['self_purchase'] },
  },
  {
    does: 'buys through the own link with a labelled address',
    act: (world) => sell(world, { email: emailOf(world).replace('@', '+shop@') }),
    expect: { rejected: ['self_purchase'], flagged: ['self_purchase'] },
  },
  {
    does: 'buys through the own link with other dots and the other name of Gmail',
    async act(world) {
      await setEmail(world, 'sana.mirza@gmail.com')
      await sell(world, { email: 'SanaMirza+7@googlemail.com' })
    },
    expect: { rejected: ['self_purchase'], flagged: ['self_purchase'] },
  },
  {
    does: 'buys through the own link with another address and the own name',
    act: (world) => sell(world, { buyerName: { first_name: 'a', last_name: 'creator' } }),
    expect: { flagged: ['self_purchase'] },
  },
  {
    does: 'lets an unpaid order through, and pays it with the own address',
    async act(world) {
      const click = (await world.follow()) ?? ''
      const createdAt = world.market.clock.now()
      await world.report({ id: '77', click, createdAt, financialStatus: 'pending' })
      await world.work()
      await world.report({ id: '77', click, createdAt, email: emailOf(world) })
    },
    expect: { rejected: ['self_purchase'], flagged: ['self_purchase'] },
  },
  {
    does: 'has one click named by 60 orders',
    async act(world) {
      const click = (await world.follow()) ?? ''
      for (let order = 0; order < 60; order += 1) await world.report({ click })
    },
    expect: { flagged: ['click_reused', 'conversion_unusual'] },
  },
  {
    does: 'has one click of many named by four orders',
    async act(world) {
      const [click] = await world.follows(10)
      for (let order = 0; order < 4; order += 1) await world.report({ click: click as string })
    },
    expect: { flagged: ['click_reused'] },
  },
  {
    does: 'sells more than was clicked, in small numbers',
    async act(world) {
      const click = (await world.follow()) ?? ''
      for (let order = 0; order < 2; order += 1) await world.report({ click })
    },
    expect: { flagged: ['conversion_unusual'] },
  },
  ...['image', 'iframe', 'script', 'empty'].map((destination) => ({
    does: `has pages load the link as ${destination}, and buyers carry what comes of it`,
    async act(world: AdversaryWorld) {
      const reference = await world.follow({ 'sec-fetch-dest': destination })
      if (reference !== null) throw new Error('an embedded element was given a reference')
      // The click's id is still known, from the response's request id.
      const { id } = await world.platform.database.reader
        .selectFrom('clicks')
        .select('id')
        .executeTakeFirstOrThrow()
      await world.report({ click: id })
    },
    expect: { rejected: ['untracked_click'] },
  })),
  {
    does: 'follows the own link again and again',
    async act(world) {
      for (let time = 0; time < 25; time += 1) await world.follow()
    },
    expect: { flagged: ['click_velocity'] },
  },
  {
    does: 'is paid into the account of another creator',
    async act(world) {
      const second = await addUser(world.platform, 'creator', 'Zoya')
      await giveDestination(world.platform, second.userId)
    },
    expect: { flagged: ['shared_iban'] },
  },
  {
    does: 'is a merchant too, at the same mailbox',
    async act(world) {
      await setEmail(world, `${world.shop.merchantId}+creator@example.com`)
    },
    expect: { flagged: ['shared_mailbox'] },
  },
]

const VISITORS: Omit<Adversary, 'who'>[] = [
  {
    does: 'makes up a reference',
    act: async (world) => void (await world.report({ click: '0190a1b2-0000-7000-8000-000000000000' })),
    expect: { rejected: ['unknown_tracking_reference'] },
  },
  {
    does: 'orders long after the click',
    async act(world) {
      const click = (await world.follow()) ?? ''
      world.market.clock.pass(31 * DAY)
      await world.report({ click })
    },
    expect: { rejected: ['outside_attribution_window'] },
  },
]

const OUTSIDERS: Omit<Adversary, 'who'>[] = [
  {
    does: 'reports an order of a store without its secret',
    async act(world) {
      const click = (await world.follow()) ?? ''
      return [await world.report({ click, secret: 'a guess' })]
    },
    expect: { refused: [401] },
  },
  {
    does: 'reports an order of a store with the secret of another one',
    async act(world) {
      const other = await world.market.addShop('other')
      const click = (await world.follow()) ?? ''
      return [await world.report({ click, secret: `secret-${other.merchantId}` })]
    },
    expect: { refused: [401] },
  },
]

const by = (who: Adversary['who'], rows: Omit<Adversary, 'who'>[]) => rows.map((row) => ({ who, ...row }))

/** Evasions and frauds, one a row. */
export const ADVERSARIES: readonly Adversary[] = [
  ...by('merchant', MERCHANTS),
  ...by('creator', CREATORS),
  ...by('visitor', VISITORS),
  ...by('outsider', OUTSIDERS),
]
