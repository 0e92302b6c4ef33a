import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import type { Tx } from '../platform/database/database.ts'
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
import { flagUnusual, withNewRows } from './patterns.service.ts'
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

export const SALES_PER_RUN = 2000
/** The days that the last hours are compared with, and in which orders in short pauses are counted. */
const PAST_DAYS = 30
/** A sale commits within this time after its id is made, ms. */
export const SALES_LAG_MS = 30_000
/** Sales, or clicks of a link, that the evidence lists. */
const MAX_LISTED = 20

/** Decisions on sales since the last run, by their outcome. */
interface NewDecisions {
  sales: readonly NewSale[]
  accepted: readonly NewSale[]
  rejected: readonly NewSale[]
  now: number
}

type SalePattern = (platform: Platform, tx: Tx, decisions: NewDecisions) => Promise<void>

/** What new decisions are checked for. */
const PATTERNS: readonly SalePattern[] = [
  flagSelfPurchases,
  flagBursts,
  flagReusedClicks,
  flagCouponLeaks,
  flagPausedOrders,
]

/** Checks new decisions on sales. Returns whether there are more. */
export function watchSales(platform: Platform): Promise<boolean> {
  const { FLAG_SELF_PURCHASES_DAYS: days, FLAG_REJECTED_SALES_HOURS: hours } = platform.config
  const now = platform.clock.now()
  const fresh = {
    watermark: 'watches.sales',
    first: firstIdAt(now - Math.max(days * DAY_MS, hours * HOUR_MS)),
    to: firstIdAt(now - SALES_LAG_MS),
    limit: SALES_PER_RUN,
  }
  return platform.database.transaction((tx) =>
    withNewRows(tx, { ...fresh, read: (range) => salesBetween(tx, range) }, async (recorded, range) => {
      const sales = [...recorded, ...(await decidedAgainBetween(tx, range))]
      const accepted = sales.filter((sale) => sale.acceptance_status === 'accepted')
      const rejected = sales.filter((sale) => sale.acceptance_status === 'rejected')
      for (const pattern of PATTERNS) await pattern(platform, tx, { sales, accepted, rejected, now })
    }),
  )
}

/** Creators who buy through their own links. */
function flagSelfPurchases(platform: Platform, tx: Tx, { sales, now }: NewDecisions): Promise<void> {
  const { FLAG_SELF_PURCHASES: limit, FLAG_SELF_PURCHASES_DAYS: days } = platform.config
  const own = sales.filter(
    (sale) =>
      sale.rejection_reason === 'self_purchase' ||
      (sale.rejection_reason === null && sale.buyer_name_matches === 1),
  )
  const creators = own.map((sale) => sale.creator_id)
  return flagUnusual(platform, tx, creators, {
    kind: 'self_purchase',
    subjectType: 'user',
    windowStart: now - days * DAY_MS,
    tally: (creatorIds, since) => countOwnOrders(tx, creatorIds, since),
    isUnusual: (count) => count.self_purchases + count.name_matches >= limit,
    flag(creatorId, counts) {
      const ids = own.filter((sale) => sale.creator_id === creatorId).map((sale) => sale.id)
      return {
        summary: ownOrdersSummary(counts, days),
        evidence: { ...counts, within_days: days, latest_sale_ids: ids.slice(-MAX_LISTED) },
      }
    },
  })
}

function ownOrdersSummary({ self_purchases, name_matches }: OwnOrders, days: number): string {
  const times = (count: number) => (count === 1 ? 'once' : `${count} times`)
  const own = `Creator bought through their own link ${times(self_purchases)} in ${days} days.`
  const named = `A buyer with the name of the creator's payout account ordered through their link ${times(name_matches)} in ${days} days.`
  return [...(self_purchases > 0 ? [own] : []), ...(name_matches > 0 ? [named] : [])].join(' ')
}

/** Clicks that many orders name. */
function flagReusedClicks(platform: Platform, tx: Tx, { accepted }: NewDecisions): Promise<void> {
  const { FLAG_ORDERS_PER_CLICK: limit } = platform.config
  const clickIds = [...new Set(accepted.flatMap((sale) => sale.click_id ?? []))]
  const links = accepted.map((sale) => sale.link_id)
  return flagUnusual(platform, tx, links, {
    kind: 'click_reused',
    subjectType: 'affiliate_link',
    windowStart: 0,
    tally: async (linkIds, since) =>
      Map.groupBy(await countOrdersByClick(tx, linkIds, clickIds, since), (count) => count.link_id),
    isUnusual: (counts) => counts.some(({ orders }) => orders > limit),
    flag(linkId, counts) {
      const most = counts.filter(({ orders }) => orders > limit).sort((a, b) => b.orders - a.orders)
      const listed = most.slice(0, MAX_LISTED).map(({ click_id, orders }) => [click_id, orders])
      const sale = accepted.find((one) => one.link_id === linkId)
      return {
        summary: `${most[0]?.orders} accepted orders came from one click on a link.`,
        evidence: {
          limit,
          orders_by_click: Object.fromEntries(listed),
          merchant_id: sale?.merchant_id,
          creator_id: sale?.creator_id,
        },
      }
    },
  })
}

