import { createClickRecorder, rollUpClicks } from '../../clicks/clicks.service.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import type { Platform } from '../../platform/platform.ts'
import { watchMarketplace } from '../../watches/watches.service.ts'
import { simulatedIds } from '../simulation/simulated-ids.ts'
import type { TestDialect } from '../testkit/databases.ts'
import { accessOf } from '../testkit/listings.ts'
import { type Marketplace, openMarketplace, type Shop } from '../testkit/marketplace.ts'
import { type OrderChanges, orderBody, orderHeaders } from '../testkit/orders.ts'
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
  triggeredAt?: number
  /** What it is signed with; the store's own secret unless given. */
  secret?: string
}

/** One shop, one creator with a link, and the service as the outside sees it: the redirect and the signed webhook. */
export interface AdversaryWorld {
  market: Marketplace
  platform: Platform
  shop: Shop
  creator: Actor
  link: LinkRecord
  /** Follows the link as a visitor's browser would; answers the click's id in the address that it leads to, if there is one. */
  follow(headers?: Record<string, string>): Promise<string | null>
  /** As a tracked visitor; answers the click's id. */
  click(): Promise<string>
  follows(times: number): Promise<string[]>
  /** The store reports an order; answers the status. */
  report(order: Report): Promise<number>
  /** Applies what came in. */
  work(): Promise<void>
  /** Passes days, one at a time, with all that the service does by itself. */
  days(count: number): Promise<void>
  /** Why orders were rejected, in their order. */
  rejections(): Promise<string[]>
  /** Kinds of open flags. */
  flags(): Promise<string[]>
  close(): Promise<void>
}

export async function openAdversaryWorld(dialect: TestDialect): Promise<AdversaryWorld> {
  const market = await openMarketplace(dialect, SETTINGS, simulatedIds)
  const { platform, clock } = market
  const clicks = createClickRecorder(platform)
  const server = await serverOver(platform, { clicks })
  const shop = await market.addShop('Chenab Lawn')
  const creator = await market.addCreator('Sana')
  const link = await market.addLink(shop, creator)
  const { reader } = platform.database
  let orders = 0

  const world: AdversaryWorld = {
    market,
    platform,
    shop,
    creator,
    link,
    async follow(headers = {}) {
      const visitor = { 'user-agent': BROWSER, ...headers }
      const answer = await server.inject({ method: 'GET', url: `/go/${link.slug}`, headers: visitor })
      return new URL(String(answer.headers.location)).searchParams.get('aff_ref')
    },
    click: async () => (await world.follow()) ?? '',
    async follows(times) {
      const ids: string[] = []
      for (let time = 0; time < times; time += 1) {
        ids.push((await world.follow({ 'user-agent': `${BROWSER} ${time}` })) ?? '')
      }
      return ids
    },
    async report({ shop: reporting = shop, webhookId, triggeredAt, secret, ...changes }) {
      orders += 1
      const id = String(6_000_000 + orders)
      const body = orderBody({ createdAt: clock.now(), price: 100_000, id, ...changes })
      const access = { ...accessOf(reporting.actor), ...(secret !== undefined && { secret }) }
      const answer = await server.inject({
        method: 'POST',
        url: '/webhooks/store-sales',
        headers: {
          ...orderHeaders(access, webhookId ?? platform.ids.next(), body),
          ...(triggeredAt !== undefined && { 'x-shopify-triggered-at': new Date(triggeredAt).toISOString() }),
        },
        payload: body,
      })
      return answer.statusCode
    },
    work: () => market.drainUntilIdle(),
    async days(count) {
      for (let day = 0; day < count; day += 1) {
        clock.pass(DAY)
        await settle()
      }
    },
    async rejections() {
      const rows = await reader.selectFrom('sales').select('rejection_reason').orderBy('id').execute()
      return rows.flatMap((row) => row.rejection_reason ?? [])
    },
    async flags() {
      const rows = await reader.selectFrom('flags').select('kind').where('status', '=', 'open').execute()
      return [...new Set(rows.map((row) => row.kind))].sort()
    },
    async close() {
      await server.close()
      await clicks.idle()
      await market.close()
    },
  }

  async function settle(): Promise<void> {
    await clicks.idle()
    await market.drainUntilIdle()
    clock.pass(MINUTE)
    await rollUpClicks(platform)
    while ((await watchMarketplace(platform)) > 0);
  }
  return { ...world, work: settle }
}
