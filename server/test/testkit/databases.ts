import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type OpenDatabase, openDatabase } from '../../platform/database/open-database.ts'
import { administer, copyMigratedSqlite, databaseUrl, migratedPostgres } from './migrated-databases.ts'

export const DIALECTS = ['sqlite', 'postgresql'] as const
export type TestDialect = (typeof DIALECTS)[number]

export interface TestDatabase {
  database: OpenDatabase
  url: string
  /** A folder of its own beside the database, for keys and files. */
  folder: string
  close(): Promise<void>
}

/** The databases to test on: both, or SQLite only with TEST_SQLITE_ONLY. */
export function testDialects(): readonly TestDialect[] {
  return process.env.TEST_SQLITE_ONLY ? ['sqlite'] : DIALECTS
}

export interface TestDatabaseOptions {
  migrated?: boolean
  load?: (url: string) => Promise<void>
  /** PostgreSQL: prepares the database as its owner and returns the address to open it by. */
  openAs?: (ownerUrl: string) => Promise<string>
}

/**
 * A fresh database that goes when it is closed; migrated unless `migrated` is false. `load` fills it by its address before it is opened.
 */
export async function openTestDatabase(
  dialect: TestDialect,
  options: TestDatabaseOptions = {},
): Promise<TestDatabase> {
  const migrated = options.migrated ?? true
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-test-'))
  const removeFolder = () => rmSync(folder, { recursive: true, force: true })
  if (dialect === 'sqlite') {
    const file = join(folder, 'affiliate.db')
    if (migrated) await copyMigratedSqlite(file)
    const url = `sqlite:${file}`
    await options.load?.(url)
    const database = await openDatabase(url, { create: true })
    return {
      database,
      url,
      folder,
      async close() {
        await database.close()
        removeFolder()
      },
    }
  }
  const name = `test_${process.pid}_${counter++}`
  // Copying files is quicker than writing each page to the log, which such small databases could do as well.
  const from = migrated ? `template ${await migratedPostgres()} strategy file_copy` : ''
  await administer(`create database ${name} ${from}`)
  const ownerUrl = databaseUrl(name)
  await options.load?.(ownerUrl)
  const url = (await options.openAs?.(ownerUrl)) ?? ownerUrl
  const database = await openDatabase(url, { create: true })
  return {
    database,
    url,
    folder,
    async close() {
      await database.close()
      await administer(`drop database if exists ${name} with (force)`)
      removeFolder()
    },
  }
}

let counter = 1
