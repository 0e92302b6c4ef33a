import { type Selectable, sql } from 'kysely'
import { bulkInsert, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { UncountedRow } from './clicks.store.ts'

export type VisitorRow = Selectable<Schema['counted_visitors']>

const visitorValues = valuesTable<VisitorRow>('visit', {
  link_id: 'uuid',
  visitor: 'text',
  counted_at: 'bigint',
})

/**
 * Enters the visits whose visitor was not counted on the link within `ms`, and returns their links and visitors as one text each. Pass
 * them in one order, so that two transactions do not wait for each other.
 */
export async function countVisitors(tx: Tx, visits: readonly VisitorRow[], ms: number): Promise<Set<string>> {
  const { rows } = await sql<{ link_id: string; visitor: string }>`
    insert into counted_visitors (link_id, visitor, counted_at)
    select link_id, visitor, counted_at from ${visitorValues(dialectOf(tx), visits)} where true
    on conflict (link_id, visitor) do update set counted_at = excluded.counted_at
      where abs(excluded.counted_at - counted_visitors.counted_at) >= ${sql.lit(ms)}
    returning link_id, visitor`.execute(tx)
  return new Set(rows.map(({ link_id, visitor }) => link_id + visitor))
}

const insertUncounted = bulkInsert<UncountedRow>('uncounted_clicks', {
  id: 'uuid',
  link_id: 'uuid',
  day: 'int',
  visits: 'int',
  unique_visits: 'int',
  clicks: 'int',
  untracked_visits: 'int',
})

/** Takes one unique visit off each of these links, as a link may occur several times. */
export async function subtractUnique(
  tx: Tx,
  visits: readonly { id: string; link_id: string }[],
): Promise<void> {
  if (visits.length === 0) return
  await insertUncounted(
    tx,
    visits.map((visit) => ({
      ...visit,
      ...{ day: 0, visits: 0, unique_visits: -1, clicks: 0, untracked_visits: 0 },
    })),
  )
}

export async function deleteVisitorsBefore(tx: Tx, time: number): Promise<void> {
  await tx.deleteFrom('counted_visitors').where('counted_at', '<', time).execute()
}
