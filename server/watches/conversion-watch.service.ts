import { DAY_MS, HOUR_MS } from '../../shared/durations.ts'
import { raiseFlags } from '../flags/flags.service.ts'
import type { Tx } from '../platform/database/database.ts'
import { lockWatermark, readWatermark, setWatermark } from '../platform/database/watermarks.ts'
import { firstIdAt, timeOfId } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { readReceipt } from '../sales/accept-sale.rule.ts'
import { dayOf } from '../stores/store-activity.service.ts'
import { COMMIT_LAG_MS, flagUnusual, withNewRows } from './flag-unusual.service.ts'
import {
  claimsCommission,
  conversionDropped,
  isBurstOfRejections,
  missesCoupon,
  rejectsMoreThanBefore,
  unusualConversion,
} from './patterns.rule.ts'
import {
  countClaims,
  countOwnOrders,
  type Days,
  decidedAgainBetween,
  decidedSales,
  deleteDaysBefore,
  firstDayWithVisits,
  linkCourses,
  linksVisited,
  type NewSale,
  type OwnOrders,
  offersOfPauses,
  offersPausedInTraffic,
  overusedClicks,
  receiptsInPauses,
  type StoreOrders,
  tallyCoupons,
  tallyLinks,
} from './watches.store.ts'

const SALES_PER_RUN = 2000
/** The days that the last hours are compared with, and in which orders in short pauses are counted. */
const PAST_DAYS = 30
/** Sales, or clicks of a link, that the evidence lists. */
const MAX_LISTED = 20
/** Up to which time visits were checked. */
const VISITS = 'watches.visits'
/** A day is checked this long after its end, when its visits are counted unless a clock is behind. */
const CLICKS_LAG_MS = 10_000

/** Decisions on sales since the last run, by their outcome. */
interface NewDecisions {
  platform: Platform
  tx: Tx
  now: number
  sales: readonly NewSale[]
  accepted: readonly NewSale[]
  rejected: readonly NewSale[]
}

/** What new decisions are checked for. */
const PATTERNS = [flagSelfPurchases, flagBursts, flagReusedClicks, flagPausedOrders]
/** Those that count clicks against sales. */
const CLICK_PATTERNS = [flagCouponLeaks, flagSoldLinks]

/** Checks new decisions on sales. Returns whether there are more. */
export function watchSales(platform: Platform): Promise<boolean> {
  return watchDecisions(platform, 'watches.sales', PATTERNS)
}

/** The same up to where the visits are checked, because a sale without its visits would raise the conversion. */
export function watchConversions(platform: Platform): Promise<boolean> {
  return watchDecisions(platform, 'watches.conversions', CLICK_PATTERNS, VISITS)
}

/** Checks up to where the watch with the watermark `upTo` is. */
function watchDecisions(
  platform: Platform,
  watermark: string,
  patterns: readonly ((decisions: NewDecisions) => Promise<void>)[],
  upTo?: string,
): Promise<boolean> {
  const { FLAG_SELF_PURCHASES_DAYS: days, FLAG_REJECTED_SALES_HOURS: hours } = platform.config
  const now = platform.clock.now()
  const first = firstIdAt(now - Math.max(days * DAY_MS, hours * HOUR_MS))
  return platform.database.transaction(async (tx) => {
    const committed = firstIdAt(now - COMMIT_LAG_MS)
    const known = upTo ? ((await readWatermark(tx, upTo)) ?? first) : committed
    const to = known < committed ? known : committed
    const rows = { watermark, first, to, limit: SALES_PER_RUN, query: decidedSales(tx) }
    return withNewRows(platform, tx, rows, async (recorded, range) => {
      const sales = [...recorded, ...(await decidedAgainBetween(tx, range))]
      const accepted = sales.filter((sale) => sale.acceptance_status === 'accepted')
      const rejected = sales.filter((sale) => sale.acceptance_status === 'rejected')
      for (const flag of patterns) await flag({ platform, tx, now, sales, accepted, rejected })
    })
  })
}

