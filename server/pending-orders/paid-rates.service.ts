import { DAY_MS } from '../../shared/durations.ts'
import type { Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { countDecided, countDecidedByMerchant } from './paid-rates.store.ts'
import { paidRate } from './pending-order.rule.ts'

/** The days that paid rates look at, by the placement of the orders. */
const DAYS = 90

/** How many percent of each offer's pending orders of the last 90 days became sales, of those that are decided; `null` for too few. */
export async function paidRatesOf(
  { clock }: Pick<Platform, 'clock'>,
  db: Queries,
  offerIds: readonly string[],
) {
  const counts = await countDecided(db, offerIds, clock.now() - DAYS * DAY_MS)
  return new Map(counts.map((count) => [count.id, paidRate(count)]))
}

/** The same for each merchant, with the counts, the most decided first. */
export async function paidRatesByMerchant({ clock, database }: Platform, limit: number) {
  const counts = await countDecidedByMerchant(database.reader, clock.now() - DAYS * DAY_MS, limit)
  return counts.map((count) => ({ ...count, rate: paidRate(count) }))
}
