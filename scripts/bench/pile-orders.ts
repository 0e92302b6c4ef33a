import { createClickRecorder } from '../../server/clicks/clicks.service.ts'
import { createInboxRecorder, type ReceivedEvent } from '../../server/inbox/intake.service.ts'
import { setCoupon } from '../../server/links/coupons.service.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { addLink, addLiveOffer, addMerchant, storeIdOf } from '../../server/test/testkit/listings.ts'
import { addUser } from '../../server/test/testkit/people.ts'
import { DAY_MS } from '../../shared/durations.ts'
import { BENCH_CODE, storeOrder } from './orders.ts'

const SHOPS = 20
const CREATORS = 3
const AT_ONCE = 250

/** What an order of a shop may come through. */
export interface ShopLink {
  linkId: string
  storeId: string
}

/** Twenty shops with three creators each, the first of them with a coupon code, since yesterday. */
export async function openShops(now: Platform): Promise<ShopLink[]> {
  const platform = { ...now, clock: { now: () => now.clock.now() - DAY_MS } }
  const links: ShopLink[] = []
  for (let shop = 0; shop < SHOPS; shop += 1) {
    const merchant = await addMerchant(platform)
    const offer = await addLiveOffer(platform, merchant)
    const storeId = await storeIdOf(platform, merchant.userId)
    for (let creator = 0; creator < CREATORS; creator += 1) {
      const link = await addLink(platform, merchant, await addUser(platform, 'creator'), offer.id)
      links.push({ linkId: link.id, storeId })
      if (creator > 0) continue
      await setCoupon(platform, { slug: link.slug, actor: merchant.userId, code: BENCH_CODE })
    }
  }
  return links
}

/** What a store sends of an order that is paid later, if it reports more than payments. */
export const ALL_TOPICS = ['orders/create', 'orders/updated', 'orders/paid']

interface Pile {
  first: number
  count: number
  topics?: readonly string[]
  linkedEvery?: number
}

/**
 * Has the inbox filled with orders of 8 KB, numbered from `first`, each with the click that led to it, and reported by these topics. Of
 * `linkedEvery` orders, one names its click or code.
 */
export async function pileOrders(
  platform: Platform,
  links: readonly ShopLink[],
  { first, count, topics = ['orders/paid'], linkedEvery = 1 }: Pile,
): Promise<void> {
  const clicks = createClickRecorder(platform)
  const inbox = createInboxRecorder(platform)
  // Fixture orders are placed up to an hour after their click; an order from the future would be flagged.
  const createdAt = platform.clock.now() - 2 * 3_600_000
  const ids = Array.from({ length: count }, () => platform.ids.next())
  // One topic after the other, as days lie between them.
  for (const topic of topics) {
    for (let done = 0; done < count; done += AT_ONCE) {
      const some = ids.slice(done, done + AT_ONCE)
      await Promise.all(
        some.map(async (id, index) => {
          const number = first + done + index
          const link = links[number % links.length] as ShopLink
          const click = { id, linkId: link.linkId, tracked: true, kind: 'visit', createdAt } as const
          if (topic === topics[0]) await clicks.record(click)
          const order = storeOrder(number, id, createdAt)
          await inbox.record(
            delivery(link, number, topic, number % linkedEvery === 0 ? order : withoutLink(order)),
          )
        }),
      )
    }
  }
}

const withoutLink = (order: string) =>
  order.replaceAll('aff_ref', 'utm_id').replace(/"discount_codes": ?\[[^\]]*\]/, '"discount_codes": []')

const PAID = /"financial_status": ?"paid"/

function delivery({ storeId }: ShopLink, number: number, topic: string, order: string): ReceivedEvent {
  const body = topic === 'orders/paid' ? order : order.replace(PAID, '"financial_status":"pending"')
  const deliveryId = `bench-${number}-${topic}`
  return { source: 'store', scope: storeId, deliveryId, topic, rawBody: Buffer.from(body) }
}
