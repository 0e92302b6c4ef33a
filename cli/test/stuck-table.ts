import { sql } from 'kysely'
import type { TestDatabase } from '../../server/test/testkit/databases.ts'
import { eventually } from '../../server/test/testkit/eventually.ts'

/** A table at which a reader (or with `writes`, a writer) waits until it is let go. */
export interface StuckTable {
  /** Resolves when so many connections wait at it, each for `ms` at least. On PostgreSQL only: SQLite does not show it. */
  waitedFor(connections: number, ms?: number): Promise<void>
  letGo(): Promise<void>
}

export async function makeStuck(
  bed: TestDatabase,
  table: string,
  what: 'reads' | 'writes' = 'reads',
): Promise<StuckTable> {
  return bed.database.dialect === 'sqlite' ? stuckView(bed, table) : heldTable(bed, table, what)
}

async function heldTable(
  { database }: TestDatabase,
  table: string,
  what: 'reads' | 'writes',
): Promise<StuckTable> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: held, resolve: hold } = Promise.withResolvers<void>()
  const holding = database.transaction(async (tx) => {
    const mode = what === 'reads' ? 'access exclusive' : 'exclusive'
    await sql`lock table ${sql.table(table)} in ${sql.raw(mode)} mode`.execute(tx)
    hold()
    await released
  })
  // A lock that cannot be had is an error immediately.
  await Promise.race([held, holding])
  return {
    async waitedFor(connections, ms = 0) {
      const count = () =>
        sql<{ n: number }>`
          select count(*) as n from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'
            and clock_timestamp() - query_start >= ${ms} * interval '1 ms'`.execute(database.reader)
      await eventually(count, ({ rows }) => (rows[0]?.n ?? 0) >= connections)
    },
    async letGo() {
      release()
      await holding
    },
  }
}

/** A reader of SQLite waits for no lock, so it is given more to count than it ever can. */
async function stuckView({ database }: TestDatabase, table: string): Promise<StuckTable> {
  const { writer } = database
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
