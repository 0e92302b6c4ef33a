import { type Selectable, sql } from 'kysely'
import { inList, insertStatement, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'

export type ClickRow = Selectable<Schema['clicks']>
export type UncountedRow = Selectable<Schema['uncounted_clicks']>

export const insertClicks = insertStatement<ClickRow>('clicks', {
  id: 'uuid',
  link_id: 'uuid',
  tracked: 'int',
  kind: 'text',
  repeated: 'int',
  created_at: 'bigint',
})

export function clicksById(db: Queries | Tx, ids: readonly string[]): Promise<ClickRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  const known = sql<boolean>`id ${inList(dialectOf(db), 'uuid', ids)}`
  return db.selectFrom('clicks').selectAll().where(known).execute()
}

/** Tracked visits through a link with ids below `below`, newest first. Reads the table: it has no index by link. */
export function visitsOfLink(db: Queries, linkId: string, below: string, limit: number): Promise<ClickRow[]> {
  return db
    .selectFrom('clicks')
    .selectAll()
    .where('id', '<', below)
    .where('link_id', '=', linkId)
    .where('tracked', '=', 1)
    .where('kind', '=', 'visit')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Removes up to `limit` clicks with ids below `before`; returns how many. */
export async function deleteClicks(tx: Tx, before: string, limit: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('clicks')
    .where('id', 'in', (from) =>
      from.selectFrom('clicks').select('id').where('id', '<', before).orderBy('id').limit(limit),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** Removes up to `limit` rows of the clicks that are not counted yet, and returns them. */
export async function takeUncounted(tx: Tx, limit: number): Promise<UncountedRow[]> {
  return tx
    .deleteFrom('uncounted_clicks')
    .where('id', 'in', (from) => from.selectFrom('uncounted_clicks').select('id').orderBy('id').limit(limit))
    .returningAll()
    .execute()
}

/** Visits to add to the counts of a link. */
interface VisitCount {
  link_id: string
  visits: number
  unique_visits: number
}

const countedVisits = valuesTable<VisitCount>('counted', {
  link_id: 'uuid',
  visits: 'int',
  unique_visits: 'int',
})

export async function addToCounts(tx: Tx, counts: readonly VisitCount[]): Promise<void> {
  await sql`insert into click_counts (link_id, clicks, unique_clicks)
    select link_id, visits, unique_visits from ${countedVisits(dialectOf(tx), counts)} where true
    on conflict (link_id) do update set clicks = click_counts.clicks + excluded.clicks,
      unique_clicks = click_counts.unique_clicks + excluded.unique_clicks`.execute(tx)
}

/** The visits of each link, counted and not counted yet, a row or two each, all in one view of the database. */
export function visitCounts(db: Queries, linkIds: readonly string[]): Promise<VisitCount[]> {
  return db
    .selectFrom('click_counts')
    .select(['link_id', 'clicks as visits', 'unique_clicks as unique_visits'])
    .where('link_id', 'in', linkIds)
    .unionAll(
      db
        .selectFrom('uncounted_clicks')
        .select(({ fn }) => [
          'link_id',
          fn.sum<number>('visits').as('visits'),
          fn.sum<number>('unique_visits').as('unique_visits'),
        ])
        .where('link_id', 'in', linkIds)
        .groupBy('link_id'),
    )
    .execute()
}
