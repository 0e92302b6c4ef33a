import { existsSync } from 'node:fs'
import { SettingError, sqliteFileOf } from '../config.ts'
import type { Database, Queries, Tx } from '../database/database.ts'
import { migrationState, tableIsMissing } from '../database/migration-state.ts'
import { openDatabase } from '../database/open-database.ts'
import { lockWatermark, readWatermark, setWatermark } from '../database/watermarks.ts'
import { withTimeout } from '../with-timeout.ts'
import type { AppKeys } from './key-ring.ts'
import { type Binding, createVault, IntegrityError, UnknownKeyError, type Vault } from './vault.ts'

/** The watermark that holds the database's mark. */
export const KEY_MARK = 'app_key'
const BINDING: Binding = { purpose: 'app key check', row: KEY_MARK, owner: '', facts: [] }

/**
 * Which key made the database's mark, which only a key can make; `foreign`: none of the current and former keys, or the mark was changed. A
 * database writer without the key can only delete the mark or restore an old copy. `null` before the first start.
 */
export async function readKeyMark(db: Queries | Tx, vault: Vault) {
  const mark = await readWatermark(db, KEY_MARK)
  if (mark === undefined) return null
  try {
    vault.open(mark, BINDING)
    return vault.isCurrent(mark) ? 'current' : 'former'
  } catch (error) {
    if (error instanceof IntegrityError || error instanceof UnknownKeyError) return 'foreign'
    throw error
  }
}

/** Replaces the mark with one of the current key. */
export function renewMark(tx: Tx, vault: Vault): Promise<void> {
  return setWatermark(tx, KEY_MARK, vault.seal('', BINDING))
}

/**
 * Refuses keys that do not open this database: no store's secret would open, and every webhook would fail. The first start writes the mark
 * to check against. Throws `SettingError`.
 */
export async function checkAppKey(database: Database, vault: Vault): Promise<void> {
  const found = await readWatermark(database.reader, KEY_MARK)
  const own = vault.seal('', BINDING)
  refuseForeignMark(found ?? (await database.transaction((tx) => lockWatermark(tx, KEY_MARK, own))), vault)
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
    const mark = await withTimeout(readWatermark(database.reader, KEY_MARK)).catch((error: unknown) => {
      if (!tableIsMissing(error)) throw error
    })
    if (mark === undefined) return
    if (!keys)
      throw new SettingError('APP_KEY', 'is not set, and this database was sealed with a key; set it')
    refuseForeignMark(mark, createVault(keys))
  } finally {
    await database.close()
  }
}

function refuseForeignMark(mark: string, vault: Vault): void {
  try {
    vault.open(mark, BINDING)
  } catch (error) {
    if (error instanceof UnknownKeyError) {
      throw new SettingError(
        'APP_KEY',
        `is not the key that this database was sealed with (that is key ${error.keyId}): set that key, or add it to APP_KEYS_FORMER`,
      )
    }
    throw new SettingError(
      'APP_KEY',
      'is not the key that this database was sealed with: set that key, and replace it only after "affiliate keys rotate" has run with it',
    )
  }
}
