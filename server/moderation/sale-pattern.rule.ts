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

/** A link's visits and the accepted sales that came of them, in some days. */
export interface LinkTally {
  visits: number
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
 * Whether a link's conversion is out of the ordinary: `too_high` (buyers who would have come anyway are led over the link, or
 * orders are made up), or `none` of so many visits bought (visits are made up, or a store keeps its sales to itself).
 */
export function unusualConversion(tally: LinkTally, limits: ConversionLimits): 'too_high' | 'none' | null {
  const { visits, sales } = tally
  if (visits >= limits.leastVisits && sales > 0 && sales >= rateOf(visits, limits.rate)) return 'too_high'
  if (limits.visitsWithoutSale > 0 && sales === 0 && visits >= limits.visitsWithoutSale) return 'none'
  return null
}
