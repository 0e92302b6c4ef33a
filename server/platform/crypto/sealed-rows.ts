import { type RawBuilder, sql } from 'kysely'
import type { Queries, Tx } from '../database/database.ts'
import { type Binding, IntegrityError, UnknownKeyError, type Vault } from './vault.ts'

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

type Unsealed<Row, Sealed extends keyof Row> = Omit<Row, Sealed | 'row_digest'>

/** How the rows of a table are sealed; `Sealed` are the columns that hold the text or its fingerprint. */
interface Sealing<Row, Sealed extends keyof Row & string> extends Pick<SealedTable, 'name'> {
  column: Sealed
  /** The primary key; `id` by default. */
  key?: keyof Row & string
  /** Selects the rows, as `sealed`, with what their seals are bound to in other tables. */
  rows?: RawBuilder<unknown>
  purpose: string
  /** Who owns the row, and its further columns that must not change. */
  binding(row: Unsealed<Row, Sealed>): Pick<Binding, 'owner' | 'facts'>
  /** The column with the text's keyed hash, and what the hash and messages call the text. */
  fingerprint?: { column: Sealed; purpose: string; of: string }
  /** How the row contradicts its text, as the end of a sentence; `null` if it does not. */
  contradiction?(row: Row, text: string): string | null
  /** Throws `IntegrityError` when the row must keep its seal. */
  checkReseal?(tx: Tx, row: Row, sealed: Pick<Row, Sealed>): Promise<void>
}

export function sealedTable<Row extends object, Sealed extends keyof Row & string>(
  sealing: Sealing<Row, Sealed>,
) {
  const { name, column, purpose, fingerprint } = sealing
  const key = (sealing.key ?? 'id') as keyof Row & string
  const source = sealing.rows ?? sql`select sealed.* from ${sql.table(name)} as sealed`
  const id = sql.ref(`sealed.${key}`)
  const bindingOf = (row: Unsealed<Row, Sealed>): Binding => ({
    purpose,
    row: String((row as Row)[key]),
    ...sealing.binding(row),
  })
  /** The columns that depend on the key. */
  const seal = (vault: Vault, row: Unsealed<Row, Sealed>, text: string) => {
    const columns: Record<string, string> = { [column]: vault.seal(text, bindingOf(row)) }
    if (fingerprint) columns[fingerprint.column] = vault.fingerprint(text, fingerprint.purpose)
    return columns as Pick<Row, Sealed>
  }
  /** Throws `IntegrityError` when the row was changed, and `UnknownKeyError`. */
  const open = (vault: Vault, row: Row): string => {
    const text = vault.open(String(row[column]), bindingOf(row))
    const known = fingerprint && vault.fingerprints(text, fingerprint.purpose)
    if (known && !known.includes(String(row[fingerprint.column])))
      throw new IntegrityError(`has the fingerprint of another ${fingerprint.of}`)
    const problem = sealing.contradiction?.(row, text) ?? null
    if (problem !== null) throw new IntegrityError(problem)
    return text
  }
  /** `null` for a row that was changed, and without its key. */
  const openOrNull = (vault: Vault, row: Row): string | null => {
    try {
      return open(vault, row)
    } catch (error) {
      if (error instanceof IntegrityError || error instanceof UnknownKeyError) return null
      throw error
    }
  }
  const sealedRow = (vault: Vault, row: Row): SealedRow => ({
    id: String(row[key]),
    sealed: String(row[column]),
    open: async () => open(vault, row),
    async reseal(tx, text) {
      const sealed = seal(vault, row, text)
      await sealing.checkReseal?.(tx, row, sealed)
      const columns = Object.entries(sealed).map(([name, value]) => sql`${sql.ref(name)} = ${value}`)
      const { numAffectedRows } = await sql`update ${sql.table(name)} set ${sql.join(columns)}
        where ${sql.ref(key)} = ${row[key]} and ${sql.ref(column)} = ${row[column]}`.execute(tx)
      return numAffectedRows === 1n
    },
  })
  const page: SealedTable['page'] = async (db, vault, after, limit) => {
    const behind = after === null ? sql`true` : sql`${id} > ${after}`
    const rows = sql<Row>`${source} where ${behind} order by ${id} limit ${sql.lit(limit)}`
    return (await rows.execute(db)).rows.map((row) => sealedRow(vault, row))
  }
  return { name, column, page, seal, open, openOrNull }
}
