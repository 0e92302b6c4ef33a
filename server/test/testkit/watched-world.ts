import { v7 } from 'uuid'
import { createClickRecorder, rollUpClicks } from '../../clicks/clicks.service.ts'
import type { LinkRecord } from '../../links/links.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import type { Platform } from '../../platform/platform.ts'
import { type RecordedSale, recordOrders } from '../../sales/sales.service.ts'
import { readOrderFacts } from '../../shopify/order-facts.ts'
import { watchMarketplace } from '../../watches/watches.service.ts'
import type { TestDialect } from './databases.ts'
import { addLink, addLiveOffer, addMerchant } from './listings.ts'
import { type OrderChanges, orderBody } from './orders.ts'
import { addUser } from './people.ts'
import { type ManualClock, MINUTE, openTestbed } from './testbed.ts'

/** A merchant with a store, a creator with a link, and what the watches make of what happens between them. */
export interface WatchedWorld {
  platform: Platform
  clock: ManualClock
  merchant: Actor
  creator: Actor
  link: LinkRecord
  storeId: string
  /** Tracked visits of the link, now; answers their ids. */
  visit(times: number): Promise<string[]>
  /** One order of now. */
  order(changes?: Partial<OrderChanges>): Promise<RecordedSale>
  /** Passes a minute, then has the watches look at all that there is. */
  watch(): Promise<void>
  /** Open flags of a kind, as the queue holds them. */
  flags(kind: string): Promise<{ id: string; subject_id: string; evidence: Record<string, unknown> }[]>
  close(): Promise<void>
}

export async function openWatchedWorld(
  dialect: TestDialect,
  settings: Record<string, string> = {},
): Promise<WatchedWorld> {
  const bed = await openTestbed(dialect, settings)
  const { clock } = bed
  // Ids of the test's own time, since the watches go by the time in them.
  const platform: Platform = { ...bed.platform, ids: { next: () => v7({ msecs: clock.now() }) } }
  const { reader } = platform.database
  const merchant = await addMerchant(platform)
  const creator = await addUser(platform, 'creator')
  const offer = await addLiveOffer(platform, merchant)
  const link = await addLink(platform, merchant, creator, offer.id)
  const { id: storeId } = await reader.selectFrom('stores').select('id').executeTakeFirstOrThrow()
  const clicks = createClickRecorder(platform)
  return {
    platform,
    clock,
    merchant,
    creator,
    link,
    storeId,
    visit: (times) =>
      Promise.all(
        Array.from({ length: times }, async () => {
          const id = platform.ids.next()
          await clicks.record({ id, linkId: link.id, tracked: true, kind: 'visit', createdAt: clock.now() })
          return id
        }),
      ),
    async order(changes = {}) {
      const body = orderBody({ createdAt: clock.now(), price: 100_000, ...changes })
      const order = readOrderFacts(body, platform.config.TRACKING_PARAMETER)
      const report = { eventId: platform.ids.next(), storeId, merchantId: merchant.userId, order }
      const [sale] = await platform.database.transaction((tx) => recordOrders(platform, tx, [report]))
      return sale as RecordedSale
    },
    async watch() {
      clock.pass(MINUTE)
      await rollUpClicks(platform)
      while ((await watchMarketplace(platform)) > 0);
    },
    async flags(kind) {
      const rows = await reader
        .selectFrom('flags')
        .select(['id', 'subject_id', 'evidence'])
        .where('kind', '=', kind)
        .where('status', '=', 'open')
        .orderBy('id')
        .execute()
      return rows.map((row) => ({ ...row, evidence: JSON.parse(row.evidence) }))
    },
    async close() {
      await clicks.idle()
      await bed.close()
    },
  }
}
