import type { Tx } from '../platform/database.ts'
import { firstIdAt } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { raiseFlag } from './flags.service.ts'
import { askedForCommission, isBurstOfRejections, type StoreTally } from './sale-pattern.rule.ts'
import {
  countSelfPurchases,
  countStoreOrders,
  DAY_MS,
  type NewSale,
  salesBetween,
} from './sale-patterns.store.ts'
import { unusualSubjects } from './since-resolved.service.ts'
import { lockWatermark, moveWatermark } from './watermarks.store.ts'

const WATERMARK = 'moderation.sales'
const SALES_AT_ONCE = 2000
const HOUR_MS = 3_600_000
/** How long a sale may take from its id to its commit without being overlooked, ms. */
export const SALES_LAG_MS = 30_000

/**
 * Looks at the sales that have come since the last time: creators who buy through their own links, and stores whose orders are
 * rejected in numbers. Answers whether more wait.
 */
export function watchSales(platform: Platform): Promise<boolean> {
  const { config, clock } = platform
  const now = clock.now()
  return platform.database.transaction(async (tx) => {
    const longest = Math.max(
      config.FLAG_SELF_PURCHASES_DAYS * DAY_MS,
      config.FLAG_REJECTED_SALES_HOURS * HOUR_MS,
    )
    const from = await lockWatermark(tx, WATERMARK, firstIdAt(now - longest))
    const to = firstIdAt(now - SALES_LAG_MS)
    if (to <= from) return false
    const sales = await salesBetween(tx, from, to, SALES_AT_ONCE)
    const rejected = sales.filter((sale) => sale.acceptance_status === 'rejected')
    await flagSelfPurchases(platform, tx, rejected, now)
    await flagBursts(platform, tx, rejected, now)
    const more = sales.length === SALES_AT_ONCE
    await moveWatermark(tx, WATERMARK, (more && sales.at(-1)?.id) || to)
    return more
  })
}

async function flagSelfPurchases(platform: Platform, tx: Tx, sales: NewSale[], now: number): Promise<void> {
  const { FLAG_SELF_PURCHASES: limit, FLAG_SELF_PURCHASES_DAYS: days } = platform.config
  const own = sales.filter((sale) => sale.rejection_reason === 'self_purchase')
  const unusual = await unusualSubjects(
    tx,
    {
      kind: 'self_purchase',
      windowStart: now - days * DAY_MS,
      tally: (creatorIds, since) => countSelfPurchases(tx, creatorIds, since),
      isUnusual: (count) => count >= limit,
    },
    [...new Set(own.flatMap((sale) => sale.creator_id ?? []))],
  )
  for (const [creatorId, count] of unusual) {
    await raiseFlag(platform, tx, {
      kind: 'self_purchase',
      subjectType: 'user',
      subjectId: creatorId,
      summary: `A creator ordered through the own link: ${count} times in ${days} days.`,
      evidence: {
        self_purchases: count,
        within_days: days,
        latest_sale_ids: own
          .filter((sale) => sale.creator_id === creatorId)
          .map((sale) => sale.id)
          .slice(-20),
      },
    })
  }
}

async function flagBursts(platform: Platform, tx: Tx, sales: NewSale[], now: number): Promise<void> {
  const { FLAG_REJECTED_SALES: rejections, FLAG_REJECTED_SALES_RATE: rate } = platform.config
  const hours = platform.config.FLAG_REJECTED_SALES_HOURS
  const merchantOf = new Map(
    sales.filter(askedForCommission).map((sale) => [sale.store_id, sale.merchant_id]),
  )
  const unusual = await unusualSubjects(
    tx,
    {
      kind: 'rejected_sales_burst',
      windowStart: now - hours * HOUR_MS,
      tally: (storeIds, since) => tallyStores(tx, storeIds, merchantOf, since),
      isUnusual: (tally) => isBurstOfRejections(tally, { rejections, rate }),
    },
    [...merchantOf.keys()],
  )
  for (const [storeId, { asked, rejected, reasons }] of unusual) {
    await raiseFlag(platform, tx, {
      kind: 'rejected_sales_burst',
      subjectType: 'store',
      subjectId: storeId,
      summary: `${rejected} of a store's ${asked} orders with a tracking reference were rejected within ${hours} hours.`,
      evidence: {
        merchant_id: merchantOf.get(storeId),
        orders: asked,
        rejected,
        reasons,
        within_hours: hours,
      },
    })
  }
}

interface ReasonedTally extends StoreTally {
  reasons: Record<string, number>
}

async function tallyStores(
  tx: Tx,
  storeIds: readonly string[],
  merchantOf: ReadonlyMap<string, string>,
  since: number,
): Promise<Map<string, ReasonedTally>> {
  const merchantIds = [...new Set(storeIds.flatMap((id) => merchantOf.get(id) ?? []))]
  const tallies = new Map<string, ReasonedTally>()
  for (const row of await countStoreOrders(tx, merchantIds, since)) {
    const { store_id: storeId, rejection_reason: reason, linked, orders } = row
    if (!storeIds.includes(storeId)) continue
    if (!askedForCommission({ rejection_reason: reason, link_id: linked === 1 ? storeId : null })) continue
    const tally = tallies.get(storeId) ?? { asked: 0, rejected: 0, reasons: {} }
    tally.asked += orders
    if (reason !== null) {
      tally.rejected += orders
      tally.reasons[reason] = (tally.reasons[reason] ?? 0) + orders
    }
    tallies.set(storeId, tally)
  }
  return tallies
}
