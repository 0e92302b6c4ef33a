import { type RawBuilder, sql } from 'kysely'
import type { Queries } from '../../platform/database.ts'

export interface Breach {
  /** Which row: a table's word and an id. */
  subject: string
  detail: string
}

export interface Invariant {
  /** kebab-case; stable, since people grep for it. */
  name: string
  /** What must hold, in one sentence. */
  statement: string
  /** How many rows there are to look at. */
  count(db: Queries): Promise<number>
  /** The rows that break it. Each check is one statement, so it sees the books at one moment, while they are in use too. */
  breaches(db: Queries): Promise<Breach[]>
}

/** More than anyone reads; the first ones tell what happened. */
export const MOST_BREACHES = 100

/** An invariant that one SQL statement checks: it selects `subject` and `detail` of each breach. */
export function sqlInvariant(options: {
  name: string
  statement: string
  table: string
  breaches: RawBuilder<Breach>
}): Invariant {
  return {
    name: options.name,
    statement: options.statement,
    count: (db) => countRows(db, options.table),
    async breaches(db) {
      const limited = sql<Breach>`select * from (${options.breaches}) as breach limit ${sql.lit(MOST_BREACHES)}`
      const found = await limited.execute(db)
      return found.rows.map((row) => ({ subject: String(row.subject), detail: String(row.detail) }))
    },
  }
}

export async function countRows(db: Queries, table: string): Promise<number> {
  const counted = await sql<{ n: number }>`select count(*) as n from ${sql.table(table)}`.execute(db)
  return counted.rows[0]?.n ?? 0
}
