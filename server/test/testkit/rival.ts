import { sql } from 'kysely'
import { openDatabase } from '../../platform/database/open-database.ts'
import { withRowKeys } from '../../platform/database/protected-rows.ts'
import type { Platform } from '../../platform/platform.ts'
import { CONNECTION_WAIT } from './databases.ts'
import type { Testbed } from './testbed.ts'

export interface Rival {
  platform: Platform
  close(): Promise<void>
}

/** A second process's view of a testbed: the same database through handles of its own, and the same clock. */
export async function openRival(bed: Testbed): Promise<Rival> {
  const database = await openDatabase(bed.testDatabase.url, { create: false, ...CONNECTION_WAIT })
  if (database.dialect === 'sqlite') {
    // Both stand in one thread here, where waiting for the other's lock would keep the other from letting go of it.
    for (const { writer } of [database, bed.testDatabase.database]) {
      await sql`pragma busy_timeout = 0`.execute(writer)
    }
  }
  const platform = { ...bed.platform, database: withRowKeys(database, bed.platform.keys) }
  return { platform, close: () => database.close() }
}
