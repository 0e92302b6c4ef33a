import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { sql } from 'kysely'
import type { Queries } from '../../server/platform/database/database.ts'
import type { TestDatabase } from '../../server/test/testkit/databases.ts'
import { eventually } from '../../server/test/testkit/eventually.ts'

/** A table at which a reader waits until it is let go. */
export interface StuckTable {
  /** Resolves when a connection waits at it. On PostgreSQL only: SQLite does not show it. */
  waitedFor(): Promise<void>
  letGo(): Promise<void>
}

export async function makeStuck({ database }: TestDatabase, table: string): Promise<StuckTable> {
  if (database.dialect === 'sqlite') return stuckView(database.writer, table)
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: held, resolve: hold } = Promise.withResolvers<void>()
  const holding = database.transaction(async (tx) => {
    await sql`lock table ${sql.table(table)} in access exclusive mode`.execute(tx)
    hold()
    await released
  })
  // A lock that cannot be had is an error immediately.
  await Promise.race([held, holding])
  return {
    async waitedFor() {
      const waiting = sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`
      await eventually(async () => (await waiting.execute(database.reader)).rows.length)
    },
    async letGo() {
      release()
      await holding
    },
  }
}

/** A reader of SQLite waits for no lock, so it is given more to count than it ever can. */
async function stuckView(writer: Queries, table: string): Promise<StuckTable> {
  const kept = `kept_${table}`
  const endless = sql`(select count(*) from ${sql.join(
    Array.from({ length: 9 }, (_, at) => sql`sqlite_schema as ${sql.ref(`s${at}`)}`),
  )}) > 0`
  await sql`alter table ${sql.table(table)} rename to ${sql.table(kept)}`.execute(writer)
  await sql`create view ${sql.table(table)} as select * from ${sql.table(kept)} where ${endless}`.execute(
    writer,
  )
  return {
    waitedFor: () => Promise.resolve(),
    async letGo() {
      await sql`drop view ${sql.table(table)}`.execute(writer)
      await sql`alter table ${sql.table(kept)} rename to ${sql.table(table)}`.execute(writer)
    },
  }
}

/** Whether some process holds the write lock of the SQLite file in `folder`. */
export function holdsWriteLock(folder: string): boolean {
  const rival = new BetterSqlite(join(folder, 'affiliate.db'), { timeout: 0 })
  try {
    rival.exec('begin immediate; rollback')
    return false
  } catch {
    return true
  } finally {
    rival.close()
  }
}
