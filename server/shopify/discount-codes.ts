import { couponCodeInput } from '../../shared/schemas/links.ts'
import type { Fields } from './fields.ts'

/** Shopify combines a handful of codes at most; a signed body may name any number. */
const MAX_CODES = 25

/**
 * The discount codes of an order that can be coupon codes, upper case and without repeats, in the order's sequence. Shopify compares codes
 * without case. A code of another shape is passed over.
 */
export function readDiscountCodes(order: Fields): string[] {
  if (!Array.isArray(order.discount_codes)) return []
  const codes = order.discount_codes.slice(0, MAX_CODES).flatMap((discount) => {
    const code = couponCodeInput.safeParse(discount?.code)
    return code.success ? [code.data] : []
  })
  return [...new Set(codes)]
}
