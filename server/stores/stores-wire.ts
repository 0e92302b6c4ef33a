import type { Store } from '../../shared/schemas/stores.ts'
import { countUnreadableOrders } from '../inbox/set-aside.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Config } from '../platform/config.ts'
import type { Platform } from '../platform/platform.ts'
import { activityOf, NO_ACTIVITY } from './store-activity.service.ts'
import { type SilenceLimits, storeStatus } from './store-status.rule.ts'
import type { StoreRow } from './stores.store.ts'

/** What a store's owner enters in the store's admin. */
export function storeAddresses(publicBaseUrl: string) {
  const script_url = `${publicBaseUrl}/store.js`
  return {
    webhook_url: `${publicBaseUrl}/webhooks/store-sales`,
    script_url,
    script_tag: `<script src="${script_url}" async></script>`,
  }
}

export function silenceLimits(config: Config): SilenceLimits {
  return { days: config.FLAG_STORE_SILENT_DAYS, regularDays: config.FLAG_STORE_SILENT_REGULAR }
}

export async function wireStore(platform: Platform, row: StoreRow): Promise<Store> {
  const [wire] = await wireStores(platform, [row])
  if (!wire) throw new Error('one row gives one store')
  return wire
}

/** Stores with what arrived from them and what was refused. */
export async function wireStores(platform: Platform, rows: readonly StoreRow[]): Promise<Store[]> {
  const { config, database } = platform
  const now = platform.clock.now()
  const ids = rows.map(({ id }) => id)
  const unreadable = await countUnreadableOrders(database.reader, ids, now)
  const activity = await activityOf(database.reader, ids, now)
  const addresses = storeAddresses(platform.publicBaseUrl)
  return rows.map((row) => {
    const { lastEventAt, orderDays, tracked } = activity.get(row.id) ?? NO_ACTIVITY
    const { connected_at: connectedAt, last_refused_at: lastRefusedAt } = row
    const signs = { connectedAt, lastEventAt, lastRefusedAt, orderDays }
    return {
      id: row.id,
      platform: 'shopify',
      shop_domain: row.shop_domain,
      status: storeStatus(signs, now, silenceLimits(config)),
      ...addresses,
      last_event_at: lastEventAt === null ? null : isoTime(lastEventAt),
      last_refused_at: lastRefusedAt === null ? null : isoTime(lastRefusedAt),
      unreadable_7d: unreadable.get(row.id) ?? 0,
      tracked_30d: tracked,
      created_at: isoTime(row.created_at),
    }
  })
}
