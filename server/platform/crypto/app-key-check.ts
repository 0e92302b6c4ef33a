import { existsSync } from 'node:fs'
import { SettingError, sqliteFileOf } from '../config.ts'
import type { Database } from '../database/database.ts'
import { migrationState, tableIsMissing } from '../database/migration-state.ts'
import { openDatabase } from '../database/open-database.ts'
import { withTimeout } from '../with-timeout.ts'
import { keyMarkOf, leaveMark, missingKeyOf, readMark } from './key-mark.ts'
import type { AppKeys } from './key-ring.ts'
import { createVault, type Vault } from './vault.ts'

/**
 * Refuses keys that do not open this database: no store's secret would open, and every webhook would fail. The first start writes the mark
 * to check against. Throws `SettingError`.
 */
export async function checkAppKey(database: Database, vault: Vault): Promise<void> {
  const found = await readMark(database.reader)
  const mark = found ?? (await database.transaction((tx) => leaveMark(tx, vault)))
  refuseForeignMark(mark, vault)
}

/**
 * The same check before startup writes anything: no migration, no file, no mark. `keys` is `null` if none exist yet. Accepts a database that
 * does not exist yet or has no mark. Throws `SettingError`, or `unavailable` for a database made before 0.2.0.
 */
export async function refuseForeignKeys(url: string, keys: AppKeys | null): Promise<void> {
  const file = sqliteFileOf(url)
  if (file !== null && !existsSync(file)) return
  // Only the reader: on SQLite the writer, which sets the journal mode, opens with the first transaction.
  const database = await openDatabase(url, { create: false })
  try {
    await migrationState(database)
    const mark = await withTimeout(readMark(database.reader).catch(undefinedWithoutTable))
    if (mark === undefined) return
    if (!keys)
      throw new SettingError('APP_KEY', 'is not set, and this database was sealed with a key; set it')
    refuseForeignMark(mark, createVault(keys))
  } finally {
    await database.close()
  }
}

function undefinedWithoutTable(error: unknown): undefined {
  if (!tableIsMissing(error)) throw error
}

function refuseForeignMark(mark: string, vault: Vault): void {
  if (keyMarkOf(mark, vault) !== 'foreign') return
  const missing = missingKeyOf(mark, vault)
  const which = missing === null ? '' : ` (that is key ${missing})`
  if (missing === null) {
    throw new SettingError(
      'APP_KEY',
      'is not the key that this database was sealed with: set that key, and replace it only after "affiliate keys rotate" has run with it',
    )
  }
  throw new SettingError(
    'APP_KEY',
    `is not the key that this database was sealed with${which}: set that key, or add it to APP_KEYS_FORMER`,
  )
}
