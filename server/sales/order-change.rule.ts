import type { SaleFacts, SaleOrder } from './sale-facts.ts'

/** What about an order decides whom it pays and how much. */
export type OrderPart = 'tracking_reference' | 'amounts' | 'created_at'

/** In which parts a later report of an order differs from the one that was decided on. */
export function changedParts(decided: SaleOrder, reported: SaleOrder): OrderPart[] {
  const changed: OrderPart[] = []
  if (referenceIn(decided) !== referenceIn(reported)) changed.push('tracking_reference')
  if (amountsIn(decided) !== amountsIn(reported)) changed.push('amounts')
  if (decided.created_at !== reported.created_at) changed.push('created_at')
  return changed
}

/**
 * What needs a person's look when a sale is decided again because its order is paid by now. Amounts may differ, since orders are
 * edited before they are paid; a reference that was there stays, and so does the time of the order.
 */
export function changedBeforePayment(decided: SaleOrder, reported: SaleOrder): OrderPart[] {
  return changedParts(decided, reported).filter(
    (part) => part === 'created_at' || (part === 'tracking_reference' && decided.tracking_source !== null),
  )
}

/** Something in the reference's place that is no id counts as none. */
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

/** A report of an order in a batch, and what was done with it. */
export interface JudgedReport {
  /** Of its store and order. */
  key: string
  order: SaleOrder
  /** Whether it was decided on; otherwise its order was known and nothing changed. */
  decided: boolean
}

/**
 * The changed parts of each report in turn, compared with the report that its sale rested on then. `receipts` are those of the sales
 * that were there before the batch, by key.
 */
export function changesInTurn(
  receipts: ReadonlyMap<string, string>,
  reports: readonly JudgedReport[],
): OrderPart[][] {
  const decidedOn = new Map<string, SaleOrder | null>()
  return reports.map(({ key, order, decided }) => {
    const former = decidedOn.has(key) ? decidedOn.get(key) : orderOn(receipts.get(key))
    if (decided) decidedOn.set(key, order)
    if (!former) return []
    return decided ? changedBeforePayment(former, order) : changedParts(former, order)
  })
}

/** `null` without a receipt, or for one that cannot be read, which `ledger verify` reports. */
function orderOn(receipt: string | undefined): SaleOrder | null {
  if (receipt === undefined) return null
  try {
    const { facts } = JSON.parse(receipt) as { facts?: Partial<SaleFacts> }
    return facts?.order ?? null
  } catch {
    return null
  }
}
