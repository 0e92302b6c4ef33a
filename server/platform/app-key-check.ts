import { SettingError } from './config.ts'
import type { Database, Queries } from './database.ts'
import type { Vault } from './vault.ts'

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
  throw new SettingError('APP_KEY', 'is not the key that this database was sealed with')
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
