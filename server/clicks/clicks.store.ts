import { type Selectable, sql } from 'kysely'
import { inList, insertStatement, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { ScanPage, ScanScope } from '../platform/database/keyset-scan.ts'
import type { Schema } from '../platform/database/schema.ts'
import { firstIdAt } from '../platform/ids.ts'

/** A slot of uncounted clicks. */
export const SLOT_MS = 15 * 60_000

export type ClickRow = Selectable<Schema['clicks']>
export type UncountedRow = Selectable<Schema['uncounted_clicks']>

export const insertClicks = insertStatement<ClickRow>('clicks', {
  id: 'uuid',
  link_id: 'uuid',
  tracked: 'int',
  kind: 'text',
  repeated: 'int',
  created_at: 'bigint',
  sub_id: 'text',
})

export function clicksById(db: Queries | Tx, ids: readonly string[]): Promise<ClickRow[]> {
  if (ids.length === 0) return Promise.resolve([])
  const known = sql<boolean>`id ${inList(dialectOf(db), 'uuid', ids)}`
  return db.selectFrom('clicks').selectAll().where(known).execute()
}

/** Tracked visits through a link before `before` (epoch ms), newest first: for the operator's tools, since it reads the table. */
export function earlierVisits(db: Queries, linkId: string, before: number, limit: number) {
  return db
    .selectFrom('clicks')
    .selectAll()
    .where('id', '<', firstIdAt(before))
    .where('link_id', '=', linkId)
    .where('tracked', '=', 1)
    .where('kind', '=', 'visit')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/**
 * A page of clicks; `created_at` is `null` for one outside the scope. Clicks have no index but their key, so every scan passes all of them
 * by: a search for the next own one would have no bound.
 */
export function clicksOfPage(db: Queries, scope: ScanScope, step: ScanPage) {
  const page = db.selectFrom('clicks').selectAll().where('id', '<', step.below)
  const mine =
    scope === 'all'
      ? sql`link.id is not null`
      : 'merchantId' in scope
        ? sql`link.merchant_id = ${scope.merchantId}`
        : sql`link.creator_id = ${scope.creatorId}`
  return db
    .selectFrom(page.orderBy('id', 'desc').limit(step.size).as('click'))
    .leftJoin('affiliate_links as link', 'link.id', 'click.link_id')
    .select(['click.id', 'link.slug', 'click.tracked', 'click.kind', 'click.sub_id'])
    .select(sql<number | null>`case when ${mine} then click.created_at end`.as('created_at'))
    .orderBy('click.id', 'desc')
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

const countedVisits = valuesTable<Pick<UncountedRow, 'link_id' | 'visits' | 'unique_visits'>>('counted', {
  link_id: 'uuid',
  visits: 'int',
  unique_visits: 'int',
})

/** In the order of the links, so that two transactions lock them in the same order. */
export async function addToCounts(tx: Tx, rows: readonly UncountedRow[]): Promise<void> {
  await sql`insert into click_counts (link_id, clicks, unique_clicks)
    select link_id, sum(visits), sum(unique_visits) from ${countedVisits(dialectOf(tx), rows)}
    group by link_id order by link_id
    on conflict (link_id) do update set clicks = click_counts.clicks + excluded.clicks,
      unique_clicks = click_counts.unique_clicks + excluded.unique_clicks`.execute(tx)
}

type DayRow = Selectable<Schema['click_days']>

const visitDays = valuesTable<DayRow>('counted', {
  link_id: 'uuid',
  sub_id: 'text',
  day: 'int',
  visits: 'int',
  unique_visits: 'int',
})

/** As `addToCounts`. */
export async function addToClickDays(tx: Tx, rows: readonly DayRow[]): Promise<void> {
  await sql`insert into click_days (link_id, sub_id, day, visits, unique_visits)
    select link_id, sub_id, day, sum(visits), sum(unique_visits) from ${visitDays(dialectOf(tx), rows)}
    where visits <> 0 or unique_visits <> 0
    group by link_id, sub_id, day order by link_id, sub_id, day
    on conflict (link_id, sub_id, day) do update set visits = click_days.visits + excluded.visits,
      unique_visits = click_days.unique_visits + excluded.unique_visits`.execute(tx)
}

/** Tracked visits: all of them, and those that repeat none of the same visitor within the hour. */
export interface Visits {
  all: number
  unique: number
}

/**
 * The tracked visits of each link, counted and not counted yet, exact to the last click on disk; bots, prefetches, HEAD requests,
 * embedded elements and clicks that could not earn are left out. Links without any are missing.
 */
export async function countVisits(db: Queries, linkIds: readonly string[]): Promise<Map<string, Visits>> {
  const links = inList(dialectOf(db), 'uuid', linkIds)
  const { rows } = await sql<Visits & { link_id: string }>`
    select link_id, sum(visits) as "all", sum(unique_visits) as "unique" from (
      select link_id, clicks as visits, unique_clicks as unique_visits from click_counts where link_id ${links}
      union all
      select link_id, visits, unique_visits from uncounted_clicks where link_id ${links}
    ) as visits group by link_id`.execute(db)
  return new Map(rows.map(({ link_id, ...visits }) => [link_id, visits]))
}

export type VisitorRow = Selectable<Schema['counted_visitors']>

/** A visit whose visitor was not counted within the hour, as far as one process knows. */
export interface FirstVisit extends VisitorRow {
  /** Empty for none. */
  sub_id: string
}

const firstVisits = valuesTable<FirstVisit>('visit', {
  link_id: 'uuid',
  visitor: 'text',
  counted_at: 'bigint',
  sub_id: 'text',
})

/**
 * PostgreSQL: enters visits whose visitor was not counted on the link within `ms`, and takes the other ones off the unique visits. Pass them
 * in one order, so that two transactions do not wait for each other.
 */
export async function compareVisitors(tx: Tx, visits: readonly FirstVisit[], ms: number): Promise<void> {
  const values = firstVisits('postgresql', visits)
  await sql`with counted as (
      insert into counted_visitors (link_id, visitor, counted_at)
      select link_id, visitor, counted_at from ${values}
      on conflict (link_id, visitor) do update set counted_at = excluded.counted_at
        where abs(excluded.counted_at - counted_visitors.counted_at) >= ${sql.lit(ms)}
      returning link_id, visitor)
    insert into uncounted_clicks (id, slot, sub_id, link_id, visits, unique_visits, clicks, untracked_visits)
    select gen_random_uuid(), counted_at / ${sql.lit(SLOT_MS)}, sub_id, link_id, 0, -1, 0, 0 from ${values}
    where (link_id, visitor) not in (select link_id, visitor from counted)`.execute(tx)
}

export async function deleteVisitorsBefore(tx: Tx, time: number): Promise<void> {
  await tx.deleteFrom('counted_visitors').where('counted_at', '<', time).execute()
}
