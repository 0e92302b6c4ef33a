import type { Queries } from '../platform/database.ts'
import { sumByLink } from './sales.store.ts'

/** Accepted sales and their commission (paisa) by link; links without any are missing. */
export function linkEarnings(
  db: Queries,
  linkIds: readonly string[],
): Promise<Map<string, { accepted_sales: number; commission: number }>> {
  return sumByLink(db, linkIds)
}
