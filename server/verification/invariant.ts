import { type RawBuilder, sql } from 'kysely'
import type { AppKeys } from '../platform/crypto/key-ring.ts'
import { dialectOf, type Queries } from '../platform/database/database.ts'
import type { Scope } from './scope.ts'

export interface Breach {
  /** Which row: a table's word and an id. */
  subject: string
  detail: string
}

export interface Invariant {
  /** kebab-case; stable, because scripts search for it. */
  name: string
  /** What must hold, in one sentence. */
  statement: string
  /** The table whose rows it checks. */
  table: string
  /**
   * The rows of the scope that break it. A check of one statement sees one moment of the books; one that reads pages checks only rows that
   * never change.
   */
  breaches(db: Queries, keys: AppKeys, scope: Scope): Promise<Breach[]>
}

/** More than anyone reads; the first ones tell what happened. */
export const MOST_BREACHES = 100

/** An invariant that one SQL statement checks: it selects `subject` and `detail` of each breach. */
export function sqlInvariant(options: {
  name: string
  statement: string
  table: string
  breaches: RawBuilder<Breach> | ((scope: Scope) => RawBuilder<Breach>)
}): Invariant {
  return {
    ...options,
    async breaches(db, _keys, scope) {
      // Usually there is no breach, so everything is read. Because of the limit PostgreSQL would plan to find the first few row by row;
      // it plans a materialized query as a whole. SQLite would store all breaches.
      const once = sql.raw(dialectOf(db) === 'postgresql' ? 'materialized' : 'not materialized')
      const query = typeof options.breaches === 'function' ? options.breaches(scope) : options.breaches
      const limited = sql<Breach>`with breach as ${once} (${query})
        select * from breach limit ${sql.lit(MOST_BREACHES)}`
      const found = await limited.execute(db)
      return found.rows.map((row) => ({ subject: String(row.subject), detail: String(row.detail) }))
    },
  }
}

/** The rows of a table that a check of this scope reads. */
export async function countRows(db: Queries, table: string, scope: Scope): Promise<number> {
  const counted = await sql<{ n: number }>`
    select count(*) as n from ${sql.table(table)} where ${conditionOn(table, scope)}`.execute(db)
  return Number(counted.rows[0]?.n ?? 0)
}

/** The tables whose rows do not change, or are final once they are covered, and their columns with an id of that time. */
const IDS: Readonly<Record<string, string>> = {
  ledger_entries: 'id',
  ledger_postings: 'entry_id',
  inbound_events: 'id',
  inbound_bodies: 'event_id',
  outbox_events: 'id',
  webhook_deliveries: 'id',
}

function conditionOn(table: string, scope: Scope): RawBuilder<boolean> {
  if (table === 'sales') return scope.isNewSale('sales.id')
  if (table === 'sale_decisions') return scope.isNewSale('sale_decisions.sale_id')
  if (table === 'clicks') return sql`${sql.lit(scope.covered === null)}`
  const id = IDS[table]
  return id === undefined ? sql`true` : scope.isNew(`${table}.${id}`)
}

/** Checks rows page by page until `MOST_BREACHES` are found. `readPage` gets the last row of the page before. */
export async function inPages<Row>(
  readPage: (after: Row | null) => Promise<Row[]>,
  check: (page: readonly Row[]) => Breach[] | Promise<Breach[]>,
): Promise<Breach[]> {
  const breaches: Breach[] = []
  for (let after: Row | null = null; breaches.length < MOST_BREACHES; ) {
    const page: Row[] = await readPage(after)
    if (page.length === 0) break
    breaches.push(...(await check(page)))
    after = page.at(-1) ?? null
  }
  return breaches.slice(0, MOST_BREACHES)
}
