import { sql } from 'kysely'
import type { OpenDatabase } from '../../platform/database/open-database.ts'

/**
 * No waiting for the disk at each commit: for proofs of what thousands of small transactions do to each other, which
 * survive no power cut and claim nothing about one. Atomicity and isolation stay as they are.
 */
export async function writeUnsynced(database: OpenDatabase): Promise<void> {
  if (database.dialect === 'sqlite') {
    await sql`pragma synchronous = off`.execute(database.writer)
    return
  }
  const name = sql.id(new URL(database.url).pathname.slice(1))
  // For the connections to come, and for the one that is open already.
  await sql`alter database ${name} set synchronous_commit = off`.execute(database.writer)
  await sql`set synchronous_commit = off`.execute(database.writer)
}
