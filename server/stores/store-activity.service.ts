import { DAY_MS } from '../../shared/durations.ts'
import { ORDER_SOURCES, type OrderSource, type Store } from '../../shared/schemas/stores.ts'
import { countUnreadableOrders, lastUnreadable } from '../inbox/set-aside.service.ts'
import { longestWindows } from '../offers/offers.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { XML_BODY } from '../shopify/order-facts.ts'
import { REGULAR_SPAN_DAYS, type SourceCounts, storeStatus } from './store-status.rule.ts'
import {
  addToStoreDays,
  daysOfStores,
  type StoreDayRow,
  type StoreRow,
  storesActiveSince,
} from './stores.store.ts'

/** The script's own `data-days`. */
const SCRIPT_DAYS = 30
/** The days of `tracked_30d`. */
const TRACKED_DAYS = 30

/** A time (epoch ms) in whole days since 1970, UTC. */
export function dayOf(time: number): number {
  return Math.floor(time / DAY_MS)
}

/** A signed event that was applied. */
export interface AppliedEvent {
  storeId: string
  /** Epoch ms. */
  receivedAt: number
  /** Whether it reports a paid order. */
  isPaid: boolean
  /** Of an order that was decided for the first time and is no test; otherwise `null`. */
  source: OrderSource | null
}

/** Counts applied events for their stores, with one statement for the batch. */
export async function recordActivity({ clock }: Platform, tx: Tx, events: readonly AppliedEvent[]) {
  const day = dayOf(clock.now())
  const rows = new Map<string, StoreDayRow>()
  for (const { storeId, receivedAt, isPaid, source } of events) {
    const counts = { ...noOrders(), paid_events: 0, other_events: 0 }
    const row = rows.get(storeId) ?? { store_id: storeId, day, ...counts, last_event_at: receivedAt }
    rows.set(storeId, row)
    row[isPaid ? 'paid_events' : 'other_events'] += 1
    row.last_event_at = Math.max(row.last_event_at, receivedAt)
    if (source !== null) row[source] += 1
  }
  // In one order, so that two workers cannot wait for each other.
  const inOrder = [...rows.values()].sort((one, other) => (one.store_id < other.store_id ? -1 : 1))
  await addToStoreDays(tx, inOrder)
}

/** What each of these stores has sent; a store without any activity has zeros. */
export async function activityOf(db: Queries | Tx, storeIds: readonly string[], now: number) {
  const since = dayOf(now) - TRACKED_DAYS + 1
  const days = Map.groupBy(await daysOfStores(db, storeIds, since), (row) => row.store_id)
  return new Map(storeIds.map((id) => [id, summarize(days.get(id) ?? [], since)]))
}

function summarize(days: readonly StoreDayRow[], since: number) {
  const last = days.at(-1)
  const regularFrom = (last?.day ?? 0) - REGULAR_SPAN_DAYS
  const hasOrders = (row: StoreDayRow) => ORDER_SOURCES.some((source) => row[source] > 0)
  return {
    /** Epoch ms. */
    lastEventAt: last?.last_event_at ?? null,
    /** Days with orders, of the 28 up to the last event. */
    orderDays: days.filter((row) => row.day > regularFrom && hasOrders(row)).length,
    tracked: sumOf(days.filter(({ day }) => day >= since)),
    /** Whether all events since then are of other topics than paid orders. */
    onlyOtherTopics:
      days.some((row) => row.day >= since && row.other_events > 0) &&
      !days.some((row) => row.day >= since && (row.paid_events > 0 || hasOrders(row))),
  }
}

/**
 * Stores in use that sent something from `activeFrom` on, by id after the id `after`, with their days from `fromDay` on and the 28 days
 * up to their last event. Days, as `dayOf` counts them.
 */
export async function recentlyActive(
  db: Queries,
  { activeFrom, fromDay }: { activeFrom: number; fromDay: number },
  page: { after: string; limit: number },
) {
  const stores = await storesActiveSince(db, activeFrom, page.after, page.limit)
  const ids = stores.map(({ id }) => id)
  const rows = Map.groupBy(await daysOfStores(db, ids, fromDay), (row) => row.store_id)
  return stores.map((store) => {
    const days = rows.get(store.id) ?? []
    return { store, days, activity: summarize(days, fromDay) }
  })
}

/** A merchant's store with what arrived from it and what was refused. */
export async function showStore(platform: Platform, row: StoreRow): Promise<Store> {
  const [shown] = await showStores(platform, [row])
  return shown as Store
}

/** As `showStore`, for several stores. */
export async function showStores(
  { config, publicBaseUrl, clock, database }: Platform,
  rows: readonly StoreRow[],
  db: Queries = database.reader,
): Promise<Store[]> {
  const now = clock.now()
  const ids = rows.map(({ id }) => id)
  const unreadable = await countUnreadableOrders(db, ids, now)
  const activity = await activityOf(db, ids, now)
  const windows = await longestWindows(db, [...new Set(rows.map((row) => row.merchant_id))])
  const xml = await lastUnreadable(db, ids, XML_BODY)
  const script_url = `${publicBaseUrl}/store.js`
  return rows.map((row): Store => {
    const { lastEventAt, orderDays, tracked, onlyOtherTopics } = activity.get(row.id) ?? summarize([], 0)
    const { connected_at: connectedAt, last_refused_at: lastRefusedAt, last_refusal: reason } = row
    const lastXmlAt = xml.get(row.id) ?? null
    const signs = { connectedAt, lastEventAt, lastRefusedAt, orderDays, onlyOtherTopics, lastXmlAt }
    return {
      id: row.id,
      platform: 'shopify',
      shop_domain: row.shop_domain,
      status: storeStatus(signs, now, config),
      webhook_url: `${publicBaseUrl}/webhooks/store-sales`,
      script_url,
      script_tag: scriptTag(script_url, windows.get(row.merchant_id) ?? 0),
      last_event_at: isoTime(lastEventAt),
      last_refused_at: isoTime(lastRefusedAt),
      last_refusal: lastRefusedAt === null || reason === null ? null : { at: isoTime(lastRefusedAt), reason },
      unreadable_7d: unreadable.get(row.id) ?? 0,
      tracked_30d: tracked,
      created_at: isoTime(row.created_at),
    }
  })
}

/** References must stay in the browser as long as an order can earn by them. */
function scriptTag(url: string, days: number): string {
  return `<script src="${url}"${days > SCRIPT_DAYS ? ` data-days="${days}"` : ''} async></script>`
}

/** The orders of these days, by source. */
export function sumOf(days: readonly StoreDayRow[]): SourceCounts {
  const sum = noOrders()
  for (const row of days) for (const source of ORDER_SOURCES) sum[source] += row[source]
  return sum
}

function noOrders(): SourceCounts {
  return { cart: 0, landing: 0, line: 0, coupon: 0, none: 0 }
}
