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
