import type { Sale } from '../../shared/schemas/sales.ts'
import type { Platform } from '../platform/platform.ts'
import { itemsOf, type Walk, type WalkScope } from '../platform/walk.ts'
import { countSales, readSales } from './sale-export.store.ts'
import { wireSale } from './sale-wire.ts'

/** Sales as their merchant or creator sees them; for `all` as merchants do, and with the merchant named. */
export function walkSales(platform: Platform, scope: WalkScope): Walk<Sale & { merchant_id?: string }> {
  const db = platform.database.reader
  const shape = (row: Awaited<ReturnType<typeof readSales>>[number]) => {
    if (scope === 'all') return { ...wireSale(row, 'merchant'), merchant_id: row.merchant_id }
    return wireSale(row, 'merchantId' in scope ? 'merchant' : 'creator')
  }
  return {
    count: (step) => countSales(db, scope, step),
    read: async (step) => itemsOf(step, await readSales(db, scope, step), shape),
  }
}
