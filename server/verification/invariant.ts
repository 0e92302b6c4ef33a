import { type RawBuilder, sql } from 'kysely'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { type Dialect, dialectOf, type Queries } from '../platform/database/database.ts'

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
  /** Whose rows it looks at. */
  table: string
  /**
   * The rows that break it. A check of one statement sees the books at one moment, while they are in use too; one that
   * reads pages looks only at rows that never change, and at nothing that came later.
   */
  breaches(db: Queries, keys: AppKeys, pages?: Pages): Promise<Breach[]>
  /** Of a check that reads pages: the column whose order they follow, by which its rows can be cut into parts for several threads. */
  key?: string | Readonly<Record<Dialect, string>>
}

/** What a check that reads pages is told, and tells. */
export interface Pages {
  /** Only rows with keys behind this one; `null` from the first on. */
  after: string | null
  /** Only rows with keys up to this one; `null` to the last. */
  upTo: string | null
  /** Hears how many rows each page had. */
  onRows(rows: number): void
}

export const ALL_PAGES: Pages = { after: null, upTo: null, onRows: () => {} }

/** More than anyone reads; the first ones tell what happened. */
export const MOST_BREACHES = 100

/** An invariant that one SQL statement checks: it selects `subject` and `detail` of each breach. */
export function sqlInvariant(options: {
  name: string
  statement: string
  table: string
  /** What asks for them; of both databases, or for each what it does least work for. */
  breaches: RawBuilder<Breach> | Readonly<Record<Dialect, RawBuilder<Breach>>>
}): Invariant {
  return {
    name: options.name,
    statement: options.statement,
    table: options.table,
    async breaches(db) {
      // Nearly always there is none, so all is read. PostgreSQL would take the limit for a reason to look for the first
      // few: along an index, row by row. What it materializes it plans as a whole; SQLite would write out all breaches.
      const dialect = dialectOf(db)
      const once = sql.raw(dialect === 'postgresql' ? 'materialized' : 'not materialized')
      const asked = 'sqlite' in options.breaches ? options.breaches[dialect] : options.breaches
      const limited = sql<Breach>`with breach as ${once} (${asked})
        select * from breach limit ${sql.lit(MOST_BREACHES)}`
      const found = await limited.execute(db)
      return found.rows.map((row) => ({ subject: String(row.subject), detail: String(row.detail) }))
    },
  }
}

/** The column by which a check's rows are cut there; `null` of a check that is one piece. */
export function keyOf({ key }: Invariant, dialect: Dialect): string | null {
  return typeof key === 'object' ? key[dialect] : (key ?? null)
}

/** The keys at which `rows` rows of a table, in the order of that column, are cut into `parts` parts of about one size. */
export async function cutByKey(
  db: Queries,
  { table, key, rows }: { table: string; key: string; rows: number },
  parts: number,
): Promise<string[]> {
  const size = sql.lit(Math.max(1, Math.ceil(rows / parts)))
  // One walk along the column's index; a look-up by place for each cut would walk anew.
  const found = await sql<{ key: string }>`
    select key from (
      select ${sql.ref(key)} as key, row_number() over (order by ${sql.ref(key)}) as number from ${sql.table(table)}
    ) as numbered
    where number % ${size} = 0 and number < ${sql.lit(rows)} order by number`.execute(db)
  return [...new Set(found.rows.map((row) => row.key))]
}

/** How many rows each table has; each is counted once. */
export async function countTables(db: Queries, tables: Iterable<string>): Promise<Map<string, number>> {
  const counted = [...new Set(tables)].map(async (table) => [table, await countRows(db, table)] as const)
  return new Map(await Promise.all(counted))
}

/** Whether a table holds at least `n` rows; looks at no more of them. */
export async function hasSoMany(db: Queries, table: string, n: number): Promise<boolean> {
  const some = sql`select 1 from ${sql.table(table)} limit ${n}`
  const counted = await sql<{ n: number }>`select count(*) as n from (${some}) as found`.execute(db)
  return (counted.rows[0]?.n ?? 0) >= n
}

export async function countRows(db: Queries, table: string): Promise<number> {
  const counted = await sql<{ n: number }>`select count(*) as n from ${sql.table(table)}`.execute(db)
  return counted.rows[0]?.n ?? 0
}
