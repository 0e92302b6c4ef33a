import type { Tx } from '../platform/database/database.ts'
import { addToDays, type DailyVisits } from './watches.store.ts'

/** Adds clicks to the totals by link and day, which the watch over conversions reads. Those of day 0 belong to no day. */
export async function addDailyVisits(tx: Tx, visits: readonly DailyVisits[]): Promise<void> {
  const dated = visits.filter(({ day }) => day > 0)
  if (dated.length > 0) await addToDays(tx, dated)
}
