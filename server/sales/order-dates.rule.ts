import { CLOCK_TOLERANCE_MS } from './accept-sale.rule.ts'

const DAY_MS = 86_400_000

/** Why the `created_at` of an order cannot be right, or is unusual. */
export type SuspiciousDate = 'after_receipt' | 'after_trigger' | 'before_click' | 'long_before_payment'

/** Times in epoch ms. */
export interface OrderDates {
  createdAt: number
  receivedAt: number
  /** From the unsigned header `X-Shopify-Triggered-At`, so only a hint; `null` without it. */
  triggeredAt: number | null
  /** The click that the order names, if its link is the reporting merchant's. */
  clickedAt: number | null
}

/**
 * A store's own clock decides whether an order lies in the attribution window. Orders paid on delivery are weeks old when they are
 * reported, so only `oldestDays` (0 = off) or more before that is unusual; and an order cannot name a click that came after it.
 */
export function suspiciousDates(dates: OrderDates, oldestDays: number): SuspiciousDate[] {
  const { createdAt, receivedAt, triggeredAt, clickedAt } = dates
  const found: SuspiciousDate[] = []
  if (createdAt > receivedAt + CLOCK_TOLERANCE_MS) found.push('after_receipt')
  if (triggeredAt !== null && createdAt > triggeredAt + CLOCK_TOLERANCE_MS) found.push('after_trigger')
  if (clickedAt === null) return found
  if (clickedAt > createdAt + CLOCK_TOLERANCE_MS) found.push('before_click')
  const paidAt = triggeredAt ?? receivedAt
  if (oldestDays > 0 && paidAt - createdAt >= oldestDays * DAY_MS) found.push('long_before_payment')
  return found
}
