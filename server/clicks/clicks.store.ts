import { type Selectable, sql } from 'kysely'
import { inList, insertStatement } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { lockWatermark, readWatermark, setWatermark } from '../platform/database/watermarks.ts'
import { NIL_ID } from '../platform/ids.ts'

export type ClickRow = Selectable<Schema['clicks']>

/** The progress of the roll-up: `click_counts` contains the clicks with smaller ids. */
const WATERMARK = 'clicks'

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

export async function rolledUpTo(db: Queries | Tx): Promise<string> {
  return (await readWatermark(db, WATERMARK)) ?? NIL_ID
}

/** `rolledUpTo`, locked until the transaction ends, so that roll-ups take turns. */
export function lockRollUp(tx: Tx): Promise<string> {
  return lockWatermark(tx, WATERMARK, NIL_ID)
}

/** Adds the visits from `from` (an id, inclusive) to `to` (exclusive) to the counts, and moves the watermark to `to`. */
export async function addVisitsToCounts(tx: Tx, from: string, to: string): Promise<void> {
  await tx
    .insertInto('click_counts')
    .columns(['link_id', 'clicks', 'unique_clicks'])
    .expression((eb) =>
      eb
        .selectFrom('clicks')
        .select(({ fn }) => [
          'link_id',
          fn.countAll<number>().as('clicks'),
          fn.countAll<number>().filterWhere('repeated', '=', 0).as('unique_clicks'),
        ])
        .where('id', '>=', from)
        .where('id', '<', to)
        .where('kind', '=', 'visit')
        .where('tracked', '=', 1)
        .groupBy('link_id'),
    )
    .onConflict((conflict) =>
      conflict.column('link_id').doUpdateSet((eb) => ({
        clicks: eb('click_counts.clicks', '+', eb.ref('excluded.clicks')),
        unique_clicks: eb('click_counts.unique_clicks', '+', eb.ref('excluded.unique_clicks')),
      })),
    )
    .execute()
  await setWatermark(tx, WATERMARK, to)
}

export interface VisitCount {
  link_id: string
  visits: number
  unique_visits: number
  /** The watermark in the statement's own view of the database; `null` before the first roll-up. */
  watermark: string | null
}

/** Rolled-up visits and the ones from the id `tail` on, a row each, all in one view of the database. */
export function visitCounts(db: Queries, linkIds: readonly string[], tail: string): Promise<VisitCount[]> {
  const watermark = db.selectFrom('watermarks').select('value').where('name', '=', WATERMARK)
  return db
    .selectFrom('click_counts')
    .select(['link_id', 'clicks as visits', 'unique_clicks as unique_visits', watermark.as('watermark')])
    .where('link_id', 'in', linkIds)
    .unionAll(
      db
        .selectFrom('clicks')
        .select(({ fn }) => [
          'link_id',
          fn.countAll<number>().as('visits'),
          fn.countAll<number>().filterWhere('repeated', '=', 0).as('unique_visits'),
          watermark.as('watermark'),
        ])
        .where('id', '>=', tail)
        .where('link_id', 'in', linkIds)
        .where('kind', '=', 'visit')
        .where('tracked', '=', 1)
        .groupBy('link_id'),
    )
    .execute()
}
