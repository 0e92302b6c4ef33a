import type { BillingCycleWire } from '../../shared/schemas/billing.ts'
import type { Platform } from '../platform/platform.ts'
import { itemsOf, type Walk } from '../platform/walk.ts'
import { listCycles } from './billing.service.ts'
import { countCycles } from './cycle-export.store.ts'
import { wireCycle } from './cycle-wire.ts'

/** Cycles of one merchant; with `null` of all, and with the merchant named. */
export function walkCycles(
  platform: Platform,
  merchantId: string | null,
): Walk<BillingCycleWire & { merchant_id?: string }> {
  return {
    count: (step) => countCycles(platform.database.reader, merchantId, step),
    async read(step) {
      const rows = await listCycles(platform, {
        merchantId,
        state: null,
        before: step.below,
        limit: step.size,
      })
      return itemsOf(step, rows, (row) => ({
        ...wireCycle(row),
        ...(merchantId === null && { merchant_id: row.merchant_id }),
      }))
    },
  }
}
