import type { Store } from '../../shared/schemas/stores.ts'
import { isoTime } from '../platform/clock.ts'
import { type SilenceLimits, type SourceCounts, storeStatus } from './store-status.rule.ts'
import type { StoreRow } from './stores.store.ts'

/** What a store's owner enters in the store's admin. */
function addressesAt(publicBaseUrl: string) {
  const script_url = `${publicBaseUrl}/store.js`
  return {
    webhook_url: `${publicBaseUrl}/webhooks/store-sales`,
    script_url,
    script_tag: `<script src="${script_url}" async></script>`,
  }
}

/** What is shown of a store besides its row. Times in epoch ms. */
export interface StoreSurroundings {
  lastEventAt: number | null
  /** Days with orders, of the 28 up to the last event. */
  orderDays: number
  tracked: SourceCounts
  /** Orders of the last 7 days. */
  unreadable: number
  limits: SilenceLimits
  publicBaseUrl: string
  now: number
}

export function wireStore(row: StoreRow, around: StoreSurroundings): Store {
  const { lastEventAt, orderDays } = around
  const { connected_at: connectedAt, last_refused_at: lastRefusedAt } = row
  const signs = { connectedAt, lastEventAt, lastRefusedAt, orderDays }
  return {
    id: row.id,
    platform: 'shopify',
    shop_domain: row.shop_domain,
    status: storeStatus(signs, around.now, around.limits),
    ...addressesAt(around.publicBaseUrl),
    last_event_at: lastEventAt === null ? null : isoTime(lastEventAt),
    last_refused_at: lastRefusedAt === null ? null : isoTime(lastRefusedAt),
    last_refusal:
      lastRefusedAt === null || row.last_refusal === null
        ? null
        : { at: isoTime(lastRefusedAt), reason: row.last_refusal },
    unreadable_7d: around.unreadable,
    tracked_30d: around.tracked,
    created_at: isoTime(row.created_at),
  }
}
