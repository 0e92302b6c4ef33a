import type { Queries } from '../platform/database.ts'
import type { SaleRow } from './sales.store.ts'

const COLUMNS = [
  'id',
  'store_id',
  'merchant_id',
  'order_id',
  'order_name',
  'acceptance_status',
  'rejection_reason',
  'creator_id',
  'net_amount',
  'commission_rate',
  'commission',
  'platform_fee',
  'event_id',
  'receipt',
] as const

/** A sale with what was decided and why. */
export type DecidedSaleRow = Pick<SaleRow, (typeof COLUMNS)[number]>

export async function salesById(db: Queries, ids: readonly string[]): Promise<DecidedSaleRow[]> {
  if (ids.length === 0) return []
  return db.selectFrom('sales').select(COLUMNS).where('id', 'in', ids).execute()
}

/** Sales as their former decisions had them, of those that were decided again. */
export async function formerSalesById(db: Queries, ids: readonly string[]): Promise<FormerSaleRow[]> {
  if (ids.length === 0) return []
  return db
    .selectFrom('sale_decisions as former')
    .innerJoin('sales as sale', 'sale.id', 'former.sale_id')
    .select(['sale.id', 'sale.store_id', 'sale.merchant_id', 'sale.order_id'])
    .select(['former.event_id', 'former.receipt'])
    .where('former.sale_id', 'in', ids)
    .execute()
}

export type FormerSaleRow = Pick<
  SaleRow,
  'id' | 'store_id' | 'merchant_id' | 'order_id' | 'event_id' | 'receipt'
>
