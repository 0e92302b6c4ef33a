import { sql } from 'kysely'
import type { Queries } from '../platform/database/database.ts'

/** The ids in these tables that end with `tail` (hexadecimal digits and hyphens), newest first, at most `limit`. Reads every id. */
export async function idsEndingWith(
  db: Queries,
  { tables, tail, limit }: { tables: readonly string[]; tail: string; limit: number },
): Promise<string[]> {
  const id = sql`cast(id as text)`
  const queries = tables.map(
    (table) => sql`select ${id} as id from ${sql.table(table)} where ${id} like ${`%${tail}`}`,
  )
  const { rows } = await sql<{
    id: string
  }>`${sql.join(queries, sql` union all `)} order by id desc limit ${limit}`.execute(db)
  return rows.map((row) => row.id)
}
