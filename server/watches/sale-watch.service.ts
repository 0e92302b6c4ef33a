import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import { raiseFlag, unusualSubjects } from '../flags/flags.service.ts'
import type { Tx } from '../platform/database/database.ts'
import { lockWatermark, setWatermark } from '../platform/database/watermarks.ts'
import { firstIdAt } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { readReceipt } from '../sales/accept-sale.rule.ts'
import {
  claimsCommission,
  isBurstOfRejections,
  missesCoupon,
  rejectsMoreThanBefore,
  type StoreTally,
} from './patterns.rule.ts'
import {
  countOrdersByClick,
  countOwnOrders,
  countStoreOrders,
  countStoreOrdersBetween,
  decidedAgainBetween,
  type NewSale,
  type OwnOrders,
  offersOfPauses,
  receiptsInPauses,
  type StoreOrders,
  salesBetween,
  tallyCoupons,
} from './watches.store.ts'

const WATERMARK = 'watches.sales'
export const SALES_PER_RUN = 2000
/** The days that the last hours are compared with, and in which orders in short pauses are counted. */
const PAST_DAYS = 30
/** A sale commits within this time after its id is made, ms. */
export const SALES_LAG_MS = 30_000

/**
 * Checks new decisions on sales: creators who buy through their own links, stores with many rejected orders, clicks that many orders
 * name, coupon codes that buyers seem to know from elsewhere, and orders dated into short pauses of offers. Returns whether there are more.
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
    const recorded = await salesBetween(tx, from, to, SALES_PER_RUN)
    const more = recorded.length === SALES_PER_RUN
    const next = (more && recorded.at(-1)?.id) || to
    const sales = [...recorded, ...(await decidedAgainBetween(tx, from, next))]
    const rejected = sales.filter((sale) => sale.acceptance_status === 'rejected')
    await flagSelfPurchases(platform, tx, sales, now)
    await flagBursts(platform, tx, rejected, now)
    await flagReusedClicks(platform, tx, sales)
    await flagCouponLeaks(platform, tx, sales, now)
    await flagPausedOrders(platform, tx, rejected.filter(claimsCommission), now)
    await setWatermark(tx, WATERMARK, next)
    return more
  })
}

/** Sales that the evidence lists. */
const MAX_SALES_LISTED = 20

async function flagSelfPurchases(platform: Platform, tx: Tx, sales: NewSale[], now: number): Promise<void> {
  const { FLAG_SELF_PURCHASES: limit, FLAG_SELF_PURCHASES_DAYS: days } = platform.config
  const own = sales.filter(
    (sale) =>
      sale.rejection_reason === 'self_purchase' ||
      (sale.rejection_reason === null && sale.buyer_name_matches === 1),
  )
  const unusual = await unusualSubjects(
    tx,
    {
      kind: 'self_purchase',
      windowStart: now - days * DAY_MS,
      tally: (creatorIds, since) => countOwnOrders(tx, creatorIds, since),
      isUnusual: (count) => count.self_purchases + count.name_matches >= limit,
    },
    [...new Set(own.flatMap((sale) => sale.creator_id ?? []))],
  )
  for (const [creatorId, counts] of unusual) {
    await raiseFlag(platform, tx, {
      kind: 'self_purchase',
      subjectType: 'user',
      subjectId: creatorId,
      summary: ownOrdersSummary(counts, days),
      evidence: {
        ...counts,
        within_days: days,
        latest_sale_ids: own
          .filter((sale) => sale.creator_id === creatorId)
          .map((sale) => sale.id)
          .slice(-MAX_SALES_LISTED),
      },
    })
  }
}

function ownOrdersSummary({ self_purchases, name_matches }: OwnOrders, days: number): string {
  const times = (count: number) => (count === 1 ? 'once' : `${count} times`)
  const own = `Creator bought through their own link ${times(self_purchases)} in ${days} days.`
  const named = `A buyer with the name of the creator's payout account ordered through their link ${times(name_matches)} in ${days} days.`
  return [...(self_purchases > 0 ? [own] : []), ...(name_matches > 0 ? [named] : [])].join(' ')
}

/** Clicks of a link that the evidence lists. */
const MAX_CLICKS_LISTED = 20

