import { subscriptionsOf } from '../notifications/channels/webhooks/endpoints.service.ts'
import { type NewEvent, publishEvents } from '../notifications/outbox.service.ts'
import type { Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { wireSale } from './sale-wire.ts'
import type { SaleWithSlug } from './sales.store.ts'

/**
 * Publishes decided sales to their merchants and creators, for the accounts with an endpoint that receives such events: sales come in
 * large batches.
 */
export async function publishSales(
  platform: Platform,
  tx: Tx,
  sales: readonly SaleWithSlug[],
): Promise<void> {
  const accounts = sales.flatMap(({ merchant_id, creator_id }) => [merchant_id, creator_id ?? []].flat())
  const subscribed = await subscriptionsOf(tx, accounts)
  if (subscribed.size === 0) return
  const events = sales.flatMap((sale) => {
    const type = sale.acceptance_status === 'accepted' ? 'sale.accepted' : 'sale.rejected'
    const parties = [['merchant', sale.merchant_id] as const, ['creator', sale.creator_id] as const]
    return parties.flatMap(([role, accountId]): NewEvent[] =>
      accountId !== null && subscribed.get(accountId)?.has(type)
        ? [{ type, accountId, subjectId: sale.id, data: wireSale(sale, role) }]
        : [],
    )
  })
  await publishEvents(platform, tx, events)
}
