import { createClickRecorder, rollUpClicks } from '../../clicks/clicks.service.ts'
import { watchMarketplace } from '../../watches/watches.service.ts'
import { simulatedIds } from '../simulation/simulated-ids.ts'
import type { TestDialect } from '../testkit/databases.ts'
import { accessOf } from '../testkit/listings.ts'
import { openMarketplace, type Shop } from '../testkit/marketplace.ts'
import { type OrderChanges, orderBody, orderHeaders } from '../testkit/orders.ts'
import { rowsOf } from '../testkit/rows.ts'
import { DAY, MINUTE } from '../testkit/testbed.ts'
import { serverOver } from '../testkit/web.ts'

const BROWSER = 'Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 Chrome/140.0.0.0 Mobile Safari/537.36'

/** Low thresholds, so that a story needs few clicks and orders. */
const SETTINGS = {
  FLAG_CLICKS: '25',
  DATACENTER_NETWORKS: '127.0.0.0/8',
  FLAG_CONVERSION_DAYS: '3',
  FLAG_CONVERSION_RATE: '90',
  FLAG_CONVERSION_VISITS: '10',
  FLAG_CONVERSION_DROP_SALES: '5',
  FLAG_PAUSED_VISITS: '10',
}

export interface Report extends Partial<OrderChanges> {
  shop?: Shop
  /** Of the delivery; a new one unless given. */
  webhookId?: string
  /** When the platform sent it, epoch ms. */
  triggeredAt?: number
  /** What it is signed with; the store's own secret unless given. */
  secret?: string
}

export type AdversaryWorld = Awaited<ReturnType<typeof openAdversaryWorld>>

/** One shop, one creator with a link, and the service as the outside sees it: the redirect and the signed webhook. */
export async function openAdversaryWorld(dialect: TestDialect) {
  const market = await openMarketplace(dialect, SETTINGS, simulatedIds)
  const { platform, clock } = market
  const clicks = createClickRecorder(platform)
  const server = await serverOver(platform, { clicks })
  const shop = await market.addShop('Chenab Lawn')
  const creator = await market.addCreator('Sana')
  const link = await market.addLink(shop, creator)
  let orders = 0

  /** Follows the link as a visitor's browser would; answers the click's id in the address that it leads to, if there is one. */
  async function follow(headers: Record<string, string> = {}): Promise<string | null> {
    const visitor = { 'user-agent': BROWSER, ...headers }
    const answer = await server.inject({ method: 'GET', url: `/go/${link.slug}`, headers: visitor })
    return new URL(String(answer.headers.location)).searchParams.get('aff_ref')
  }

  /** Applies what came in, with all that the service does by itself. */
  async function work(): Promise<void> {
    await clicks.idle()
    await market.drainUntilIdle()
    clock.pass(MINUTE)
    await rollUpClicks(platform)
    while ((await watchMarketplace(platform)) > 0);
  }

  return {
    ...{ market, platform, shop, creator, link, follow, work },
    /** As a tracked visitor; answers the click's id. */
    click: async () => (await follow()) ?? '',
    /** As so many visitors. */
    async follows(times: number): Promise<string[]> {
      const ids: string[] = []
      while (ids.length < times) ids.push((await follow({ 'user-agent': `${BROWSER} ${ids.length}` })) ?? '')
      return ids
    },
    /** The store reports an order; answers the status. */
    async report({ shop: reporting = shop, webhookId, triggeredAt, secret, ...changes }: Report) {
      orders += 1
      const id = String(6_000_000 + orders)
      const payload = orderBody({ createdAt: clock.now(), price: 100_000, id, ...changes })
      const access = { ...accessOf(reporting.actor), ...(secret !== undefined && { secret }) }
      const headers = {
        ...orderHeaders(access, webhookId ?? platform.ids.next(), payload),
        ...(triggeredAt !== undefined && { 'x-shopify-triggered-at': new Date(triggeredAt).toISOString() }),
      }
      const answer = await server.inject({ method: 'POST', url: '/webhooks/store-sales', headers, payload })
      return answer.statusCode
    },
    /** Passes days, one at a time. */
    async days(count: number): Promise<void> {
      for (let day = 0; day < count; day += 1) {
        clock.pass(DAY)
        await work()
      }
    },
    /** Why orders were rejected, in their order. */
    rejections: async () =>
      (await rowsOf(platform, 'sales')).flatMap(({ rejection_reason }) => rejection_reason ?? []),
    /** Kinds of open flags. */
    flags: async () =>
      [...new Set((await rowsOf(platform, 'flags', { status: 'open' })).map(({ kind }) => kind))].sort(),
    async close(): Promise<void> {
      await server.close()
      await clicks.idle()
      await market.close()
    },
  }
}
