import { sql } from 'kysely'
import { dialectOf, type Tx } from './database.ts'

/** Waits for every other transaction that holds the same name, and holds it until this one ends. On SQLite `tx` excludes all writers already. */
export async function lockName(tx: Tx, name: string): Promise<void> {
  if (dialectOf(tx) === 'sqlite') return
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(tx)
}
