import { sql } from 'kysely'
import type { Database, Queries } from './database.ts'

/**
 * Runs `work` over one view of the database that stays as it is however many statements it takes and whatever others write
 * meanwhile. For commands: on SQLite it holds the process's one reader, and keeps its file from being tidied up.
 */
export function readSnapshot<T>(database: Database, work: (db: Queries) => Promise<T>): Promise<T> {
  return database.reader.connection().execute(async (connection) => {
    const begin =
      database.dialect === 'sqlite'
        ? sql`begin`
        : sql`begin transaction isolation level repeatable read, read only`
    await begin.execute(connection)
    try {
      return await work(connection)
    } finally {
      await sql`rollback`.execute(connection)
    }
  })
}
