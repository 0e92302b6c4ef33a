import { originsOf } from '../inbox/operator-deliveries.service.ts'
import type { Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import { hostsOfStores, insertHosts, storesOf } from './stores.store.ts'

/** A store's orders show a shop's own domain, perhaps one of another country, and a checkout's: rarely more. */
const MAX_HOSTS_PER_STORE = 20
const MAX_STORES = 100

/** A validly signed order of a store, with the host names that it shows. */
export interface HostReport {
  eventId: string
  storeId: string
  hosts: readonly string[]
}

/** Keeps the host names that signed orders show, up to 20 for each store. Orders that an operator sent tell nothing about the store. */
export async function keepShownHosts(
  platform: Platform,
  tx: Tx,
  reports: readonly HostReport[],
): Promise<void> {
  const showing = reports.filter(({ hosts }) => hosts.length > 0)
  if (showing.length === 0) return
  const storeIds = [...new Set(showing.map(({ storeId }) => storeId))]
  const known = new Map(storeIds.map((id) => [id, new Set<string>()]))
  for (const row of await hostsOfStores(tx, storeIds)) known.get(row.store_id)?.add(row.host)
  const isNew = ({ storeId, hosts }: HostReport) => hosts.some((host) => !known.get(storeId)?.has(host))
  const fresh = showing.filter(isNew)
  if (fresh.length === 0) return
  const origins = await originsOf(
    tx,
    fresh.map(({ eventId }) => ({ id: eventId, source: 'store' })),
  )
  const rows: Parameters<typeof insertHosts>[1][number][] = []
  for (const { eventId, storeId, hosts } of fresh) {
    const kept = known.get(storeId)
    if (!kept || origins.get(eventId) !== 'store') continue
    for (const host of hosts) {
      if (kept.has(host) || kept.size >= MAX_HOSTS_PER_STORE) continue
      kept.add(host)
      rows.push({ store_id: storeId, host, created_at: platform.clock.now() })
    }
  }
  await insertHosts(tx, rows)
}

/** The shop domains of a merchant's stores in use, and the host names that their signed orders have shown. */
export async function hostsOfMerchant(
  tx: Tx,
  merchantId: string,
): Promise<{ shopDomains: string[]; shown: string[] }> {
  const stores = await storesOf(tx, merchantId, null, MAX_STORES)
  const hosts = await hostsOfStores(
    tx,
    stores.map(({ id }) => id),
  )
  return { shopDomains: stores.map((store) => store.shop_domain), shown: hosts.map(({ host }) => host) }
}
