import { type BasisPoints, rateOf } from '../../shared/rates.ts'
import { type RejectionReason, SALE_REJECTION_REASONS } from '../../shared/rejection-reasons.ts'
import { type CouponTimes, couponInForce } from '../sales/accept-sale.rule.ts'
import type { SaleCoupon, SaleOrder } from '../sales/sale-facts.ts'

/** The checks up to that of the reference: an order without one is a shop's ordinary trade. */
export const BEFORE_REFERENCE: readonly RejectionReason[] = SALE_REJECTION_REASONS.slice(
  0,
  SALE_REJECTION_REASONS.indexOf('no_tracking_reference') + 1,
)

/** The fields of a sale that show whether it claims a commission. */
export interface JudgedSale {
  rejection_reason: RejectionReason | null
  link_id: string | null
}

/** Whether an order had a tracking reference, and so claims a commission. */
export function claimsCommission(sale: JudgedSale): boolean {
  return (
    sale.rejection_reason === null ||
    sale.link_id !== null ||
    !BEFORE_REFERENCE.includes(sale.rejection_reason)
  )
}

/** A store's orders that claim a commission, within some hours. */
export interface StoreTally {
  claims: number
  rejected: number
}

/** Whether a store has many rejections, which are also a large share of its orders: a large shop has some every day. */
export function isBurstOfRejections(
  tally: StoreTally,
  limits: { rejections: number; rate: BasisPoints },
): boolean {
  return tally.rejected >= limits.rejections && tally.rejected >= rateOf(tally.claims, limits.rate)
}

/** With fewer past orders, a store has no usual share of rejections. */
const MIN_PAST_ORDERS = 20

/**
 * Whether a store rejects at least `times` its former share, and at least `least` orders (0 = off). The past counts one more rejection,
 * so that a store without any may have its first.
 */
export function rejectsMoreThanBefore(
  tally: StoreTally,
  past: StoreTally,
  limits: { least: number; times: number },
): boolean {
  if (limits.least === 0 || tally.rejected < limits.least || past.claims < MIN_PAST_ORDERS) return false
  return tally.rejected * (past.claims + 1) >= limits.times * (past.rejected + 1) * tally.claims
}

/** A link's tracked clicks within some days, and their accepted sales. */
export interface LinkTally {
  /** Clicks of the kind `visit`. */
  visits: number
  /** Clicks of every kind. */
  clicks: number
  sales: number
}

export interface ConversionLimits {
  /** The lowest number of sales per visit that is too high. */
  rate: BasisPoints
  /** With fewer visits a conversion rate means nothing. */
  minVisits: number
  /** This many visits without a sale are unusual; 0 = off. */
  visitsWithoutSale: number
}

/**
 * Whether a link's conversion is unusual: `more_sales_than_clicks` at any size; `too_high` (buyers are redirected over the link, or orders
 * are invented); `none` (visits are invented, or a store does not report its sales).
 */
export function unusualConversion(
  tally: LinkTally,
  limits: ConversionLimits,
): 'more_sales_than_clicks' | 'too_high' | 'none' | null {
  const { visits, clicks, sales } = tally
  if (sales > clicks) return 'more_sales_than_clicks'
  if (visits >= limits.minVisits && sales > 0 && sales >= rateOf(visits, limits.rate)) return 'too_high'
  if (limits.visitsWithoutSale > 0 && sales === 0 && visits >= limits.visitsWithoutSale) return 'none'
  return null
}

/**
 * Whether many visits from one address are more than a mobile carrier's address, which stands for thousands of people with one user agent:
 * they came from a data center, or the link had visits enough to sell something and did not. `unsold`: as many visits; 0 = off.
 */
export function isRobotic(
  signs: { dataCenter: boolean; settled: LinkTally | undefined },
  unsold: number,
): boolean {
  const { dataCenter, settled } = signs
  if (dataCenter || unsold === 0) return dataCenter
  return settled !== undefined && settled.sales === 0 && settled.visits >= unsold
}

/** A link's visits and accepted sales in some days, and before them. */
export interface LinkCourse {
  visits: number
  sales: number
  pastVisits: number
  pastSales: number
}

const DROP_FACTOR = 10

/**
 * Whether a link that sold before has at most a tenth of the expected sales, where at least `least` are expected (0 = off): a store may
 * have stopped reporting sales.
 */
export function conversionDropped(course: LinkCourse, least: number): boolean {
  const { visits, sales, pastVisits, pastSales } = course
  if (least === 0 || pastSales < least || pastVisits === 0) return false
  // Expected: pastSales / pastVisits × visits.
  return pastSales * visits >= least * pastVisits && sales * DROP_FACTOR * pastVisits <= pastSales * visits
}

/** What shows whether an order's coupon code was in force. */
export interface CouponFacts {
  order: Pick<SaleOrder, 'created_at'>
  coupons?: readonly (CouponTimes & { link: Pick<SaleCoupon['link'], 'offer_id'> })[]
}

/** Whether an order has a coupon code of this offer, and none that was in force when the order was created. */
export function missesCoupon(facts: CouponFacts, offerId: string): boolean {
  return !couponInForce(facts) && (facts.coupons ?? []).some(({ link }) => link.offer_id === offerId)
}

/** Visits in two consecutive spans; times in epoch ms. */
export interface VisitWindow {
  /** When the present span began. */
  since: number
  present: number
  /** Visits in the previous span. */
  former: number
}

/** Counts one more visit at `at`. Two counters need the same memory for any number of visits. */
export function countVisit(window: VisitWindow | undefined, at: number, spanMs: number): VisitWindow {
  if (!window || at - window.since >= 2 * spanMs) return { since: at, present: 1, former: 0 }
  if (at - window.since < spanMs) return { ...window, present: window.present + 1 }
  return { since: window.since + spanMs, present: 1, former: window.present }
}

/** Visits within the last `spanMs` up to `at`, assuming those of the previous span evenly distributed. */
export function visitsWithin(window: VisitWindow, at: number, spanMs: number): number {
  const elapsed = Math.min(Math.max(0, at - window.since), spanMs)
  return window.present + Math.floor((window.former * (spanMs - elapsed)) / spanMs)
}
