import { readReceipt } from './accept-sale.rule.ts'
import type { SaleOrder } from './sale-facts.ts'

/** The parts of an order that determine who is paid and how much. */
export type OrderPart = 'tracking_reference' | 'amounts' | 'created_at'

/** The parts in which a later report of an order differs from the decided one. */
export function changedParts(decided: SaleOrder, reported: SaleOrder): OrderPart[] {
  const changed: OrderPart[] = []
  if (referenceIn(decided) !== referenceIn(reported)) changed.push('tracking_reference')
  if (amountsIn(decided) !== amountsIn(reported)) changed.push('amounts')
  if (decided.created_at !== reported.created_at) changed.push('created_at')
  return changed
}

/**
 * The changes to flag when a sale is decided again because its order is now paid. Amounts can change, because orders are edited
 * before they are paid. The creation time and an existing reference cannot.
 */
export function changedBeforePayment(decided: SaleOrder, reported: SaleOrder): OrderPart[] {
  return changedParts(decided, reported).filter(
    (part) => part === 'created_at' || (part === 'tracking_reference' && decided.tracking_source !== null),
  )
}

/** A reference that is not an id counts as none. */
function referenceIn(order: SaleOrder): string {
  return order.tracking_reference ?? ''
}

function amountsIn({ currency, taxes_included, lines }: SaleOrder): string {
  const amounts = lines.map((line) => [
    line.product_id,
    line.quantity,
    line.original_quantity,
    line.unit_price,
    line.discount,
    line.tax,
    line.gift_card,
  ])
  return JSON.stringify([currency, taxes_included, amounts])
}

/** A report of an order in a batch. */
export interface ComparedReport {
  /** Identifies store and order. */
  key: string
  order: SaleOrder
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
  const decidedOn = new Map<string, SaleOrder | null>()
  return reports.map(({ key, order: reported, references = [], decided }) => {
    const former = decidedOn.has(key) ? decidedOn.get(key) : decidedOrder(receipts.get(key))
    if (decided) decidedOn.set(key, reported)
    if (!former) return []
    // The decision may have passed over what stands in earlier places.
    const { tracking_reference } = former
    const isThere = !decided && tracking_reference !== null && references.includes(tracking_reference)
    const order = isThere ? { ...reported, tracking_reference } : reported
    return decided ? changedBeforePayment(former, order) : changedParts(former, order)
  })
}

/** The order on a receipt; `null` without a readable receipt. */
function decidedOrder(receipt: string | undefined): SaleOrder | null {
  return receipt === undefined ? null : (readReceipt(receipt)?.facts.order ?? null)
}
