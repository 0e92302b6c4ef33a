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
  const accounts = sales.flatMap(({ merchant_id, creator_id }) => [
    merchant_id,
    ...(creator_id ? [creator_id] : []),
  ])
  const subscribed = await subscriptionsOf(tx, accounts)
  if (subscribed.size === 0) return
  const events = sales.flatMap((sale): NewEvent[] => {
    const type = sale.acceptance_status === 'accepted' ? 'sale.accepted' : 'sale.rejected'
    const isSent = (accountId: string | null) =>
      accountId !== null && (subscribed.get(accountId)?.has(type) ?? false)
    const { id: subjectId, merchant_id, creator_id } = sale
    return [
      ...(isSent(merchant_id)
        ? [{ type, accountId: merchant_id, subjectId, data: wireSale(sale, 'merchant') } as const]
        : []),
      ...(creator_id !== null && isSent(creator_id)
        ? [{ type, accountId: creator_id, subjectId, data: wireSale(sale, 'creator') } as const]
        : []),
    ]
  })
  await publishEvents(platform, tx, events)
}
