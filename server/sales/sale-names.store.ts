import type { Queries } from '../platform/database.ts'

export async function orderNamesBySale(
  db: Queries,
  saleIds: readonly string[],
): Promise<{ id: string; order_id: string; order_name: string | null }[]> {
  if (saleIds.length === 0) return []
  return db.selectFrom('sales').select(['id', 'order_id', 'order_name']).where('id', 'in', saleIds).execute()
}