async function flagReusedClicks(platform: Platform, tx: Tx, sales: NewSale[]): Promise<void> {
  const { FLAG_ORDERS_PER_CLICK: limit } = platform.config
  const accepted = sales.filter((sale) => sale.acceptance_status === 'accepted')
  const clickIds = [...new Set(accepted.flatMap((sale) => sale.click_id ?? []))]
  const tally = async (linkIds: readonly string[], since: number) => {
    const counts = await countOrdersByClick(tx, linkIds, clickIds, since)
    return Map.groupBy(counts, (count) => count.link_id)
  }
  const reused = await unusualSubjects(
    tx,
    {
      kind: 'click_reused',
      windowStart: 0,
      tally,
      isUnusual: (counts) => counts.some(({ orders }) => orders > limit),
    },
    [...new Set(accepted.flatMap((sale) => sale.link_id ?? []))],
  )
  for (const [linkId, counts] of reused) {
    const most = counts.filter(({ orders }) => orders > limit).sort((a, b) => b.orders - a.orders)
    await raiseFlag(platform, tx, {
      kind: 'click_reused',
      subjectType: 'affiliate_link',
      subjectId: linkId,
      summary: `${most[0]?.orders} accepted orders came from one click on a link.`,
      evidence: {
        limit,
        orders_by_click: Object.fromEntries(
          most.slice(0, MAX_CLICKS_LISTED).map(({ click_id, orders }) => [click_id, orders]),
        ),
        merchant_id: accepted.find((sale) => sale.link_id === linkId)?.merchant_id,
        creator_id: accepted.find((sale) => sale.link_id === linkId)?.creator_id,
      },
    })
  }
}

/** A code that many orders use while no one clicks on its creator's links has probably been published by someone else. */
async function flagCouponLeaks(platform: Platform, tx: Tx, sales: NewSale[], now: number): Promise<void> {
  const { FLAG_COUPON_LEAK: least, FLAG_COUPON_LEAK_DAYS: days } = platform.config
  if (least === 0) return
  const withCode = sales.filter((sale) => sale.acceptance_status === 'accepted' && sale.coupon_code !== null)
  const leaked = await unusualSubjects(
    tx,
    {
      kind: 'coupon_leak',
      windowStart: now - days * DAY_MS,
      // Clicks are totals by day: after a resolved flag, counting starts with the next whole day.
      tally: (linkIds, since) => tallyCoupons(tx, linkIds, Math.ceil(since / DAY_MS)),
      isUnusual: ({ orders, clicks }) => orders >= least && clicks === 0,
    },
    [...new Set(withCode.flatMap((sale) => sale.link_id ?? []))],
  )
  for (const [linkId, { orders, creator_id, merchant_id }] of leaked) {
    await raiseFlag(platform, tx, {
      kind: 'coupon_leak',
      subjectType: 'affiliate_link',
      subjectId: linkId,
      summary: `${orders} orders used a link's coupon code within ${days} days without any click on its creator's links.`,
      evidence: {
        orders,
        within_days: days,
        coupon_codes: [
          ...new Set(withCode.filter((sale) => sale.link_id === linkId).map((sale) => sale.coupon_code)),
        ],
        creator_id,
        merchant_id,
      },
    })
  }
}

/** Who dates orders into a pause of a moment owes no commission for their coupon codes. */
async function flagPausedOrders(platform: Platform, tx: Tx, sales: NewSale[], now: number): Promise<void> {
  const { FLAG_PAUSED_ORDERS: least } = platform.config
  if (least === 0) return
  const merchantIds = [...new Set(sales.map((sale) => sale.merchant_id))]
  const saleIds = sales.map((sale) => sale.id)
  const offers = new Map(
    (await offersOfPauses(tx, merchantIds, saleIds)).map((offer) => [offer.offer_id, offer]),
  )
  const tally = async (offerIds: readonly string[], since: number) => {
    const tallies = new Map<string, string[]>()
    for (const offer of offerIds.flatMap((id) => offers.get(id) ?? [])) {
      const missing = [...(await receiptsInPauses(tx, offer, since))].flatMap(([id, receipt]) => {
        const facts = readReceipt(receipt)?.facts
        return facts && missesCoupon(facts, offer.offer_id) ? id : []
      })
      tallies.set(offer.offer_id, missing)
    }
    return tallies
  }
  const unusual = await unusualSubjects(
    tx,
    {
      kind: 'orders_in_pauses',
      windowStart: now - PAST_DAYS * DAY_MS,
      tally,
      isUnusual: (ids) => ids.length >= least,
    },
    [...offers.keys()],
  )
  for (const [offerId, ids] of unusual) {
    await raiseFlag(platform, tx, {
      kind: 'orders_in_pauses',
      subjectType: 'offer',
      subjectId: offerId,
      summary: `${ids.length} orders with an offer's coupon code were dated into pauses of at most an hour within ${PAST_DAYS} days.`,
      evidence: {
        merchant_id: offers.get(offerId)?.merchant_id,
        orders: ids.length,
        within_days: PAST_DAYS,
        latest_sale_ids: ids.slice(0, MAX_SALES_LISTED),
      },
    })
  }
}

