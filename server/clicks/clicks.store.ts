import { type RawBuilder, type Selectable, sql } from 'kysely'
import { inList, insertStatement, valuesTable } from '../platform/database/bulk-values.ts'
import { type Dialect, dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
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

/** What the counts of a link and day lack. */
export type UncountedSum = Omit<UncountedRow, 'id'>

const COUNTED = ['visits', 'unique_visits', 'clicks', 'untracked_visits'] as const
const UNCOUNTED = ['link_id', 'day', ...COUNTED] as const

/** PostgreSQL: the clicks in the rows of `batches`, a table like `uncounted_batches`, as `UncountedSum`. */
function clicksIn(batches: string): RawBuilder<UncountedSum> {
  return sql`
    select cast(click ->> 0 as uuid) as link_id, cast(click ->> 1 as int) as day, cast(click ->> 2 as int) as visits,
      cast(click ->> 3 as int) as unique_visits, cast(click ->> 4 as int) as clicks, cast(click ->> 5 as int) as untracked_visits
    from ${sql.table(batches)} as batch, json_array_elements(cast(batch.clicks as json)) as click`
}

/** All that the counts lack, as a table of `UncountedSum`. */
export function uncountedClicks(dialect: Dialect): RawBuilder<unknown> {
  const rows = sql`select ${namesOf(UNCOUNTED)} from uncounted_clicks`
  return dialect === 'sqlite' ? sql`(${rows})` : sql`(${rows} union all ${clicksIn('uncounted_batches')})`
}

/**
 * Removes what the counts lack, at most `limit` rows of each table. Returns the sums, on PostgreSQL one for each link and day, and whether
 * there may be more.
 */
export async function takeUncounted(
  tx: Tx,
  limit: number,
): Promise<{ sums: UncountedSum[]; isLast: boolean }> {
  const taken = sql<UncountedSum>`
    delete from uncounted_clicks where id in (select id from uncounted_clicks order by id limit ${sql.lit(limit)})
    returning ${namesOf(UNCOUNTED)}`
  if (dialectOf(tx) === 'sqlite') {
    const { rows: sums } = await taken.execute(tx)
    return { sums, isLast: sums.length < limit }
  }
  const { rows } = await sql<UncountedSum & { most: number }>`
    with single as (${taken}), batch as (
      delete from uncounted_batches where id in (select id from uncounted_batches limit ${sql.lit(limit)}) returning clicks)
    select link_id, day, ${sql.join(COUNTED.map((name) => sql`sum(${sql.ref(name)}) as ${sql.ref(name)}`))},
      greatest((select count(*) from single), (select count(*) from batch)) as most
    from (select * from single union all ${clicksIn('batch')}) as taken group by link_id, day`.execute(tx)
  return { sums: rows, isLast: (rows[0]?.most ?? 0) < limit }
}

function namesOf(columns: readonly string[]): RawBuilder<unknown> {
  return sql.join(columns.map((name) => sql.ref(name)))
}

/** Visits to add to the counts of a link. */
export interface VisitCount {
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
export async function visitCounts(db: Queries, linkIds: readonly string[]): Promise<VisitCount[]> {
  const dialect = dialectOf(db)
  const ofLinks = sql`link_id ${inList(dialect, 'uuid', linkIds)}`
  const { rows } = await sql<VisitCount>`
    select link_id, clicks as visits, unique_clicks as unique_visits from click_counts where ${ofLinks}
    union all
    select link_id, sum(visits), sum(unique_visits) from ${uncountedClicks(dialect)} as uncounted
    where ${ofLinks} group by link_id`.execute(db)
  return rows
}
