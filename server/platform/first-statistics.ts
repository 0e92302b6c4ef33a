import { sql } from 'kysely'
import type { OpenDatabase } from './open-database.ts'

/** What is smaller is read quickly in any way, and what is learnt of a few rows would be wrong for the many to come. */
const LEAST_BYTES = 1024 * 1024

/**
 * A PostgreSQL database that was restored a moment ago knows nothing of its rows until its own housekeeping comes by, and plans as if
 * there were few: a page deep in the offer list is then made by sorting half of all offers. So tables that were never looked at are
 * looked at now. Answers their names; only the tables' owner can do it.
 */
export async function gatherFirstStatistics(database: OpenDatabase): Promise<string[]> {
  if (database.dialect !== 'postgresql') return []
  const { rows } = await sql<{ name: string }>`select relname as name from pg_class
    where relkind = 'r' and relnamespace = (select oid from pg_namespace where nspname = current_schema())
      and pg_has_role(relowner, 'usage') and reltuples <= 0 and pg_relation_size(oid) >= ${LEAST_BYTES} order by relname`.execute(
    database.writer,
  )
  for (const { name } of rows) await sql`analyze (skip_locked) ${sql.id(name)}`.execute(database.writer)
  return rows.map(({ name }) => name)
}
