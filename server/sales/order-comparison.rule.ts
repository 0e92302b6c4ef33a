import { timesRounded } from '../../shared/line-amount.ts'
import type { Paisa } from '../../shared/money.ts'
import type { RejectionReason } from '../../shared/rejection-reasons.ts'
import type { ExportedOrder } from '../shopify/order-export.ts'
import type { OrderLine } from '../shopify/order-facts.ts'
import { isPaid } from './accept-sale.rule.ts'
import { shareOfRemaining } from './commission.rule.ts'
import type { SaleOrder } from './sale-facts.ts'

/** A sale as far as it is compared with an exported order. */
export interface ComparedSale {
  rejection_reason: RejectionReason | null
  /** `null` for a rejected sale, and for a receipt that cannot be read. */
  order: Pick<SaleOrder, 'currency' | 'lines'> | null
}

export type Comparison =
  /** Not paid, canceled, or paid before the store was connected: it could not be reported. */
  | { kind: 'not_due'; why: 'not_paid' | 'before_connection' }
  | { kind: 'never_reported' }
  | { kind: 'rejected'; reason: string }
  | { kind: 'accepted' }

/** What became of an order of the store's export. `connectedAt` in epoch ms. */
export function compareOrder(
  exported: ExportedOrder,
  sale: ComparedSale | null,
  connectedAt: number,
): Comparison {
  if (!isPaid(exported)) return { kind: 'not_due', why: 'not_paid' }
  if (sale) {
    return sale.rejection_reason === null
      ? { kind: 'accepted' }
      : { kind: 'rejected', reason: sale.rejection_reason }
  }
  const paidAt = exported.paid_at ?? exported.created_at
  if (paidAt !== null && paidAt < connectedAt) return { kind: 'not_due', why: 'before_connection' }
  return { kind: 'never_reported' }
}

/**
 * The reported amount that should equal the export's subtotal, if it does not. Both are the lines after discounts, before shipping. An
 * edited order may be exported with its lines as ordered or as they are after the edit.
 */
export function otherSubtotal({ subtotal, currency }: ExportedOrder, sale: ComparedSale): Paisa | null {
  if (subtotal === null || sale.order === null) return null
  const { lines } = sale.order
  const totalOf = (netOf: (line: OrderLine) => Paisa) => lines.reduce((sum, line) => sum + netOf(line), 0)
  const ordered = totalOf(
    (line) => timesRounded(line.unit_price, line.original_quantity) - timesRounded(line.discount, 1),
  )
  // Discounts belong to the pieces as ordered.
  const edited = totalOf(
    (line) => timesRounded(line.unit_price, line.quantity) - shareOfRemaining(line.discount, line),
  )
  if (currency === sale.order.currency && (subtotal === ordered || subtotal === edited)) return null
  return ordered
}
