import type { Queries } from '../platform/database.ts'

export async function creditsById(
  db: Queries,
  ids: readonly string[],
): Promise<{ id: string; reference: string; reason: string }[]> {
  if (ids.length === 0) return []
  return db.selectFrom('credits').select(['id', 'reference', 'reason']).where('id', 'in', ids).execute()
}

export async function periodsById(
  db: Queries,
  ids: readonly string[],
): Promise<{ id: string; period_start: number; period_end: number }[]> {
  if (ids.length === 0) return []
  return db
    .selectFrom('billing_cycles')
    .select(['id', 'period_start', 'period_end'])
    .where('id', 'in', ids)
    .execute()
}
