import { SettingError } from './config.ts'
import type { PostgresDatabase } from './postgresql.ts'
import { Refusal } from './refusal.ts'
import type { SqliteDatabase } from './sqlite.ts'

export type OpenDatabase = SqliteDatabase | PostgresDatabase

/** The file that a `sqlite:` address names (`sqlite:PATH` or `sqlite:///ABSOLUTE`); `null` for any other address. */
export function sqliteFileOf(url: string): string | null {
  return url.startsWith('sqlite:') ? url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '') : null
}

/**
 * Opens what DATABASE_URL names: `sqlite:PATH` or `postgres://…`. Each driver is loaded only when it is asked for,
 * which is most of a command's start-up time. `create` lets a missing SQLite file be made; with `readOnly` the database
 * itself refuses every write.
 */
export async function openDatabase(
  url: string,
  options: { create: boolean; readOnly?: boolean },
): Promise<OpenDatabase> {
  const file = sqliteFileOf(url)
  if (file !== null) {
    const { openSqlite } = await import('./sqlite.ts')
    const { dirname } = await import('node:path')
    const { existsSync } = await import('node:fs')
    if (options.create) {
      const { makePrivateFile, makePrivateFolder } = await import('./private-files.ts')
      try {
        makePrivateFolder(dirname(file))
        makePrivateFile(file)
      } catch (error) {
        throw new SettingError('DATABASE_URL', `its file cannot be made: ${(error as Error).message}`)
      }
    } else if (!existsSync(file)) {
      throw new Refusal('unavailable', `no database at ${file}: make one with "affiliate db migrate"`)
    }
    return openSqlite(file, options)
  }
  const { openPostgres } = await import('./postgresql.ts')
  return openPostgres(url, options.readOnly ? { readOnly: true } : {})
}
