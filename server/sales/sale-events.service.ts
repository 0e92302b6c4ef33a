import { formatMoney } from '../../shared/money.ts'
import { subIdsOf } from '../clicks/clicks.service.ts'
import { sendMail } from '../notifications/channels/mail/mail.service.ts'
import { subscriptionsOf } from '../notifications/channels/webhooks/endpoints.service.ts'
import { type NewEvent, publishEvents } from '../notifications/outbox.service.ts'
import { mailMode } from '../platform/config.ts'
import { afterCommit, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { wireSale } from './sale-wire.ts'
import { hasAcceptedSale, type SaleRow, type SaleWithSlug } from './sales.store.ts'

/**
 * Publishes decided sales to their merchants and creators, for the accounts with an endpoint that receives such events: sales come in
 * large batches.
 */
export async function publishSales(
  platform: Platform,
  tx: Tx,
  sales: readonly Omit<SaleWithSlug, 'sub_id'>[],
): Promise<void> {
  const accounts = sales.flatMap(({ merchant_id, creator_id }) => [merchant_id, creator_id ?? []].flat())
  const subscribed = await subscriptionsOf(tx, accounts)
  if (subscribed.size === 0) return
  const subIds = await subIdsOf(
    tx,
    sales.flatMap(({ click_id }) => click_id ?? []),
  )
  const events = sales.flatMap((row) => {
    const sale = { ...row, sub_id: subIds.get(row.click_id ?? '') ?? null }
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

/** Accounts that are known to have an accepted sale, so that the drain does not ask for each order. Emptied when it is full. */
const knownOf = new WeakMap<Platform, Set<string>>()
const ACCOUNTS_IN_MEMORY = 50_000

/** Writes a mail to each merchant and creator about their first accepted sale. Call it before the sales are written. */
export async function notifyFirstSales(platform: Platform, tx: Tx, sales: readonly SaleRow[]): Promise<void> {
  if (mailMode(platform.config) === 'off') return
  const known = knownOf.get(platform) ?? new Set<string>()
  knownOf.set(platform, known)
  const first = new Map<string, { sale: SaleRow; party: 'merchant_id' | 'creator_id' }>()
  for (const sale of sales) {
    if (sale.acceptance_status !== 'accepted') continue
    for (const party of ['merchant_id', 'creator_id'] as const) {
      const account = sale[party]
      if (account !== null && !known.has(account) && !first.has(account)) first.set(account, { sale, party })
    }
  }
  if (first.size === 0) return
  for (const [userId, { sale, party }] of first) {
    const scope = party === 'merchant_id' ? { merchantId: userId } : { creatorId: userId }
    if (await hasAcceptedSale(tx, scope)) continue
    await sendMail(platform, tx, {
      userId,
      kind: 'sale.accepted',
      facts: {
        commission: formatMoney(sale.commission),
        net_amount: formatMoney(sale.net_amount),
        order_name: sale.order_name,
      },
      about: 'first',
    })
  }
  afterCommit(tx, () => {
    if (known.size > ACCOUNTS_IN_MEMORY) known.clear()
    for (const userId of first.keys()) known.add(userId)
  })
}
