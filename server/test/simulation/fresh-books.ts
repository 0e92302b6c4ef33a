import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { sqliteFileOf } from '../../platform/config.ts'
import type { Tx } from '../../platform/database/database.ts'
import { type OpenDatabase, openDatabase } from '../../platform/database/open-database.ts'
import { openTestDatabase, type TestDialect } from '../testkit/databases.ts'

/** Hands out empty, migrated books, one after the other. */
export interface FreshBooks {
  next(): Promise<OpenDatabase>
  close(): Promise<void>
}

/**
 * Nothing here is about a power cut, so neither database waits for its disk; all else is as it is in use. SQLite gets a copy of one
 * migrated file each time, PostgreSQL keeps its connections and empties its tables.
 */
export function openFreshBooks(dialect: TestDialect): Promise<FreshBooks> {
  return dialect === 'sqlite' ? freshFiles() : freshTables()
}

async function freshFiles(): Promise<FreshBooks> {
  const made = await openTestDatabase('sqlite')
  const template = sqliteFileOf(made.url) ?? ''
  // Everything into the file itself, which is then copied without its log.
  await sql`pragma wal_checkpoint(truncate)`.execute(made.database.writer)
  const file = join(made.folder, 'story.db')
  let open: OpenDatabase | null = null
  const finish = async () => {
    await open?.close()
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true })
  }
  return {
    async next() {
      await finish()
      copyFileSync(template, file)
      open = await openDatabase(`sqlite:${file}`, { create: false })
      await sql`pragma synchronous = off`.execute(open.writer)
      return open
    },
    async close() {
      await finish()
      await made.close()
    },
  }
}

async function freshTables(): Promise<FreshBooks> {
  const made = await openTestDatabase('postgresql')
  const url = new URL(made.url)
  url.searchParams.set('options', '-c synchronous_commit=off')
  const database = await openDatabase(url.href, { create: false })
  const found = await sql<{ name: string }>`
    select tablename as name from pg_tables
    where schemaname = 'public' and tablename not like '%migration%'`.execute(database.writer)
  let used = false
  return {
    async next() {
      if (used) await database.transaction((tx) => emptyTables(tx, found.rows))
      used = true
      return database
    },
    async close() {
      await database.close()
      await made.close()
    },
  }
}

/** Past the triggers that keep rows from going. A truncation makes new files, which takes ten times as long. */
async function emptyTables(tx: Tx, tables: readonly { name: string }[]): Promise<void> {
  await sql`set local session_replication_role = replica`.execute(tx)
  for (const { name } of tables) await sql`delete from ${sql.table(name)}`.execute(tx)
}
