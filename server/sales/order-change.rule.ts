import { type CouponTimes, couponInForce, isPaid, readReceipt } from './accept-sale.rule.ts'
import type { SaleOrder } from './sale-facts.ts'

/** The parts of an order that determine who is paid and how much. */
export type OrderPart = 'tracking_reference' | 'coupon_code' | 'amounts' | 'created_at' | 'refunded'

/** An order with those of its discount codes that belong or belonged to links of its merchant. */
export interface ComparedOrder extends SaleOrder {
  coupons?: readonly CouponTimes[]
}

/** The parts in which a later report of an order differs from the decided one. */
export function changedParts(decided: ComparedOrder, reported: ComparedOrder): OrderPart[] {
  const changed: OrderPart[] = []
  if (referenceIn(decided) !== referenceIn(reported)) changed.push('tracking_reference')
  if (codeIn(decided) !== codeIn(reported, decided.coupons)) changed.push('coupon_code')
  if (amountsIn(decided) !== amountsIn(reported)) changed.push('amounts')
  if (decided.created_at !== reported.created_at) changed.push('created_at')
  return changed
}

/**
 * The changes to flag when a sale is decided again because its order is now paid. Amounts can change, because orders are edited
 * before they are paid. The creation time, an existing reference and a coupon code in force cannot.
 */
export function changedBeforePayment(decided: ComparedOrder, reported: ComparedOrder): OrderPart[] {
  return changedParts(decided, reported).filter(
    (part) =>
      part === 'created_at' ||
      (part === 'tracking_reference' && decided.tracking_source !== null) ||
      (part === 'coupon_code' && codeIn(decided) !== null),
  )
}

/** Whether nothing of what was paid for an order, or was to be paid, is left to the store. */
export function isGivenBack({
  financial_status,
  cancelled,
}: Pick<SaleOrder, 'financial_status' | 'cancelled'>): boolean {
  return cancelled || financial_status === 'refunded' || financial_status === 'voided'
}

/** A reference that is not an id counts as none. */
function referenceIn(order: SaleOrder): string {
  return order.tracking_reference ?? ''
}

/** The code that is credited. What was `known` of a code when the order was decided counts: a later change of its link does not. */
function codeIn(
  { coupons = [], ...order }: ComparedOrder,
  known: readonly CouponTimes[] = [],
): string | null {
  const asDecided = coupons.map((coupon) => known.find(({ code }) => code === coupon.code) ?? coupon)
  return couponInForce({ order, coupons: asDecided })?.code ?? null
}

function amountsIn({ currency, taxes_included, lines, amount_refunded }: SaleOrder): string {
  const amounts = lines.map((line) => [
    line.product_id,
    line.quantity,
    line.original_quantity,
    line.unit_price,
    line.discount,
    line.tax,
    line.gift_card,
  ])
  return JSON.stringify([currency, taxes_included, amounts, amount_refunded])
}

/** A report of an order in a batch. */
export interface ComparedReport {
  /** Identifies store and order. */
  key: string
  order: ComparedOrder
  /** The click ids in all its places. */
  references?: readonly (string | null)[]
  /** False when the order was known and the report changed nothing. */
  decided: boolean
}

/**
 * The changed parts of each report, in order, compared with the report that its sale was based on at that point. `receipts`: of the
 * sales before the batch, by key.
 */
export function changesInTurn(
  receipts: ReadonlyMap<string, string>,
  reports: readonly ComparedReport[],
): OrderPart[][] {
  const decidedOn = new Map<string, ComparedOrder | null>()
  return reports.map(({ key, order: reported, references = [], decided }) => {
    const former = decidedOn.has(key) ? decidedOn.get(key) : decidedOrder(receipts.get(key) ?? '')
    if (decided) decidedOn.set(key, reported)
    if (!former) return []
    // The decision may have passed over what stands in earlier places.
    const { tracking_reference } = former
    const isThere = !decided && tracking_reference !== null && references.includes(tracking_reference)
    const order = isThere ? { ...reported, tracking_reference } : reported
    if (decided) return changedBeforePayment(former, order)
    const isRefunded = isPaid(former) && isGivenBack(order)
    return [...changedParts(former, order), ...(isRefunded ? (['refunded'] as const) : [])]
  })
}

/** The order on a receipt; `null` if it is unreadable. */
function decidedOrder(receipt: string): ComparedOrder | null {
  const facts = readReceipt(receipt)?.facts
  return facts ? { ...facts.order, coupons: facts.coupons ?? [] } : null
}
