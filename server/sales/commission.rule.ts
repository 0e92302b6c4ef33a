import { type LineAmount, timesRounded } from '../../shared/line-amount.ts'
import { assertPaisa, type Paisa } from '../../shared/money.ts'
import { type BasisPoints, rateOf } from '../../shared/rates.ts'
import type { OrderFacts, OrderLine } from '../shopify/order-facts.ts'

/** The calculation for one order line, stored on the receipt: `net = max(0, gross − discount − tax)`. Amounts in paisa. */
export interface BasisLine {
  product_id: string | null
  title: string
  /** Remaining pieces after edits and returns. */
  quantity: number
  unit_price: LineAmount
  gross: Paisa
  discount: Paisa
  /** The deducted tax: 0 when prices do not include tax. */
  tax: Paisa
  net: Paisa
  counted: boolean
  why_not: 'gift_card' | 'other_product' | null
}

export interface Basis {
  lines: BasisLine[]
  /** The sum of `net` over the counted lines. */
  netAmount: Paisa
}

const HUNDRED_PERCENT: BasisPoints = 10_000

/**
 * The amount that commission is calculated on. For each line: the price of the remaining pieces, less their share of the line's
 * discounts, less their share of its taxes if prices include tax. A line is never negative, so it cannot reduce the others. Gift cards
 * do not count, nor do products that `productIds` does not cover.
 */
export function basisOf(
  order: Pick<OrderFacts, 'taxes_included' | 'lines'>,
  productIds: readonly string[] | null,
): Basis {
  const lines = order.lines.map((line) => basisLine(line, order.taxes_included, productIds))
  const netAmount = lines.reduce((sum, line) => (line.counted ? sum + line.net : sum), 0)
  assertPaisa(netAmount)
  return { lines, netAmount }
}

function basisLine(line: OrderLine, taxesIncluded: boolean, productIds: readonly string[] | null): BasisLine {
  const gross = timesRounded(line.unit_price, line.quantity)
  const discount = shareOfRemaining(line.discount, line)
  const tax = taxesIncluded ? shareOfRemaining(line.tax, line) : 0
  const why_not = whyNotCounted(line, productIds)
  return {
    product_id: line.product_id,
    title: line.title,
    quantity: line.quantity,
    unit_price: line.unit_price,
    gross,
    discount,
    tax,
    net: Math.max(0, gross - discount - tax),
    counted: why_not === null,
    why_not,
  }
}

function whyNotCounted(line: OrderLine, productIds: readonly string[] | null): BasisLine['why_not'] {
  if (line.gift_card) return 'gift_card'
  return isCovered(line.product_id, productIds) ? null : 'other_product'
}

/** Whether the terms cover a product. An empty list or `null` covers every product and custom item. */
export function isCovered(productId: string | null, productIds: readonly string[] | null): boolean {
  if (productIds === null || productIds.length === 0) return true
  return productId !== null && productIds.includes(productId)
}

/**
 * The share of a line's discount or tax for its remaining pieces: `total × quantity ÷ original quantity`, rounded half up to the
 * paisa. Pieces added by an edit do not increase it.
 */
export function shareOfRemaining(total: LineAmount, line: OrderLine): Paisa {
  const { quantity, original_quantity } = line
  return quantity >= original_quantity
    ? timesRounded(total, 1)
    : timesRounded(total, quantity, original_quantity)
}

/** Commission in paisa, rounded half up. Throws for a rate above 100 %, which no link can have. */
export function commissionOn(netAmount: Paisa, rate: BasisPoints): Paisa {
  if (rate > HUNDRED_PERCENT) throw new Error(`commission rate above 100 %: ${rate}`)
  return rateOf(netAmount, rate)
}

/** The platform fee that the merchant pays on top of the commission, paisa, rounded half up. */
export function platformFeeOn(commission: Paisa, feeRate: BasisPoints): Paisa {
  return rateOf(commission, feeRate)
}
