import { Refusal } from '../api/refusal.ts'
import { SettingError, sqliteFileOf } from '../config.ts'
import type { PostgresDatabase } from './postgresql.ts'
import type { SqliteDatabase } from './sqlite.ts'

export type OpenDatabase = SqliteDatabase | PostgresDatabase

/**
 * Opens the database of DATABASE_URL: `sqlite:PATH` or `postgres://…`. Loads only the driver that it needs, to keep commands fast. `create`
 * creates a missing SQLite file; with `readOnly` the database refuses every write. `poolSize` and `applicationName` are for
 * PostgreSQL.
 */
export async function openDatabase(
  url: string,
  options: { create: boolean; readOnly?: boolean; poolSize?: number; applicationName?: string },
): Promise<OpenDatabase> {
  const file = sqliteFileOf(url)
  if (file !== null) {
    const { openSqlite } = await import('./sqlite.ts')
    const { dirname } = await import('node:path')
    const { existsSync } = await import('node:fs')
    if (options.create) {
      const { makePrivateFile, makePrivateFolder } = await import('../private-files.ts')
      try {
        makePrivateFolder(dirname(file))
        makePrivateFile(file)
      } catch (error) {
        throw new SettingError('DATABASE_URL', `cannot create the file: ${(error as Error).message}`)
      }
    } else if (!existsSync(file)) {
      throw new Refusal('unavailable', `No database at ${file}. Run "affiliate db migrate" to create it.`)
    }
    return openSqlite(file, options)
  }
  const { openPostgres } = await import('./postgresql.ts')
  const { readOnly, poolSize, applicationName } = options
  return openPostgres(url, { readOnly, poolSize, applicationName })
}

/** Refuses a PostgreSQL address whose hosts are not one cluster with one primary. Throws `SettingError` that names `setting`. */
export async function checkHosts(setting: string, url: string): Promise<void> {
  if (sqliteFileOf(url) !== null) return
  const { PostgresHosts } = await import('./postgres-hosts.ts')
  await new PostgresHosts(url).check(setting)
}
