import { sql } from 'kysely'
import type { Queries, Tx } from './database.ts'
import type { Vault } from './vault.ts'

/** A row with a sealed column, for what goes through all of them: verification and the rotation of keys. */
export interface SealedRow {
  id: string
  sealed: string
  /** Throws `IntegrityError` when the row is not as it was written, and `UnknownKeyError`. */
  open(): Promise<string>
  /**
   * Re-encrypts its text with the current key, bound to the row, with the fingerprint of that key; whether it did: the row may have
   * changed since it was read. Throws `IntegrityError`.
   */
  reseal(tx: Tx, text: string): Promise<boolean>
}

/** A table with a sealed column. */
export interface SealedTable {
  name: 'payout_destinations' | 'store_secrets'
  column: string
  /** Rows after the id `after`, in the order of their ids. */
  page(db: Queries, vault: Vault, after: string | null, limit: number): Promise<SealedRow[]>
}

/** Unbound values that stand in several rows: no two sealings are alike, so all but one were copied. */
export async function findCopies(db: Queries, { name, column }: SealedTable): Promise<Set<string>> {
  const sealed = sql.ref(column)
  const { rows } = await sql<{ sealed: string }>`
    select ${sealed} as sealed from ${sql.table(name)} where ${sealed} like 'v1.%'
    group by ${sealed} having count(*) > 1`.execute(db)
  return new Set(rows.map((row) => row.sealed))
}

/** How many rows are not sealed with the current key, or bound to no row. */
export async function countOutdated(
  db: Queries,
  { name, column }: SealedTable,
  vault: Vault,
): Promise<number> {
  const { rows } = await sql<{ n: number }>`
    select count(*) as n from ${sql.table(name)}
    where ${sql.ref(column)} not like ${`${vault.currentPrefix}%`}`.execute(db)
  return Number(rows[0]?.n ?? 0)
}
