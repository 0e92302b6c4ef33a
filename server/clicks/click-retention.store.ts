import { type RawBuilder, sql } from 'kysely'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'
import { readWatermark } from '../platform/database/watermarks.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { ClickMonth } from './click-months.rule.ts'

/** Clicks with smaller ids may be gone. Written before they go, so that a missing click has a reason. */
const PRUNED = 'clicks pruned'
/** Every click waits behind a change of the table's parts, so the change itself must not wait long for others … */
const LOCK_PATIENCE = '500ms'
/** … nor take long: a new part is one after a look at all that lies in the table of all others. */
const CHANGE_PATIENCE = '1s'
/** https://www.postgresql.org/docs/current/errcodes-appendix.html: no lock, and no end, in time. */
const OUT_OF_PATIENCE = ['55P03', '57014']

/** PostgreSQL: holds what fits no month. */
type Others = { clicks_other: Schema['clicks'] }

/** A change of the table's parts that clicks would have had to wait for too long. Not tried again at once. */
export class ClicksHeldUp extends Error {
  constructor(cause: unknown) {
    super('clicks would have had to wait for a change of their table', { cause })
    this.name = 'ClicksHeldUp'
  }
}

export async function readPruned(db: Queries | Tx): Promise<string> {
  return (await readWatermark(db, PRUNED)) ?? NIL_ID
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

/** PostgreSQL: a part of the table, with the ids that it begins at (inclusive) and ends at (exclusive). */
export interface ClickPart {
  table: string
  from: string
  to: string
}

/** PostgreSQL: all parts but that of what fits none; oldest first. */
export async function clickParts(db: Queries | Tx): Promise<ClickPart[]> {
  const { rows } = await sql<{ table: string; from: string | null; to: string | null }>`
    select part.relname as "table",
      substring(pg_get_expr(part.relpartbound, part.oid) from 'FROM \\(''([0-9a-f-]{36})''\\)') as "from",
      substring(pg_get_expr(part.relpartbound, part.oid) from 'TO \\(''([0-9a-f-]{36})''\\)') as "to"
    from pg_inherits join pg_class as part on part.oid = inhrelid
    where inhparent = 'clicks'::regclass`.execute(db)
  const bounded = rows.flatMap(({ table, from, to }) =>
    to === null ? [] : [{ table, from: from ?? '', to }],
  )
  return bounded.sort((a, b) => (a.to < b.to ? -1 : 1))
}

/** PostgreSQL: whether a click with an id from `from` (inclusive) to `to` (exclusive) lies where what fits no month does. */
export async function isAmongOthers(db: Queries, from: string, to: string): Promise<boolean> {
  const first = await db
    .withTables<Others>()
    .selectFrom('clicks_other')
    .select('id')
    .where('id', '>=', from)
    .where('id', '<', to)
    // Along the key, whatever the planner thinks of how many there are.
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return first !== undefined
}

/** PostgreSQL: as `deleteClicks`, of what fits no month. */
export async function deleteOthers(tx: Tx, before: string, limit: number): Promise<number> {
  const { numDeletedRows } = await tx
    .withTables<Others>()
    .deleteFrom('clicks_other')
    .where('id', 'in', (from) =>
      from.selectFrom('clicks_other').select('id').where('id', '<', before).orderBy('id').limit(limit),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/**
 * PostgreSQL: gives a month a table of its own. Fails when some of its clicks lie in the table of all others already. By a function with the
 * owner's rights, since the service may run as a role that owns nothing.
 */
export function addPart(tx: Tx, { start }: ClickMonth): Promise<void> {
  const day = new Date(start).toISOString().slice(0, 10)
  return changeParts(tx, sql`select add_click_month(${day}::date)`)
}

/** PostgreSQL: takes a month's table away with all that is in it; one that is gone already stays so. */
export function dropPart(tx: Tx, table: string): Promise<void> {
  return changeParts(
    tx,
    sql`select drop_click_part(relname) from pg_inherits join pg_class on pg_class.oid = inhrelid
      where inhparent = 'clicks'::regclass and relname = ${table}`,
  )
}

/** Fails with `ClicksHeldUp` when it cannot be done in a moment. */
async function changeParts(tx: Tx, change: RawBuilder<unknown>): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(LOCK_PATIENCE)}`.execute(tx)
  await sql`set local statement_timeout = ${sql.lit(CHANGE_PATIENCE)}`.execute(tx)
  try {
    await change.execute(tx)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    throw OUT_OF_PATIENCE.includes(code) ? new ClicksHeldUp(error) : error
  }
}
