import { assertPaisa, type Paisa } from '../../shared/money.ts'
import { type BasisPoints, rateOf } from '../../shared/rates.ts'
import type { OrderLine } from '../shopify/order-facts.ts'

/** The arithmetic of one order line, kept for the receipt: `net = max(0, gross − discount − tax)`, all in paisa. */
export interface BasisLine {
  product_id: string | null
  title: string
  /** Pieces that remain after edits and returns. */
  quantity: number
  unit_price: Paisa
  gross: Paisa
  discount: Paisa
  /** What is taken off as tax: 0 when the order's prices do not contain it. */
  tax: Paisa
  net: Paisa
  counted: boolean
  why_not: 'gift_card' | 'other_product' | null
}

export interface Basis {
  lines: BasisLine[]
  /** The sum of `net` over the counted lines. */
  basis: Paisa
}

/** What the basis depends on. */
export interface BasisOrder {
  taxes_included: boolean
  lines: readonly OrderLine[]
}

const WHOLE: BasisPoints = 10_000

/**
 * The amount that commission is taken of: per line the price of the remaining pieces, less their share of the line's discount
 * allocations, less their share of its taxes when prices contain them. A line is never below zero, so that one odd line takes
 * nothing from the others. Gift cards are left out, and so are other products when `productIds` names some.
 */
export function basisOf(order: BasisOrder, productIds: readonly string[] | null): Basis {
  const lines = order.lines.map((line) => basisLine(line, order.taxes_included, productIds))
  const basis = lines.reduce((sum, line) => (line.counted ? sum + line.net : sum), 0)
  assertPaisa(basis)
  return { lines, basis }
}

function basisLine(line: OrderLine, taxesIncluded: boolean, productIds: readonly string[] | null): BasisLine {
  const gross = line.unit_price * line.quantity
  const discount = shareOfRemaining(line.discount, line)
  const tax = taxesIncluded ? shareOfRemaining(line.tax, line) : 0
  const why_not = line.gift_card ? 'gift_card' : isNamed(line.product_id, productIds) ? null : 'other_product'
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

/** Whether the terms cover a product. Terms that name none (`null` or an empty list) cover every product and custom item. */
export function isNamed(productId: string | null, productIds: readonly string[] | null): boolean {
  if (productIds === null || productIds.length === 0) return true
  return productId !== null && productIds.includes(productId)
}

/**
 * The part of a line's discount or tax that belongs to the pieces that remain: `total × quantity ÷ original quantity`, half up to
 * the paisa, rounded once on the line's total. Pieces added by an edit do not make it more. In BigInt, because the product leaves
 * the range of exact numbers.
 */
function shareOfRemaining(total: Paisa, line: OrderLine): Paisa {
  if (line.quantity >= line.original_quantity) return total
  const ordered = BigInt(line.original_quantity)
  return Number((2n * BigInt(total) * BigInt(line.quantity) + ordered) / (2n * ordered))
}

/** Commission in paisa, half up; never above the basis, since no link can lock a rate above 100 %. */
export function commissionOn(basis: Paisa, rate: BasisPoints): Paisa {
  if (rate > WHOLE) throw new Error(`commission rate above the whole: ${rate}`)
  return rateOf(basis, rate)
}

/** What the platform bills the merchant on top of the commission, in paisa, half up. */
export function platformFeeOn(commission: Paisa, feeRate: BasisPoints): Paisa {
  return rateOf(commission, feeRate)
}
