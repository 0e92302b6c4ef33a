import type { Queries } from '../platform/database.ts'
import { type PayoutRow, payoutsOfShare } from './payouts.store.ts'

/** The payouts, failed ones too, by which a creator's share of a billing cycle went out; oldest first. */
export function sharePayouts(db: Queries, cycleId: string, creatorId: string): Promise<PayoutRow[]> {
  return payoutsOfShare(db, cycleId, creatorId)
}
