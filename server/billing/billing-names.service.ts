import type { Queries } from '../platform/database.ts'
import { creditsById, periodsById } from './billing-names.store.ts'

export interface CreditName {
  /** The operator's own number for it. */
  reference: string
  reason: string
}

/** Epoch ms. */
export interface CyclePeriod {
  start: number
  end: number
}

/** By credit id, some thousand at most. */
export async function creditNamesOf(db: Queries, ids: readonly string[]): Promise<Map<string, CreditName>> {
  const rows = await creditsById(db, [...new Set(ids)])
  return new Map(rows.map(({ id, reference, reason }) => [id, { reference, reason }]))
}

/** By billing cycle id, some thousand at most. */
export async function cyclePeriodsOf(db: Queries, ids: readonly string[]): Promise<Map<string, CyclePeriod>> {
  const rows = await periodsById(db, [...new Set(ids)])
  return new Map(rows.map((row) => [row.id, { start: row.period_start, end: row.period_end }]))
}
