import { existsSync } from 'node:fs'
import { SettingError } from './config.ts'
import type { Database, Queries } from './database.ts'
import { inTime } from './in-time.ts'
import type { AppKeys } from './key-ring.ts'
import { tableIsMissing } from './migration-state.ts'
import { openDatabase, sqliteFileOf } from './open-database.ts'
import { createVault, type Vault } from './vault.ts'

const MARK = 'app_key'
const PURPOSE = 'app key check'
const SEALED_TEXT = 'sealed by the key of this database'

/**
 * Stops the start with another APP_KEY than the one that this database's secrets were sealed with: with it no store's
 * secret would open, and every webhook would be refused. The first start leaves a mark to check against.
 */
export async function checkAppKey(database: Database, vault: Vault): Promise<void> {
  const mark = (await readMark(database.reader)) ?? (await leaveMark(database, vault))
  if (opens(mark, vault)) return
  throw foreignKey()
}

/**
 * Refuses keys that this database was not sealed with, before a start writes anything: no migration, no file, no mark. `keys` is
 * `null` where none exist yet. Accepts a database that does not exist yet or has no mark. Throws `SettingError`.
 */
export async function refuseForeignKeys(url: string, keys: AppKeys | null): Promise<void> {
  const file = sqliteFileOf(url)
  if (file !== null && !existsSync(file)) return
  // Reads only: on SQLite the writing side, which sets the journal mode, opens with the first transaction.
  const database = await openDatabase(url, { create: false })
  try {
    const mark = await inTime(readMark(database.reader).catch(undefinedWithoutTable))
    if (mark === undefined) return
    if (!keys)
      throw new SettingError('APP_KEY', 'is not set, and this database was sealed with a key; set it')
    if (!opens(mark, createVault(keys))) throw foreignKey()
  } finally {
    await database.close()
  }
}

function undefinedWithoutTable(error: unknown): undefined {
  if (!tableIsMissing(error)) throw error
}

function foreignKey(): SettingError {
  return new SettingError('APP_KEY', 'is not the key that this database was sealed with')
}

/** Whether this key is the database's; `null` when no start has left its mark yet. */
export async function appKeyFits(database: Database, vault: Vault): Promise<boolean | null> {
  const mark = await readMark(database.reader)
  return mark === undefined ? null : opens(mark, vault)
}

function opens(mark: string, vault: Vault): boolean {
  try {
    return vault.decrypt(mark, PURPOSE) === SEALED_TEXT
  } catch {
    // Sealed with another key: the same answer as for another text.
    return false
  }
}

async function readMark(db: Queries): Promise<string | undefined> {
  const row = await db.selectFrom('watermarks').select('value').where('name', '=', MARK).executeTakeFirst()
  return row?.value
}

/** Of two processes that start at once the first leaves the mark; the other reads it. */
async function leaveMark(database: Database, vault: Vault): Promise<string> {
  return database.transaction(async (tx) => {
    await tx
      .insertInto('watermarks')
      .values({ name: MARK, value: vault.encrypt(SEALED_TEXT, PURPOSE) })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    return (await readMark(tx)) ?? ''
  })
}
