import { DAY_MS } from '../../shared/durations.ts'
import { CLOCK_TOLERANCE_MS } from './accept-sale.rule.ts'

/** Why an order's `created_at` is wrong or unusual. */
export type SuspiciousDate =
  | 'after_receipt'
  | 'after_trigger'
  | 'before_click'
  | 'before_code'
  | 'long_before_payment'

/** Times in epoch ms. */
export interface OrderDates {
  createdAt: number
  receivedAt: number
  /** From Shopify's unsigned header `triggered-at`; `null` without it. */
  triggeredAt: number | null
  /** The order's click, if its link belongs to the reporting merchant. */
  clickedAt: number | null
  /** When a link of the reporting merchant was given the order's coupon code; `null` without one. */
  codeStartedAt: number | null
  /** When the order was first reported, maybe unpaid. */
  firstReportedAt: number
}

/**
 * Finds suspicious dates of an order. The store's clock decides whether an order is in the attribution window. Orders paid on delivery
 * are reported weeks later, so only an age of `oldestDays` (0 = off) or more is unusual. An order cannot name a later click, nor carry a
 * coupon code that begins later, unless the shop had the code before its link: an order that was reported before then shows that.
 */
export function suspiciousDates(dates: OrderDates, oldestDays: number): SuspiciousDate[] {
  const { createdAt, receivedAt, triggeredAt, clickedAt, codeStartedAt } = dates
  const found: SuspiciousDate[] = []
  if (createdAt > receivedAt + CLOCK_TOLERANCE_MS) found.push('after_receipt')
  if (triggeredAt !== null && createdAt > triggeredAt + CLOCK_TOLERANCE_MS) found.push('after_trigger')
  if (clickedAt === null && codeStartedAt === null) return found
  const latest = createdAt + CLOCK_TOLERANCE_MS
  if (clickedAt !== null && clickedAt > latest) found.push('before_click')
  if (codeStartedAt !== null && codeStartedAt > latest && dates.firstReportedAt >= codeStartedAt)
    found.push('before_code')
  const paidAt = triggeredAt ?? receivedAt
  if (oldestDays > 0 && paidAt - createdAt >= oldestDays * DAY_MS) found.push('long_before_payment')
  return found
}
