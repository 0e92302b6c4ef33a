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
  const click = await world.click()
  await world.report({ click, ...report })
}

/** Reports of one order, each applied before the next, by a store to which one visitor came. */
const reporting =
  (reports: (click: string, placedAt: number, world: AdversaryWorld) => Report[]) =>
  async (world: AdversaryWorld): Promise<void> => {
    const click = await world.click()
    const createdAt = world.market.clock.now()
    for (const report of reports(click, createdAt, world)) {
      await world.report({ id: '77', createdAt, ...report })
      await world.work()
    }
  }

/** The same of a link with a code. */
const withCode = (act: Adversary['act']) => async (world: AdversaryWorld) => {
  await giveCode(world)
  await act(world)
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

/** An embedded element is given no reference; its click's id is still known, from the response's request id. */
async function sellUntracked(world: AdversaryWorld, destination: string): Promise<void> {
  const reference = await world.follow({ 'sec-fetch-dest': destination })
  if (reference !== null) throw new Error('an embedded element was given a reference')
  const clicks = world.platform.database.reader.selectFrom('clicks').select('id')
  await world.report({ click: (await clicks.executeTakeFirstOrThrow()).id })
}

const by =
  (who: Adversary['who'], expect: Outcome) =>
  (acts: Record<string, Adversary['act']>): Adversary[] =>
    Object.entries(acts).map(([does, act]) => ({ who, does, act, expect }))

/** Evasions and frauds, by what they must lead to. */
export const ADVERSARIES: readonly Adversary[] = [
  ...by('merchant', { rejected: ['outside_attribution_window'], flagged: ['order_date_suspicious'] })({
    'dates an order a month ahead, out of the attribution window': (world) =>
      sell(world, { createdAt: world.market.clock.now() + 31 * DAY }),
    'dates an order into the year 9999': (world) =>
      sell(world, { createdAt: Date.parse('9999-12-31T23:59:59Z') }),
  }),
  ...by('merchant', { rejected: ['click_after_order'], flagged: ['order_date_suspicious'] })({
    'dates an order before its click': (world) =>
      sell(world, { createdAt: world.market.clock.now() - 10 * MINUTE }),
  }),
  ...by('merchant', { flagged: ['order_date_suspicious'] })({
    async 'dates an order after the moment at which its platform sent it'(world) {
      const click = await world.click()
      const triggeredAt = world.market.clock.now()
      world.market.clock.pass(HOUR)
      await world.report({ click, triggeredAt })
    },
    async 'says that an order was placed months before it was paid'(world) {
      const click = await world.click()
      const createdAt = world.market.clock.now()
      world.market.clock.pass(100 * DAY)
      await world.report({ click, createdAt })
    },
  }),
  ...by('merchant', { rejected: ['no_tracking_reference'], flagged: ['order_changed'] })({
    'reports an order without its reference before the platform does': reporting((click) => [{}, { click }]),
    'reports an unpaid order, and leaves the reference out once it is paid': reporting((click) => [
      { click, financialStatus: 'pending' },
      {},
    ]),
    'reports an order without its coupon code before the platform does': withCode(
      reporting(() => [{}, { codes: ['SANA10'] }]),
    ),
    'reports an unpaid order, and leaves the coupon code out once it is paid': withCode(
      reporting(() => [{ codes: ['SANA10'], financialStatus: 'pending' }, {}]),
    ),
  }),
  ...by('merchant', { flagged: ['order_changed'] })({
    'reports an order with a small amount before the platform does': reporting((click) => [
      { click, price: 100 },
      { click },
    ]),
    'reports an order with an old date before the platform does': reporting((click, placedAt) => [
      { click, createdAt: placedAt - MINUTE },
      { click },
    ]),
  }),
  ...by('merchant', { rejected: ['coupon_not_in_force'], flagged: ['order_date_suspicious'] })({
    async 'dates an order with a coupon code 400 days back'(world) {
      await giveCode(world)
      await world.report({ codes: ['SANA10'], createdAt: world.market.clock.now() - 400 * DAY })
    },
    async 'dates an order to before its coupon code'(world) {
      await giveCode(world)
      await world.report({ codes: ['SANA10'], createdAt: world.market.clock.now() - 10 * MINUTE })
    },
  }),
  ...by('merchant', { rejected: Array(6).fill('coupon_not_in_force'), flagged: ['orders_in_pauses'] })({
    async 'pauses an offer for a second, and dates six orders with its coupon code into it'(world) {
      await giveCode(world)
      const pausedAt = world.market.clock.now()
      await setOfferStatus(world.platform, world.shop.merchantId, world.link.offer_id, 'paused')
      world.market.clock.pass(1000)
      await setOfferStatus(world.platform, world.shop.merchantId, world.link.offer_id, 'live')
      await reportSix(world, pausedAt)
    },
    async 'takes a coupon code away for a minute, and dates six orders with it into that'(world) {
      await giveCode(world)
      const endedAt = world.market.clock.now()
      await giveCode(world, null)
      await giveCode(world)
      await reportSix(world, endedAt)
    },
  }),
  ...by('merchant', { rejected: ['not_paid'], flagged: ['event_body_conflict'] })({
    async 'reports another body under the webhook id of an order'(world) {
      const click = await world.click()
      await world.report({ id: '77', webhookId: 'same', financialStatus: 'pending', click })
      await world.report({ id: '77', webhookId: 'same', click })
    },
  }),
  ...by('merchant', { rejected: ['other_merchants_link'] })({
    'reports through a second account what the links of the first one sold': async (world) =>
      sell(world, { shop: await world.market.addShop('Chenab Lawn again') }),
  }),
  ...by('merchant', { rejected: ['currency_not_pkr'] })({
    'reports an order in another currency': (world) => sell(world, { currency: 'USD' }),
  }),
  ...by('merchant', { flagged: ['offer_paused_in_traffic'] })({
    async 'pauses the offer while its links have traffic'(world) {
      await world.follows(12)
      await setOfferStatus(world.platform, world.shop.merchantId, world.link.offer_id, 'paused')
      for (let visit = 0; visit < 12; visit += 1) await world.follow()
      await world.days(1)
    },
  }),
  ...by('merchant', { flagged: ['conversion_dropped'] })({
    async 'stops reporting what a link sells after it earned'(world) {
      await trade(world, 6)
      for (let day = 0; day < 4; day += 1) {
        await world.follows(8)
        await world.days(1)
      }
    },
  }),
  ...by('merchant', { rejected: Array(5).fill('not_paid'), flagged: ['rejected_sales_burst'] })({
    async 'has a few orders rejected that it would have paid before'(world) {
      await trade(world, 5)
      for (const click of await world.follows(5)) await world.report({ click, financialStatus: 'voided' })
    },
  }),
  ...by('merchant', { rejected: Array(20).fill('test_order'), flagged: ['rejected_sales_burst'] })({
    async 'has many orders rejected from the start'(world) {
      const clicks = await world.follows(19)
      for (const click of clicks) await world.report({ click, test: true })
      await sell(world, { test: true })
    },
  }),
  ...by('creator', { rejected: ['self_purchase'], flagged: ['self_purchase'] })({
    'buys through the own link': (world) => sell(world, { email: emailOf(world) }),
    'buys through the own link with a labelled address': (world) =>
      sell(world, { email: emailOf(world).replace('@', '+shop@') }),
    async 'buys through the own link with other dots and the other name of Gmail'(world) {
      await setEmail(world, 'sana.mirza@gmail.com')
      await sell(world, { email: 'SanaMirza+7@googlemail.com' })
    },
    'lets an unpaid order through, and pays it with the own address': reporting((click, _placedAt, world) => [
      { click, financialStatus: 'pending' },
      { click, email: emailOf(world) },
    ]),
  }),
  ...by('creator', { flagged: ['self_purchase'] })({
    'buys through the own link with another address and the own name': (world) =>
      sell(world, { buyerName: { first_name: 'a', last_name: 'creator' } }),
  }),
  ...by('creator', { flagged: ['click_reused', 'conversion_unusual'] })({
    async 'has one click named by 60 orders'(world) {
      const click = await world.click()
      for (let order = 0; order < 60; order += 1) await world.report({ click })
    },
  }),
  ...by('creator', { flagged: ['click_reused'] })({
    async 'has one click of many named by four orders'(world) {
      const [click] = await world.follows(10)
      for (let order = 0; order < 4; order += 1) await world.report({ click: click as string })
    },
  }),
  ...by('creator', { flagged: ['conversion_unusual'] })({
    async 'sells more than was clicked, in small numbers'(world) {
      const click = await world.click()
      for (let order = 0; order < 2; order += 1) await world.report({ click })
    },
  }),
  ...by('creator', { flagged: ['click_velocity'] })({
    async 'follows the own link again and again from a rented server'(world) {
      for (let time = 0; time < 25; time += 1) await world.follow()
    },
  }),
  ...by('creator', { flagged: ['shared_iban'] })({
    async 'is paid into the account of another creator'(world) {
      const second = await addUser(world.platform, 'creator', 'Zoya')
      await giveDestination(world.platform, second.userId)
    },
  }),
  ...by('creator', { flagged: ['shared_mailbox'] })({
    async 'is a merchant too, at the same mailbox'(world) {
      await setEmail(world, `${world.shop.merchantId}+creator@example.com`)
    },
  }),
  ...by('creator', { rejected: ['untracked_click'] })(
    Object.fromEntries(
      ['image', 'iframe', 'script', 'empty'].map((destination) => [
        `has pages load the link as ${destination}, and buyers carry what comes of it`,
        (world) => sellUntracked(world, destination),
      ]),
    ),
  ),
  ...by('visitor', { rejected: ['unknown_tracking_reference'] })({
    'makes up a reference': (world) => world.report({ click: '0190a1b2-0000-7000-8000-000000000000' }),
  }),
  ...by('visitor', { rejected: ['outside_attribution_window'] })({
    async 'orders long after the click'(world) {
      const click = await world.click()
      world.market.clock.pass(31 * DAY)
      await world.report({ click })
    },
  }),
  ...by('outsider', { refused: [401] })({
    'reports an order of a store without its secret': async (world) => [
      await world.report({ click: await world.click(), secret: 'a guess' }),
    ],
    async 'reports an order of a store with the secret of another one'(world) {
      const other = await world.market.addShop('other')
      return [await world.report({ click: await world.click(), secret: `secret-${other.merchantId}` })]
    },
  }),
]
