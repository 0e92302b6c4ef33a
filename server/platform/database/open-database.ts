import { existsSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import { Refusal } from '../api/refusal.ts'
import { SettingError, sqliteFileOf } from '../config.ts'
import { makePrivateFile, makePrivateFolder } from '../private-files.ts'
import type { PostgresDatabase, PostgresOptions } from './postgresql.ts'
import type { SqliteDatabase } from './sqlite.ts'

export type OpenDatabase = SqliteDatabase | PostgresDatabase

/**
 * Opens the database of DATABASE_URL: `sqlite:PATH` or `postgres://…`. Loads only the driver that it needs, to keep commands fast. `create`
 * creates a missing SQLite file; with `readOnly` the database refuses every write. The other options are for PostgreSQL.
 */
export async function openDatabase(
  url: string,
  options: PostgresOptions & { create: boolean },
): Promise<OpenDatabase> {
  const file = sqliteFileOf(url)
  if (file !== null) {
    const { openSqlite } = await import('./sqlite.ts')
    if (options.create) {
      try {
        makePrivateFolder(dirname(file))
        makePrivateFile(file)
      } catch (error) {
        throw new SettingError('DATABASE_URL', `cannot create the file: ${(error as Error).message}`)
      }
    } else refuseMissingFile(url)
    return openSqlite(file, options)
  }
  const { openPostgres } = await import('./postgresql.ts')
  return openPostgres(url, options)
}

/** Throws `unavailable` where there is no SQLite file at this address. */
export function refuseMissingFile(url: string): void {
  const file = sqliteFileOf(url)
  if (file === null || existsSync(file)) return
  const place = isAbsolute(file) ? file : `${resolve(file)} (${url} in the folder ${process.cwd()})`
  throw new Refusal(
    'unavailable',
    `There is no database at ${place}. Run this in the folder of the service, or name its database with --database-url. If it was lost, restore a backup with "affiliate db restore"; for a new one run "affiliate db migrate".`,
  )
}

/** Refuses a PostgreSQL address whose hosts are not one cluster with one primary. Throws `SettingError` that names `setting`. */
export async function checkHosts(setting: string, url: string): Promise<void> {
  if (sqliteFileOf(url) !== null) return
  const { PostgresHosts } = await import('./postgres-hosts.ts')
  await new PostgresHosts(url).check(setting)
}

/**
 * Refuses an address in `setting` that leads to another database than DATABASE_URL. Throws `SettingError`, or the database's error when one
 * of them cannot be reached.
 */
export async function refuseOtherDatabase(setting: string, url: string, databaseUrl: string): Promise<void> {
  const { identityOf } = await import('./postgres-hosts.ts')
  const [own, other] = await Promise.all([identityOf(databaseUrl), identityOf(url)])
  const same =
    own.database === other.database && (own.systemId ?? other.systemId) === (other.systemId ?? own.systemId)
  if (!same) throw new SettingError(setting, 'names another database than DATABASE_URL')
}
