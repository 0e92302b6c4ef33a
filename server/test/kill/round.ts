import { DAY_MS, HOUR_MS } from '../../../shared/durations.ts'
import { CREATOR_EVENTS, MERCHANT_EVENTS } from '../../../shared/events.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import { createEndpoint } from '../../notifications/channels/webhooks/endpoints.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import type { Platform } from '../../platform/platform.ts'
import { accessOf, addLink, addLiveOffer, addMerchant, storeIdOf } from '../testkit/listings.ts'
import { giveDestination } from '../testkit/marketplace.ts'
import { orderBody, orderHeaders, type StoreAccess } from '../testkit/orders.ts'
import { addUser } from '../testkit/people.ts'
import { columnsOf } from '../testkit/rows.ts'
import { type Cast, type Figures, readFigures } from './figures.ts'
import type { Stage } from './points.ts'
import type { World } from './world.ts'

/** Karachi is five hours before UTC, all year. */
const KARACHI_MS = 5 * HOUR_MS
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0'

/** Does what a stage is, and may do something to the server meanwhile. */
export type Conduct = (stage: Stage, work: () => Promise<void>) => Promise<void>

const calmly: Conduct = (_stage, work) => work()

interface Scene extends Cast, StoreAccess {
  links: { ayesha: LinkRecord; bilal: LinkRecord }
}

/**
 * One round of business: two creators' visitors buy, some orders are reported twice, a late one closes its cycle, the
 * schedule closes the next, the processor loses some of its answers, and everyone is paid. Returns the figures of the round.
 */
export async function playRound(world: World, conduct: Conduct = calmly): Promise<Figures> {
  await conduct('start', async () => {
    await world.up()
  })
  const scene = await world.prepare((platform) => setScene(platform, world.receiver.url))
  const clicks = { ayesha: [] as string[], bilal: [] as string[] }
  await conduct('clicks', async () => {
    const follow = async (who: 'ayesha' | 'bilal') =>
      clicks[who].push(await followLink(world, scene.links[who]))
    const visitors = ['ayesha', 'ayesha', 'ayesha', 'bilal', 'bilal', 'bilal'] as const
    await Promise.all(visitors.map(follow))
  })
  // Each order has a click of its own: a link that sells more often than it is clicked is flagged.
  const [first, second, late] = clicks.ayesha
  const [third, fourth] = clicks.bilal
  const order = (price: number, click?: string) =>
    orderBody({ price, createdAt: world.now(), ...(click !== undefined && { click }) })
  const orders = [
    order(100_000, first),
    order(33_333, second),
    order(249_999, third),
    order(5995, fourth),
    order(50_000),
  ]
  const ids = orders.map((_, index) => `${scene.storeId}-${index}`)
  await conduct('orders', async () => {
    const deliveries = [...orders.keys(), 1]
    await Promise.all(deliveries.map((index) => report(world, scene, ids[index] ?? '', orders[index] ?? '')))
    await world.settleDown((platform) => hasSales(platform, scene, 5))
  })
  await conduct('again', async () => {
    await report(world, scene, `${ids[0]}-again`, orders[0] ?? '')
    await report(world, scene, ids[2] ?? '', orders[2] ?? '')
    await world.settleDown(async () => true)
  })
  await conduct('late', async () => {
    await world.startIsOver()
    await world.passTime(untilTomorrow(world.now()))
    await report(world, scene, `${scene.storeId}-late`, order(80_000, late))
    await world.settleDown((platform) => hasCycles(platform, scene, { charged: 1, open: 1 }))
    await world.runSchedule('payouts')
    await world.settleDown((platform) => hasPaid(platform, scene, 2), 'payouts')
  })
  // From here on the processor loses its first answer in each stage, so that it is asked what it holds.
  await conduct('billing', async () => {
    world.processor.switches({ lose_next_answers: 1 })
    await world.passTime(untilTomorrow(world.now()))
    await world.runSchedule('billing')
    await world.settleDown((platform) => hasCycles(platform, scene, { charged: 2 }), 'billing')
  })
  await conduct('payouts', async () => {
    world.processor.switches({ lose_next_answers: 1 })
    await world.runSchedule('payouts')
    await world.settleDown((platform) => hasPaid(platform, scene, 3), 'payouts')
  })
  world.processor.switches({ lose_next_answers: 0 })
  await world.settleDown(async () => true)
  await world.verify()
  const { processor, receiver, mails } = world
  const outside = { held: processor.state(), webhooks: receiver.received, mails: mails.arrived() }
  return world.look(({ database }) => readFigures(database, outside, scene))
}

