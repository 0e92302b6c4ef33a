import type { Queries } from '../platform/database.ts'
import { orderNamesBySale } from './sale-names.store.ts'

/** What people call a sale. */
export interface SaleName {
  orderId: string
  orderName: string | null
}

/** By sale id, some thousand at most. */
export async function saleNamesOf(db: Queries, saleIds: readonly string[]): Promise<Map<string, SaleName>> {
  const rows = await orderNamesBySale(db, [...new Set(saleIds)])
  return new Map(rows.map((row) => [row.id, { orderId: row.order_id, orderName: row.order_name }]))
}
