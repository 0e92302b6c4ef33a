import { sql } from 'kysely'
import type { Queries, Tx } from '../platform/database.ts'
import { firstIdAt, NIL_ID } from '../platform/ids.ts'
import type { ClickMonth } from './click-months.rule.ts'

/** Clicks with smaller ids may be gone. Written before they go, so that whoever misses one finds the reason. */
const PRUNED = 'clicks pruned'
/** Every click waits behind a change of the table's parts, so the change itself must not wait long for others. */
const LOCK_PATIENCE = '500ms'

export async function readPruned(db: Queries | Tx): Promise<string> {
  const row = await db.selectFrom('watermarks').select('value').where('name', '=', PRUNED).executeTakeFirst()
  return row?.value ?? NIL_ID
}

/** Moves the mark to `before`; never back. */
export async function notePruned(tx: Tx, before: string): Promise<void> {
  await tx
    .insertInto('watermarks')
    .values({ name: PRUNED, value: before })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet({ value: before }).where('watermarks.value', '<', before),
    )
    .execute()
}

/** SQLite: takes up to `limit` clicks with smaller ids; answers how many. */
export async function deleteClicks(tx: Tx, before: string, limit: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('clicks')
    .where('id', 'in', (from) =>
      from.selectFrom('clicks').select('id').where('id', '<', before).orderBy('id').limit(limit),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** PostgreSQL: the parts of the table, each with the id that all of its own are smaller than; oldest first. */
export async function clickParts(db: Queries | Tx): Promise<{ table: string; to: string }[]> {
  const { rows } = await sql<{ table: string; to: string | null }>`
    select part.relname as "table",
      substring(pg_get_expr(part.relpartbound, part.oid) from 'TO \\(''([0-9a-f-]{36})''\\)') as "to"
    from pg_inherits join pg_class as part on part.oid = inhrelid
    where inhparent = 'clicks'::regclass`.execute(db)
  const bounded = rows.flatMap(({ table, to }) => (to === null ? [] : [{ table, to }]))
  return bounded.sort((a, b) => (a.to < b.to ? -1 : 1))
}

/** PostgreSQL: gives a month a table of its own. Fails when some of its clicks lie in the table of all others already. */
export async function addPart(tx: Tx, { table, start, end }: ClickMonth): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(LOCK_PATIENCE)}`.execute(tx)
  await sql`create table if not exists ${sql.table(table)} partition of clicks
    for values from (${sql.lit(firstIdAt(start))}) to (${sql.lit(firstIdAt(end))})`.execute(tx)
}

/** PostgreSQL: takes a month's table away with all that is in it. */
export async function dropPart(tx: Tx, table: string): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(LOCK_PATIENCE)}`.execute(tx)
  await sql`drop table if exists ${sql.table(table)}`.execute(tx)
}
