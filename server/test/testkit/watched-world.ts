import { v7 } from 'uuid'
import { rollUpClicks } from '../../clicks/clicks.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import type { Clock } from '../../platform/clock.ts'
import { type RecordedSale, recordOrders } from '../../sales/sales.service.ts'
import { readOrderFacts } from '../../shopify/order-facts.ts'
import { watchMarketplace } from '../../watches/watches.service.ts'
import type { TestDialect } from './databases.ts'
import { openMarketplace } from './marketplace.ts'
import { type OrderChanges, orderBody } from './orders.ts'
import { rowsOf } from './rows.ts'
import { MINUTE } from './testbed.ts'

export type WatchedWorld = Awaited<ReturnType<typeof openWatchedWorld>>

/** A merchant with a store, a creator with a link, and what the watches make of what happens between them. */
export async function openWatchedWorld(dialect: TestDialect, settings: Record<string, string> = {}) {
  // Ids of the test's own time, since the watches go by the time in them.
  const idsOf = (clock: Clock) => ({ next: () => v7({ msecs: clock.now() }) })
  const market = await openMarketplace(dialect, settings, idsOf)
  const { platform, clock } = market
  const shop = await market.addShop()
  const { storeId } = shop
  const merchant: Actor = shop.actor
  const creator = await market.addCreator('creator', false)
  const link = await market.addLink(shop, creator)
  return {
    ...{ platform, clock, merchant, creator, link, storeId },
    /** Tracked visits of the link, now; returns their ids. */
    visit: (times: number) => Promise.all(Array.from({ length: times }, () => market.click(link))),
    /** One order of now. */
    async order(changes: Partial<OrderChanges> = {}) {
      const body = orderBody({ createdAt: clock.now(), price: 100_000, ...changes })
      const order = readOrderFacts(body, platform.config.TRACKING_PARAMETER, platform.config.FEE_TITLES)
      const report = { eventId: platform.ids.next(), storeId, merchantId: merchant.userId, order }
      const [sale] = await platform.database.transaction((tx) => recordOrders(platform, tx, [report]))
      return sale as RecordedSale
    },
    /** Passes a minute, then has the watches look at all that there is. */
    async watch() {
      clock.pass(MINUTE)
      await rollUpClicks(platform)
      while ((await watchMarketplace(platform)) > 0);
    },
    /** Open flags of a kind, as the queue holds them. */
    async flags(kind: string) {
      const rows = await rowsOf(platform, 'flags', { kind, status: 'open' })
      return rows.map((row) => ({ ...row, evidence: JSON.parse(row.evidence) }))
    },
    close: () => market.close(),
  }
}
