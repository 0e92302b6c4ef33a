import { type RawBuilder, sql } from 'kysely'
import type { Queries, Tx } from '../database/database.ts'
import type { Vault } from './vault.ts'

/** A row with a sealed column, for verification and key rotation, which read all of them. */
export interface SealedRow {
  id: string
  sealed: string
  /** Throws `IntegrityError` when the row was changed, and `UnknownKeyError`. */
  open(): Promise<string>
  /**
   * Encrypts the text again with the current key, bound to the row, and renews its fingerprint. `false` if the row has changed since it was
   * read. Throws `IntegrityError`.
   */
  reseal(tx: Tx, text: string): Promise<boolean>
}

/** A table with a sealed column. */
export interface SealedTable {
  name: 'payout_destinations' | 'billing_accounts' | 'second_factors' | 'store_secrets' | 'webhook_secrets'
  column: string
  /** Rows after the id `after`, in the order of their ids. */
  page(db: Queries, vault: Vault, after: string | null, limit: number): Promise<SealedRow[]>
}

/** How the rows of a table are sealed. */
export interface Sealing<Row> extends Pick<SealedTable, 'name'> {
  column: keyof Row & string
  /** The primary key; `id` by default. */
  key?: keyof Row & string
  /** Selects the rows, as `sealed`, with what their seals are bound to in other tables. */
  rows?: RawBuilder<unknown>
  /** Throws `IntegrityError` when the row was changed, and `UnknownKeyError`. */
  open(vault: Vault, row: Row): string
  /** The columns that depend on the key. */
  seal(vault: Vault, row: Row, text: string): Partial<Row>
  /** Throws `IntegrityError` when the row must keep its seal. */
  checkReseal?(tx: Tx, row: Row, sealed: Partial<Row>): Promise<void>
}

export function sealedTable<Row extends object>(sealing: Sealing<Row>): SealedTable {
  const { name, column, open, seal, checkReseal } = sealing
  const key = (sealing.key ?? 'id') as keyof Row & string
  const source = sealing.rows ?? sql`select sealed.* from ${sql.table(name)} as sealed`
  const id = sql.ref(`sealed.${key}`)
  const sealedRow = (vault: Vault, row: Row): SealedRow => ({
    id: String(row[key]),
    sealed: String(row[column]),
    open: async () => open(vault, row),
    async reseal(tx, text) {
      const sealed = seal(vault, row, text)
      await checkReseal?.(tx, row, sealed)
      const columns = Object.entries(sealed).map(([name, value]) => sql`${sql.ref(name)} = ${value}`)
      const { numAffectedRows } = await sql`update ${sql.table(name)} set ${sql.join(columns)}
        where ${sql.ref(key)} = ${row[key]} and ${sql.ref(column)} = ${row[column]}`.execute(tx)
      return numAffectedRows === 1n
    },
  })
  return {
    name,
    column,
    async page(db, vault, after, limit) {
      const behind = after === null ? sql`true` : sql`${id} > ${after}`
      const page = sql<Row>`${source} where ${behind} order by ${id} limit ${sql.lit(limit)}`
      return (await page.execute(db)).rows.map((row) => sealedRow(vault, row))
    },
  }
}