/** Creators who buy through their own links. */
function flagSelfPurchases({ platform, tx, now, sales }: NewDecisions): Promise<void> {
  const { FLAG_SELF_PURCHASES: limit, FLAG_SELF_PURCHASES_DAYS: days } = platform.config
  const own = sales.filter(
    (sale) =>
      sale.rejection_reason === 'self_purchase' ||
      (sale.rejection_reason === null && sale.buyer_name_matches === 1),
  )
  return flagUnusual(platform, tx, {
    kind: 'self_purchase',
    subjectType: 'user',
    subjects: own.map((sale) => sale.creator_id),
    windowStart: now - days * DAY_MS,
    tally: (creatorIds, since) => countOwnOrders(tx, creatorIds, since),
    flag(counts, creatorId) {
      if (counts.self_purchases + counts.name_matches < limit) return null
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
function flagReusedClicks({ platform, tx, accepted }: NewDecisions): Promise<void> {
  const { FLAG_ORDERS_PER_CLICK: limit } = platform.config
  const clickIds = [...new Set(accepted.flatMap((sale) => sale.click_id ?? []))]
  return flagUnusual(platform, tx, {
    kind: 'click_reused',
    subjectType: 'affiliate_link',
    subjects: accepted.map((sale) => sale.link_id),
    windowStart: 0,
    tally: async (linkIds, since) =>
      Map.groupBy(
        await overusedClicks(tx, linkIds, clickIds, { most: limit, since }),
        ({ link_id }) => link_id,
      ),
    flag: (clicks) => ({
      summary: `${clicks[0]?.orders} accepted orders came from one click on a link.`,
      evidence: {
        limit,
        orders_by_click: Object.fromEntries(
          clicks.slice(0, MAX_LISTED).map(({ click_id, orders }) => [click_id, orders]),
        ),
        merchant_id: clicks[0]?.merchant_id,
        creator_id: clicks[0]?.creator_id,
      },
    }),
  })
}

/** A code that many orders use while no one clicks on its creator's links has probably been published by someone else. */
async function flagCouponLeaks({ platform, tx, now, accepted }: NewDecisions): Promise<void> {
  const { FLAG_COUPON_LEAK: least, FLAG_COUPON_LEAK_DAYS: days } = platform.config
  if (least === 0) return
  const withCode = accepted.filter((sale) => sale.coupon_code !== null)
  await flagUnusual(platform, tx, {
    kind: 'coupon_leak',
    subjectType: 'affiliate_link',
    subjects: withCode.map((sale) => sale.link_id),
    windowStart: now - days * DAY_MS,
    tally: (linkIds, since) => tallyCoupons(tx, linkIds, nextWholeDay(since)),
    flag({ orders, clicks, creator_id, merchant_id }, linkId) {
      if (orders < least || clicks > 0) return null
      const codes = withCode.filter((sale) => sale.link_id === linkId).map((sale) => sale.coupon_code)
      return {
        summary: `${orders} orders used a link's coupon code within ${days} days without any click on its creator's links.`,
        evidence: { orders, within_days: days, coupon_codes: [...new Set(codes)], creator_id, merchant_id },
      }
    },
  })
}

/** Clicks are totals by day: after a resolved flag, counting starts with the next whole day. */
function nextWholeDay(since: number): number {
  return Math.ceil(since / DAY_MS)
}

/** Orders dated into a pause of a moment: so a merchant would owe no commission for their coupon codes. */
async function flagPausedOrders({ platform, tx, now, rejected }: NewDecisions): Promise<void> {
  const { FLAG_PAUSED_ORDERS: least } = platform.config
  const claimed = rejected.filter(claimsCommission)
  if (least === 0 || claimed.length === 0) return
  const offers = await offersOfPauses(tx, claimed)
  const merchantOf = (offerId: string) => offers.get(offerId)?.merchant_id ?? ''
  await flagUnusual(platform, tx, {
    kind: 'orders_in_pauses',
    subjectType: 'offer',
    subjects: [...offers.keys()],
    windowStart: now - PAST_DAYS * DAY_MS,
    async tally(offerIds, since) {
      const tallies = new Map<string, string[]>()
      for (const offerId of offerIds) {
        const receipts = await receiptsInPauses(tx, offerId, merchantOf(offerId), since)
        const missing = [...receipts].flatMap(([id, { receipt }]) => {
          const facts = readReceipt(receipt)?.facts
          return facts && missesCoupon(facts, offerId) ? [id] : []
        })
        tallies.set(offerId, missing)
      }
      return tallies
    },
    flag(ids, offerId) {
      if (ids.length < least) return null
      const summary = `${ids.length} orders with an offer's coupon code were dated into pauses of at most an hour within ${PAST_DAYS} days.`
      const counted = { merchant_id: merchantOf(offerId), orders: ids.length, within_days: PAST_DAYS }
      return { summary, evidence: { ...counted, latest_sale_ids: ids.slice(0, MAX_LISTED) } }
    },
  })
}

/** Stores with many rejected orders. */
function flagBursts({ platform, tx, now, rejected: sales }: NewDecisions): Promise<void> {
  const { config } = platform
  const { FLAG_REJECTED_SALES: rejections, FLAG_REJECTED_SALES_RATE: rate } = config
  const { FLAG_REJECTED_SALES_HOURS: hours, FLAG_REJECTED_SALES_LEAST: least } = config
  const relative = { least, times: config.FLAG_REJECTED_SALES_TIMES }
  return flagUnusual(platform, tx, {
    kind: 'rejected_sales_burst',
    subjectType: 'store',
    subjects: sales.filter(claimsCommission).map((sale) => sale.store_id),
    windowStart: now - hours * HOUR_MS,
    async tally(storeIds, since) {
      const tallies = tallyStores(await countClaims(tx, storeIds, since))
      const compared = [...tallies].flatMap(([id, { rejected }]) =>
        least > 0 && rejected >= least ? [id] : [],
      )
      const past = tallyStores(await countClaims(tx, compared, since - PAST_DAYS * DAY_MS, since))
      return new Map([...tallies].map(([id, tally]) => [id, { ...tally, past: past.get(id) }]))
    },
    flag({ past, ...tally }) {
      const { claims, rejected } = tally
      const isBurst =
        isBurstOfRejections(tally, { rejections, rate }) ||
        (past && rejectsMoreThanBefore(tally, past, relative))
      if (!isBurst) return null
      return {
        summary: `${rejected} of a store's ${claims} orders with a tracking reference were rejected within ${hours} hours.`,
        evidence: {
          merchant_id: tally.merchant_id,
          orders: claims,
          rejected,
          reasons: tally.reasons,
          within_hours: hours,
          ...(past && { orders_before: past.claims, rejected_before: past.rejected }),
        },
      }
    },
  })
}

function tallyStores(counts: readonly StoreOrders[]) {
  const stores = [...Map.groupBy(counts, ({ store_id }) => store_id)]
  const sum = (some: readonly StoreOrders[]) => some.reduce((all, { orders }) => all + orders, 0)
  return new Map(
    stores.map(([id, outcomes]) => {
      const rejections = outcomes.filter(({ rejection_reason }) => rejection_reason !== null)
      const reasons = rejections.map(({ rejection_reason, orders }) => [rejection_reason, orders])
      const tally = {
        merchant_id: outcomes[0]?.merchant_id,
        claims: sum(outcomes),
        rejected: sum(rejections),
        reasons: Object.fromEntries(reasons) as Record<string, number>,
      }
      return [id, tally]
    }),
  )
}

function flagSoldLinks({ platform, tx, now, accepted }: NewDecisions): Promise<void> {
  const sold = accepted.map((sale) => sale.link_id)
  return flagConversions(platform, tx, spanUpTo(platform, dayOf(now)), sold)
}

function flagConversions(
  platform: Platform,
  tx: Tx,
  { firstDay, lastDay }: Days,
  subjects: readonly (string | null)[],
): Promise<void> {
  const { config } = platform
  const limits = {
    rate: config.FLAG_CONVERSION_RATE,
    minVisits: config.FLAG_CONVERSION_VISITS,
    visitsWithoutSale: config.FLAG_CONVERSION_NONE,
  }
  return flagUnusual(platform, tx, {
    kind: 'conversion_unusual',
    subjectType: 'affiliate_link',
    subjects,
    windowStart: firstDay * DAY_MS,
    tally: (ids, since) => tallyLinks(tx, ids, { firstDay: nextWholeDay(since), lastDay }),
    flag({ visits, clicks, sales, ...link }) {
      const conversion = unusualConversion({ visits, clicks, sales }, limits)
      if (conversion === null) return null
      const summaries = {
        none: `A link had ${visits} visits and sold nothing.`,
        too_high: `A link sold to ${sales} of ${visits} visits.`,
        more_sales_than_clicks: `A link sold ${sales} times with ${clicks} clicks.`,
      }
      const within_days = config.FLAG_CONVERSION_DAYS
      const evidence = { visits, clicks, sales, conversion, within_days, ...link }
      return { summary: summaries[conversion], evidence }
    },
  })
}

/** The FLAG_CONVERSION_DAYS that end with this day. */
function spanUpTo({ config }: Platform, lastDay: number): Days {
  return { firstDay: lastDay - config.FLAG_CONVERSION_DAYS + 1, lastDay }
}

/**
 * Checks the links that had visits on a day that is over. Visits are totals by link and day, which the roll-up of clicks writes: run it
 * first. Returns whether there are more days.
 */
export function watchVisits(platform: Platform): Promise<boolean> {
  const now = platform.clock.now()
  return platform.database.transaction(async (tx) => {
    const firstDay = dayOf(now) - platform.config.FLAG_CONVERSION_DAYS
    const from = timeOfId(await lockWatermark(tx, VISITS, firstIdAt(firstDay * DAY_MS)))
    const bound = now - CLICKS_LAG_MS
    if (bound <= from) return false
    const dayEnd = (dayOf(from) + 1) * DAY_MS
    const to = Math.min(bound, dayEnd)
    await setWatermark(tx, VISITS, firstIdAt(to))
    if (to === dayEnd) await checkDay(platform, tx, dayOf(from))
    return to < bound
  })
}

/** A link's conversion is compared with that of this many earlier spans of FLAG_CONVERSION_DAYS. */
const PAST_SPANS = 2

async function checkDay(platform: Platform, tx: Tx, day: number): Promise<void> {
  const { FLAG_CONVERSION_DAYS: days, FLAG_CONVERSION_NONE: visits, FLAG_COUPON_LEAK_DAYS } = platform.config
  const span = spanUpTo(platform, day)
  if (visits > 0) await flagConversions(platform, tx, span, await linksVisited(tx, span, visits))
  const pastDay = span.firstDay - PAST_SPANS * days
  await flagDropped(platform, tx, { ...span, pastDay })
  await flagPausedOffers(platform, tx, day)
  await deleteDaysBefore(tx, Math.min(pastDay, day - FLAG_COUPON_LEAK_DAYS))
}

async function flagDropped(platform: Platform, tx: Tx, span: Days & { pastDay: number }): Promise<void> {
  const { FLAG_CONVERSION_DROP_SALES: least, FLAG_CONVERSION_VISITS: minVisits } = platform.config
  const known = await firstDayWithVisits(tx)
  if (least === 0 || known === null) return
  const { firstDay, lastDay } = span
  const pastDay = Math.max(known, span.pastDay)
  await flagUnusual(platform, tx, {
    kind: 'conversion_dropped',
    subjectType: 'affiliate_link',
    subjects: await linksVisited(tx, span, minVisits),
    windowStart: firstDay * DAY_MS,
    tally: (ids, since) => linkCourses(tx, ids, { pastDay, firstDay: nextWholeDay(since), lastDay }),
    flag({ visits, sales, pastVisits, pastSales, ...link }) {
      if (!conversionDropped({ visits, sales, pastVisits, pastSales }, least)) return null
      const expected = Math.floor((pastSales * visits) / pastVisits)
      return {
        summary: `A link that sold before had ${sales} accepted sales where its visits suggest ${expected}.`,
        evidence: { visits, sales, visits_before: pastVisits, sales_before: pastSales, ...link },
      }
    },
  })
}

/** Pausing after links were shared deprives creators of their commissions. */
async function flagPausedOffers(platform: Platform, tx: Tx, day: number): Promise<void> {
  const { FLAG_PAUSED_VISITS: least } = platform.config
  const offers = least === 0 ? [] : await offersPausedInTraffic(tx, day, least)
  const flags = [...offers].map(([subjectId, { merchant_id, status, tracked, untracked }]) => ({
    kind: 'offer_paused_in_traffic' as const,
    subjectType: 'offer' as const,
    subjectId,
    summary: `An offer was not live during ${untracked} visits of its links in a day, after ${tracked} tracked ones.`,
    evidence: {
      merchant_id,
      offer_status: status,
      untracked_visits: untracked,
      tracked_visits: tracked,
      day: new Date(day * DAY_MS).toISOString().slice(0, 10),
    },
  }))
  await raiseFlags(platform, tx, flags)
}
