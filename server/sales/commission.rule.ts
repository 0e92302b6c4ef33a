import { type LineAmount, timesRounded } from '../../shared/line-amount.ts'
import { assertPaisa, type Paisa } from '../../shared/money.ts'
import { type BasisPoints, rateOf } from '../../shared/rates.ts'
import { currentAmount, shareOfRemaining } from '../shopify/order-amounts.rule.ts'
import type { OrderLine } from '../shopify/order-facts.ts'
import type { SaleOrder } from './sale-facts.ts'

/** The calculation for one order line, stored on the receipt: `net = max(0, gross − discount − tax − refunded)`. Amounts in paisa. */
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
  /** The line's share of what was refunded without naming items; missing without any. */
  refunded?: Paisa
  net: Paisa
  counted: boolean
  why_not: 'gift_card' | 'tip' | 'fee' | 'other_product' | null
}

export interface Basis {
  lines: BasisLine[]
  /** The sum of `net` over the counted lines. */
  netAmount: Paisa
}

const HUNDRED_PERCENT: BasisPoints = 10_000

/**
 * The amount that commission is calculated on. For each line: the price of the remaining pieces, less their share of the line's
 * discounts, less their share of its taxes if prices include tax, less their share of an amount that was refunded without naming items.
 * A line is never negative, so it cannot reduce the others. Tips, fees and gift cards do not count, nor do products that `productIds`
 * does not cover.
 */
export function basisOf(
  order: Pick<SaleOrder, 'taxes_included' | 'lines' | 'amount_refunded'>,
  productIds: readonly string[] | null,
): Basis {
  const { amount_refunded = 0, taxes_included } = order
  const paid = amount_refunded > 0 ? order.lines.reduce((sum, line) => sum + currentAmount(line), 0) : 0
  const lines = order.lines.map((line) => {
    const counted = basisLine(line, taxes_included, productIds)
    return paid > 0 ? withRefund(counted, amount_refunded, paid) : counted
  })
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

/** A refund of `refunded` out of what was `paid` for all lines lowers each line in the same proportion, rounded half up to the paisa. */
function withRefund({ counted, why_not, ...line }: BasisLine, refunded: Paisa, paid: Paisa): BasisLine {
  const share = Math.min(line.net, timesRounded(line.net, refunded, paid))
  return { ...line, refunded: share, net: line.net - share, counted, why_not }
}

/** Why a line earns no commission; `null` for one that does. */
export function whyNotCounted(line: OrderLine, productIds: readonly string[] | null): BasisLine['why_not'] {
  if (line.gift_card) return 'gift_card'
  const isNamed = productIds !== null && productIds.length > 0 && isCovered(line, productIds)
  if (line.not_goods && !isNamed) return line.not_goods
  return isCovered(line, productIds) ? null : 'other_product'
}

/**
 * Whether the terms cover a line: by its product, or by that of the bundle that it is a part of. An empty list or `null` covers every
 * product and custom item.
 */
export function isCovered(
  { product_id, bundle_product_id }: Pick<OrderLine, 'product_id' | 'bundle_product_id'>,
  productIds: readonly string[] | null,
): boolean {
  if (productIds === null || productIds.length === 0) return true
  return [product_id, bundle_product_id].some((id) => typeof id === 'string' && productIds.includes(id))
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
