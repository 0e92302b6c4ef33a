import type { PayoutWire } from '../../shared/schemas/payouts.ts'
import type { Platform } from '../platform/platform.ts'
import { itemsOf, type Step, type Walk, type WalkScope } from '../platform/walk.ts'
import { displayNamesOf } from '../users/users.service.ts'
import { countPayouts } from './payout-export.store.ts'
import { wirePart, wirePayout } from './payout-wire.ts'
import { listPayoutParts, listPayouts } from './payouts.service.ts'

/** Payouts as a creator sees own ones and a merchant the parts of own cycles; for `all` whole, and with their creator. */
export function walkPayouts(platform: Platform, scope: WalkScope): Walk<PayoutWire> {
  return {
    count: (step) => countPayouts(platform.database.reader, scope, step),
    async read(step) {
      const filter = { state: null, before: step.below, limit: step.size }
      if (scope === 'all') return readAll(platform, step)
      if ('merchantId' in scope) {
        return itemsOf(step, await listPayoutParts(platform, scope.merchantId, filter), wirePart)
      }
      return itemsOf(step, await listPayouts(platform, scope.creatorId, filter), wirePayout)
    },
  }
}

async function readAll(platform: Platform, step: Step) {
  const rows = await listPayouts(platform, null, { state: null, before: step.below, limit: step.size })
  const names = await displayNamesOf(platform.database.reader, [
    ...new Set(rows.map((row) => row.creator_id)),
  ])
  return itemsOf(step, rows, (row) => ({
    ...wirePayout(row),
    creator: { id: row.creator_id, display_name: names.get(row.creator_id) ?? '' },
  }))
}
