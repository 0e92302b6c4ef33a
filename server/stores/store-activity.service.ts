import { DAY_MS } from '../../shared/durations.ts'
import { ORDER_SOURCES, type OrderSource, type Store } from '../../shared/schemas/stores.ts'
import { countUnreadableOrders } from '../inbox/set-aside.service.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { REGULAR_SPAN_DAYS, type SourceCounts, silenceLimits } from './store-status.rule.ts'
import {
  addToStoreDays,
  daysOfStores,
  type StoreDayRow,
  type StoreRow,
  storesActiveSince,
} from './stores.store.ts'
import { wireStore } from './stores-wire.ts'

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
  /** Of an order that was decided for the first time and is no test; otherwise `null`. */
  source: OrderSource | null
}

/** Counts applied events for their stores, with one statement for the batch. */
export async function recordActivity(
  platform: Platform,
  tx: Tx,
  events: readonly AppliedEvent[],
): Promise<void> {
  const day = dayOf(platform.clock.now())
  const rows = new Map<string, StoreDayRow>()
  for (const { storeId, receivedAt, source } of events) {
    const row = rows.get(storeId) ?? { store_id: storeId, day, ...noOrders(), last_event_at: receivedAt }
    rows.set(storeId, row)
    row.last_event_at = Math.max(row.last_event_at, receivedAt)
    if (source !== null) row[source] += 1
  }
  // In one order, so that two workers cannot wait for each other.
  await addToStoreDays(
    tx,
    [...rows.values()].sort((one, other) => (one.store_id < other.store_id ? -1 : 1)),
  )
}

/** What a store has sent. */
export interface StoreActivity {
  /** Epoch ms. */
  lastEventAt: number | null
  /** Days with orders, of the 28 up to the last event. */
  orderDays: number
  tracked: SourceCounts
}

const NO_ACTIVITY: StoreActivity = { lastEventAt: null, orderDays: 0, tracked: noOrders() }

/** The activity of each of these stores; a store without any has zeros. */
export async function activityOf(
  db: Queries | Tx,
  storeIds: readonly string[],
  now: number,
): Promise<Map<string, StoreActivity>> {
  const since = dayOf(now) - TRACKED_DAYS + 1
  const days = Map.groupBy(await daysOfStores(db, storeIds, since), (row) => row.store_id)
  return new Map(storeIds.map((id) => [id, summarize(days.get(id) ?? [], since)]))
}

function summarize(days: readonly StoreDayRow[], since: number): StoreActivity {
  const last = days.at(-1)
  if (!last) return NO_ACTIVITY
  const regular = days.filter(
    (row) => row.day > last.day - REGULAR_SPAN_DAYS && ORDER_SOURCES.some((source) => row[source] > 0),
  )
  return {
    lastEventAt: last.last_event_at,
    orderDays: regular.length,
    tracked: sumOf(days.filter(({ day }) => day >= since)),
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
): Promise<{ store: StoreRow; days: StoreDayRow[]; activity: StoreActivity }[]> {
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
  if (!shown) throw new Error('one row gives one store')
  return shown
}

/** As `showStore`, for several stores. */
export async function showStores(
  platform: Platform,
  rows: readonly StoreRow[],
  db: Queries = platform.database.reader,
): Promise<Store[]> {
  const { config, publicBaseUrl } = platform
  const now = platform.clock.now()
  const ids = rows.map(({ id }) => id)
  const unreadable = await countUnreadableOrders(db, ids, now)
  const activity = await activityOf(db, ids, now)
  return rows.map((row) =>
    wireStore(row, {
      ...(activity.get(row.id) ?? NO_ACTIVITY),
      unreadable: unreadable.get(row.id) ?? 0,
      limits: silenceLimits(config),
      publicBaseUrl,
      now,
    }),
  )
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