/** With webhook endpoints of all of them at `hooksUrl`, if given. */
export async function setScene(platform: Platform, hooksUrl?: string): Promise<Scene> {
  const hook = async (owner: Actor, events: readonly string[]) => {
    if (hooksUrl !== undefined)
      await createEndpoint(platform, owner, { url: hooksUrl, events, description: '' })
  }
  const merchant = await addMerchant(platform)
  await hook(merchant, MERCHANT_EVENTS)
  const link = async (name: string, rate: number) => {
    const creator = await addUser(platform, 'creator', name)
    await hook(creator, CREATOR_EVENTS)
    await giveDestination(platform, creator.userId, ibanOf(creator.userId))
    const offer = await addLiveOffer(platform, merchant, { commission_rate: rate })
    return { id: creator.userId, link: await addLink(platform, merchant, creator, offer.id) }
  }
  const ayesha = await link('ayesha', 1250)
  const bilal = await link('bilal', 1000)
  return {
    ...accessOf(merchant),
    merchantId: merchant.userId,
    storeId: await storeIdOf(platform, merchant.userId),
    creators: { ayesha: ayesha.id, bilal: bilal.id },
    links: { ayesha: ayesha.link, bilal: bilal.link },
  }
}

/** One of its own for each: two people with one account would be looked at. */
function ibanOf(userId: string): string {
  const digits = BigInt(`0x${userId.replaceAll('-', '')}`) % 10n ** 16n
  return `PK36SCBL${String(digits).padStart(16, '0')}`
}

/** A visitor who tries again until sent on with a reference, which is the answer. While the database is down, there is none. */
async function followLink(world: World, link: LinkRecord): Promise<string> {
  const headers = { 'user-agent': BROWSER }
  for (;;) {
    const answer = await world.insist(302, { method: 'GET', path: `/go/${link.slug}`, headers })
    const reference = /aff_ref=([0-9a-f-]{36})/.exec(answer.headers.get('location') ?? '')?.[1]
    if (!reference) continue
    world.acknowledged.clicks.add(reference)
    return reference
  }
}

async function report(world: World, shop: StoreAccess, deliveryId: string, raw: string): Promise<void> {
  await world.insist(200, {
    method: 'POST',
    path: '/webhooks/store-sales',
    raw,
    headers: orderHeaders(shop, deliveryId, raw),
  })
  world.acknowledged.deliveries.add(deliveryId)
}

function untilTomorrow(now: number): number {
  return DAY_MS - ((now + KARACHI_MS) % DAY_MS) + HOUR_MS
}

async function hasSales(platform: Platform, { merchantId }: Cast, count: number): Promise<boolean> {
  return (await columnsOf(platform, 'sales', ['id'], { merchant_id: merchantId })).length === count
}

async function hasCycles(
  platform: Platform,
  { merchantId }: Cast,
  wanted: Partial<Record<'open' | 'closed' | 'charged', number>>,
): Promise<boolean> {
  const cycles = await columnsOf(platform, 'billing_cycles', ['state'], { merchant_id: merchantId })
  return (['open', 'closed', 'charged'] as const).every(
    (state) => cycles.filter((cycle) => cycle.state === state).length === (wanted[state] ?? 0),
  )
}

async function hasPaid(platform: Platform, { creators }: Cast, count: number): Promise<boolean> {
  const payouts = await columnsOf(platform, 'payouts', ['creator_id', 'state'])
  const theirs = payouts.filter(({ creator_id }) => Object.values(creators).includes(creator_id))
  return theirs.length === count && theirs.every(({ state }) => state === 'paid')
}
