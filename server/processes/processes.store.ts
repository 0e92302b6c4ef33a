import { type RawBuilder, type Selectable, sql } from 'kysely'
import { type Dialect, dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import type { Schema } from '../platform/database/schema.ts'

export type ProcessRow = Selectable<Schema['processes']>

/** The database's own time, epoch ms, even within a transaction. */
function databaseTime(dialect: Dialect): RawBuilder<number> {
  return dialect === 'postgresql'
    ? sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`
    : sql<number>`cast(unixepoch('subsec') * 1000 as integer)`
}

export async function readDatabaseTime(db: Queries): Promise<number> {
  const { rows } = await sql<{ at: number }>`select ${databaseTime(dialectOf(db))} as at`.execute(db)
  return rows[0]?.at ?? 0
}

/** Adds the process, or renews its heartbeat. */
export async function upsertProcess(tx: Tx, row: Omit<ProcessRow, 'seen_at'>): Promise<void> {
  const seen = { seen_at: databaseTime(dialectOf(tx)) }
  await tx
    .insertInto('processes')
    .values({ ...row, ...seen })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(seen))
    .execute()
}

/** Processes with a heartbeat within `ms`. */
export function processesSeenWithin(db: Queries | Tx, ms: number): Promise<ProcessRow[]> {
  return db
    .selectFrom('processes')
    .selectAll()
    .where(sql<boolean>`seen_at >= ${databaseTime(dialectOf(db))} - ${sql.lit(ms)}`)
    .orderBy('id')
    .execute()
}

export async function deleteProcessesUnseenFor(tx: Tx, ms: number): Promise<void> {
  const isOld = sql<boolean>`seen_at < ${databaseTime(dialectOf(tx))} - ${sql.lit(ms)}`
  await tx.deleteFrom('processes').where(isOld).execute()
}

export async function deleteProcess(tx: Tx, id: string): Promise<void> {
  await tx.deleteFrom('processes').where('id', '=', id).execute()
}
