import { DAY_MS } from '../../shared/durations.ts'
import type { Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { countDecided, countDecidedByMerchant } from './paid-rates.store.ts'
import { paidRate } from './pending-order.rule.ts'

/** Paid rates count the orders placed since then (epoch ms). */
export const paidRatesSince = ({ clock }: Pick<Platform, 'clock'>): number => clock.now() - 90 * DAY_MS

/** How many percent of each offer's pending orders of the last 90 days became sales, of those that are decided; `null` for too few. */
export async function paidRatesOf(
  platform: Pick<Platform, 'clock'>,
  db: Queries,
  offerIds: readonly string[],
) {
  const counts = await countDecided(db, offerIds, paidRatesSince(platform))
  return new Map(counts.map((count) => [count.id, paidRate(count)]))
}

/** The same for each merchant, with the counts, the most decided first. */
export async function paidRatesByMerchant(platform: Platform, limit: number) {
  const counts = await countDecidedByMerchant(platform.database.reader, paidRatesSince(platform), limit)
  return counts.map((count) => ({ ...count, rate: paidRate(count) }))
}