/** A code that many orders use while no one clicks on its creator's links has probably been published by someone else. */
async function flagCouponLeaks(platform: Platform, tx: Tx, { accepted, now }: NewDecisions): Promise<void> {
  const { FLAG_COUPON_LEAK: least, FLAG_COUPON_LEAK_DAYS: days } = platform.config
  if (least === 0) return
  const withCode = accepted.filter((sale) => sale.coupon_code !== null)
  const links = withCode.map((sale) => sale.link_id)
  await flagUnusual(platform, tx, links, {
    kind: 'coupon_leak',
    subjectType: 'affiliate_link',
    windowStart: now - days * DAY_MS,
    // Clicks are totals by day: after a resolved flag, counting starts with the next whole day.
    tally: (linkIds, since) => tallyCoupons(tx, linkIds, Math.ceil(since / DAY_MS)),
    isUnusual: ({ orders, clicks }) => orders >= least && clicks === 0,
    flag(linkId, { orders, creator_id, merchant_id }) {
      const codes = withCode.filter((sale) => sale.link_id === linkId).map((sale) => sale.coupon_code)
      return {
        summary: `${orders} orders used a link's coupon code within ${days} days without any click on its creator's links.`,
        evidence: { orders, within_days: days, coupon_codes: [...new Set(codes)], creator_id, merchant_id },
      }
    },
  })
}

/** Orders dated into a pause of a moment: so a merchant would owe no commission for their coupon codes. */
async function flagPausedOrders(platform: Platform, tx: Tx, { rejected, now }: NewDecisions): Promise<void> {
  const { FLAG_PAUSED_ORDERS: least } = platform.config
  if (least === 0) return
  const claimed = rejected.filter(claimsCommission)
  const merchantIds = [...new Set(claimed.map((sale) => sale.merchant_id))]
  const paused = await offersOfPauses(
    tx,
    merchantIds,
    claimed.map((sale) => sale.id),
  )
  const offers = new Map(paused.map((offer) => [offer.offer_id, offer]))
  await flagUnusual(platform, tx, [...offers.keys()], {
    kind: 'orders_in_pauses',
    subjectType: 'offer',
    windowStart: now - PAST_DAYS * DAY_MS,
    async tally(offerIds, since) {
      const tallies = new Map<string, string[]>()
      for (const offer of offerIds.flatMap((id) => offers.get(id) ?? [])) {
        const missing = [...(await receiptsInPauses(tx, offer, since))].flatMap(([id, receipt]) => {
          const facts = readReceipt(receipt)?.facts
          return facts && missesCoupon(facts, offer.offer_id) ? id : []
        })
        tallies.set(offer.offer_id, missing)
      }
      return tallies
    },
    isUnusual: (ids) => ids.length >= least,
    flag: (offerId, ids) => ({
      summary: `${ids.length} orders with an offer's coupon code were dated into pauses of at most an hour within ${PAST_DAYS} days.`,
      evidence: {
        merchant_id: offers.get(offerId)?.merchant_id,
        orders: ids.length,
        within_days: PAST_DAYS,
        latest_sale_ids: ids.slice(0, MAX_LISTED),
      },
    }),
  })
}

/** Stores with many rejected orders. */
function flagBursts(platform: Platform, tx: Tx, { rejected: sales, now }: NewDecisions): Promise<void> {
  const { config } = platform
  const { FLAG_REJECTED_SALES: rejections, FLAG_REJECTED_SALES_RATE: rate } = config
  const hours = config.FLAG_REJECTED_SALES_HOURS
  const relative = { least: config.FLAG_REJECTED_SALES_LEAST, times: config.FLAG_REJECTED_SALES_TIMES }
  const merchantOf = new Map(sales.filter(claimsCommission).map((sale) => [sale.store_id, sale.merchant_id]))
  return flagUnusual(platform, tx, [...merchantOf.keys()], {
    kind: 'rejected_sales_burst',
    subjectType: 'store',
    windowStart: now - hours * HOUR_MS,
    tally: (storeIds, since) => tallyWithPast(platform, tx, storeIds, merchantOf, since),
    isUnusual: (tally) =>
      isBurstOfRejections(tally, { rejections, rate }) ||
      (tally.past !== null && rejectsMoreThanBefore(tally, tally.past, relative)),
    flag: (storeId, { claims, rejected, reasons, past }) => ({
      summary: `${rejected} of a store's ${claims} orders with a tracking reference were rejected within ${hours} hours.`,
      evidence: {
        merchant_id: merchantOf.get(storeId),
        orders: claims,
        rejected,
        reasons,
        within_hours: hours,
        ...(past && { orders_before: past.claims, rejected_before: past.rejected }),
      },
    }),
  })
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
