import { type BasisPoints, rateOf } from '../../shared/rates.ts'

/**
 * Rejections that say nothing about anybody: an order without a reference is a shop's everyday trade, and these checks are judged
 * before there is one to look at.
 */
const WITHOUT_REFERENCE = ['test_order', 'not_paid', 'currency_not_pkr', 'no_tracking_reference']

/** As much of a sale as tells whether it asked for a commission. */
export interface JudgedSale {
  rejection_reason: string | null
  link_id: string | null
}

/** Whether an order came with a tracking reference, and so asked for a commission; accepted ones did. */
export function askedForCommission(sale: JudgedSale): boolean {
  return (
    sale.rejection_reason === null ||
    sale.link_id !== null ||
    !WITHOUT_REFERENCE.includes(sale.rejection_reason)
  )
}

/** A store's orders of some hours that asked for a commission. */
export interface StoreTally {
  asked: number
  rejected: number
}

/** Many rejections that are also a large part of the whole: a big shop has a few every day. */
export function isBurstOfRejections(
  tally: StoreTally,
  limits: { rejections: number; rate: BasisPoints },
): boolean {
  return tally.rejected >= limits.rejections && tally.rejected >= rateOf(tally.asked, limits.rate)
}

/** Below so many orders a store's past says little about its usual part of rejections. */
const LEAST_PAST_ORDERS = 20

/**
 * Whether a store rejects `times` the part that it rejected before, `least` orders or more (0 = off). One more rejection is taken for
 * granted in its past, so that a store without any may have its first.
 */
export function rejectsMoreThanBefore(
  tally: StoreTally,
  past: StoreTally,
  limits: { least: number; times: number },
): boolean {
  if (limits.least === 0 || tally.rejected < limits.least || past.asked < LEAST_PAST_ORDERS) return false
  return tally.rejected * (past.asked + 1) >= limits.times * (past.rejected + 1) * tally.asked
}

/** A link's tracked clicks and the accepted sales that came of them, in some days. */
export interface LinkTally {
  /** Clicks that do not look like a bot's. */
  visits: number
  /** Clicks of every kind. */
  clicks: number
  sales: number
}

export interface ConversionLimits {
  /** Sales per visit from which on a conversion is too good. */
  rate: BasisPoints
  /** Below so many visits a rate means nothing. */
  leastVisits: number
  /** So many visits must have led to something; 0 = off. */
  visitsWithoutSale: number
}

/**
 * Whether a link's conversion is out of the ordinary: `more_sales_than_clicks`, however few; `too_high` (buyers who would have come
 * anyway are sent over the link, or orders are made up); or `none` of so many visits bought (visits are made up, or a store keeps its
 * sales to itself).
 */
export function unusualConversion(
  tally: LinkTally,
  limits: ConversionLimits,
): 'more_sales_than_clicks' | 'too_high' | 'none' | null {
  const { visits, clicks, sales } = tally
  if (sales > clicks) return 'more_sales_than_clicks'
  if (visits >= limits.leastVisits && sales > 0 && sales >= rateOf(visits, limits.rate)) return 'too_high'
  if (limits.visitsWithoutSale > 0 && sales === 0 && visits >= limits.visitsWithoutSale) return 'none'
  return null
}

/** A link's visits and accepted sales of some days, and of the time before them. */
export interface LinkCourse {
  visits: number
  sales: number
  pastVisits: number
  pastSales: number
}

/** An order of magnitude. */
const DROP = 10

/**
 * Whether a link that sold before sells no more than a tenth of what its visits let expect, `least` sales or more (0 = off): a store
 * may have stopped reporting its sales.
 */
export function conversionDropped(course: LinkCourse, least: number): boolean {
  const { visits, sales, pastVisits, pastSales } = course
  if (least === 0 || pastSales < least || pastVisits === 0) return false
  // Expected: pastSales / pastVisits × visits.
  return pastSales * visits >= least * pastVisits && sales * DROP * pastVisits <= pastSales * visits
}

/** Visits of an offer's links in two days. */
export interface OfferTraffic {
  tracked: number
  /** On the second day. */
  untracked: number
}

/**
 * Whether an offer was not live while its links had traffic, `least` visits or more of either sort (0 = off): pausing after links were
 * shared keeps what their visitors buy from the creators.
 */
export function pausedInTraffic({ tracked, untracked }: OfferTraffic, least: number): boolean {
  return least > 0 && tracked >= least && untracked >= least
}