async function flagBursts(platform: Platform, tx: Tx, sales: NewSale[], now: number): Promise<void> {
  const { FLAG_REJECTED_SALES: rejections, FLAG_REJECTED_SALES_RATE: rate } = platform.config
  const hours = platform.config.FLAG_REJECTED_SALES_HOURS
  const relative = {
    least: platform.config.FLAG_REJECTED_SALES_LEAST,
    times: platform.config.FLAG_REJECTED_SALES_TIMES,
  }
  const merchantOf = new Map(sales.filter(claimsCommission).map((sale) => [sale.store_id, sale.merchant_id]))
  const unusual = await unusualSubjects(
    tx,
    {
      kind: 'rejected_sales_burst',
      windowStart: now - hours * HOUR_MS,
      tally: (storeIds, since) => tallyWithPast(platform, tx, storeIds, merchantOf, since),
      isUnusual: (tally) =>
        isBurstOfRejections(tally, { rejections, rate }) ||
        (tally.past !== null && rejectsMoreThanBefore(tally, tally.past, relative)),
    },
    [...merchantOf.keys()],
  )
  for (const [storeId, { claims, rejected, reasons, past }] of unusual) {
    await raiseFlag(platform, tx, {
      kind: 'rejected_sales_burst',
      subjectType: 'store',
      subjectId: storeId,
      summary: `${rejected} of a store's ${claims} orders with a tracking reference were rejected within ${hours} hours.`,
      evidence: {
        merchant_id: merchantOf.get(storeId),
        orders: claims,
        rejected,
        reasons,
        within_hours: hours,
        ...(past && { orders_before: past.claims, rejected_before: past.rejected }),
      },
    })
  }
}

interface ReasonedTally extends StoreTally {
  reasons: Record<string, number>
}

interface ComparedTally extends ReasonedTally {
  /** Of the days before; `null` with too few rejections for a comparison. */
  past: StoreTally | null
}

async function tallyWithPast(
  { config }: Platform,
  tx: Tx,
  storeIds: readonly string[],
  merchantOf: ReadonlyMap<string, string>,
  since: number,
): Promise<Map<string, ComparedTally>> {
  const merchantsOf = (ids: readonly string[]) => [...new Set(ids.flatMap((id) => merchantOf.get(id) ?? []))]
  const tallies = tallyStores(storeIds, await countStoreOrders(tx, merchantsOf(storeIds), since))
  const least = config.FLAG_REJECTED_SALES_LEAST
  const compared = [...tallies].flatMap(([id, { rejected }]) => (least > 0 && rejected >= least ? [id] : []))
  const from = since - PAST_DAYS * DAY_MS
  const past = tallyStores(compared, await countStoreOrdersBetween(tx, merchantsOf(compared), from, since))
  return new Map([...tallies].map(([id, tally]) => [id, { ...tally, past: past.get(id) ?? null }]))
}

function tallyStores(storeIds: readonly string[], rows: readonly StoreOrders[]): Map<string, ReasonedTally> {
  const tallies = new Map<string, ReasonedTally>()
  for (const { store_id: storeId, rejection_reason: reason, linked, orders } of rows) {
    if (!storeIds.includes(storeId)) continue
    if (!claimsCommission({ rejection_reason: reason, link_id: linked === 1 ? storeId : null })) continue
    const tally = tallies.get(storeId) ?? { claims: 0, rejected: 0, reasons: {} }
    tally.claims += orders
    if (reason !== null) {
      tally.rejected += orders
      tally.reasons[reason] = (tally.reasons[reason] ?? 0) + orders
    }
    tallies.set(storeId, tally)
  }
  return tallies
}
