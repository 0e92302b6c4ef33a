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
