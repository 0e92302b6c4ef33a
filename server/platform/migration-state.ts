import { readdirSync } from 'node:fs'
import { sql } from 'kysely'
import { inTime } from './in-time.ts'
import type { OpenDatabase } from './open-database.ts'

export interface MigrationState {
  executed: string[]
  pending: string[]
}

/** Which migrations have run and which wait; makes nothing. Refuses with `unavailable` when the database stalls. */
export async function migrationState(database: OpenDatabase): Promise<MigrationState> {
  const executed = await inTime(executedMigrations(database))
  return { executed, pending: migrationNames(database.dialect).filter((name) => !executed.includes(name)) }
}

/**
 * The names of all migrations, by their files: loading them would load the migrator and the whole schema, which is more
 * than all else that most commands need.
 */
export function migrationNames(dialect: OpenDatabase['dialect']): string[] {
  const files = readdirSync(new URL(`../migrations/${dialect}/`, import.meta.url))
  return files.flatMap((file) => /^(\d{5}-[a-z0-9-]+)\.[jt]s$/.exec(file)?.[1] ?? []).sort()
}

async function executedMigrations(database: OpenDatabase): Promise<string[]> {
  try {
    const rows = await sql<{
      name: string
    }>`select name from mikro_orm_migrations order by name`.execute(database.reader)
    return rows.rows.map((row) => row.name)
  } catch (error) {
    if (tableIsMissing(error)) return []
    throw error
  }
}

/** Whether a query failed because its table does not exist, e.g. before the first migration. */
export function tableIsMissing(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return code === '42P01' || (code === 'SQLITE_ERROR' && String(message).startsWith('no such table'))
}
