import { timesRounded } from '../../shared/line-amount.ts'
import type { Paisa } from '../../shared/money.ts'
import type { RejectionReason } from '../../shared/rejection-reasons.ts'
import { shareOfRemaining } from '../shopify/order-amounts.rule.ts'
import type { ExportedOrder } from '../shopify/order-export.ts'
import type { OrderLine } from '../shopify/order-lines.ts'
import { isPaid } from './accept-sale.rule.ts'
import type { SaleOrder } from './sale-facts.ts'

/**
 * What became of an order of the store's export. One that is not paid, canceled, or paid before the store was connected could not be
 * reported. `connectedAt` in epoch ms.
 */
export function compareOrder(
  exported: ExportedOrder,
  sale: { rejection_reason: RejectionReason | null } | null,
  connectedAt: number,
): 'not_paid' | 'before_connection' | 'never_reported' | 'rejected' | 'accepted' {
  if (!isPaid(exported)) return 'not_paid'
  if (sale) return sale.rejection_reason === null ? 'accepted' : 'rejected'
  const paidAt = exported.paid_at ?? exported.created_at
  return paidAt !== null && paidAt < connectedAt ? 'before_connection' : 'never_reported'
}

/**
 * The reported amount that should equal the export's subtotal, if it does not. Both are the lines after discounts, before shipping. An
 * edited order may be exported with its lines as ordered or as they are after the edit. `order`: `null` if its receipt cannot be read.
 */
export function otherSubtotal(
  { subtotal, currency }: ExportedOrder,
  order: Pick<SaleOrder, 'currency' | 'lines'> | null,
): Paisa | null {
  if (subtotal === null || order === null) return null
  const { lines } = order
  const totalOf = (netOf: (line: OrderLine) => Paisa) => lines.reduce((sum, line) => sum + netOf(line), 0)
  const ordered = totalOf(
    (line) => timesRounded(line.unit_price, line.original_quantity) - timesRounded(line.discount, 1),
  )
  // Discounts belong to the pieces as ordered.
  const edited = totalOf(
    (line) => timesRounded(line.unit_price, line.quantity) - shareOfRemaining(line.discount, line),
  )
  if (currency === order.currency && (subtotal === ordered || subtotal === edited)) return null
  return ordered
}
