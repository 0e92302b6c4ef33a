import { statSync } from 'node:fs'
import { sql } from 'kysely'
import { OPERATOR, recordAudit } from './flags/audit.service.ts'
import { Refusal } from './platform/api/refusal.ts'
import { isoTime } from './platform/clock.ts'
import { type Config, SettingError } from './platform/config.ts'
import type { Database, Queries } from './platform/database/database.ts'
import type { OpenDatabase } from './platform/database/open-database.ts'
import { deleteWatermark, readWatermark, setWatermark } from './platform/database/watermarks.ts'
import type { Platform } from './platform/platform.ts'

const MARK = 'production'
const SEEDED = 'seeded'

/**
 * Marks the database as a production database when the service starts with NODE_ENV=production. The mark stays, also in a backup.
 * Refuses to start with the sandbox processor on a marked database, because the sandbox confirms payments that were never made, and in
 * production on a seeded one.
 */
export async function markProduction(database: OpenDatabase, config: Config): Promise<void> {
  if (config.NODE_ENV === 'production') {
    if (await isSeeded(database.reader)) {
      throw new SettingError(
        'DATABASE_URL',
        'this database was filled by "affiliate seed": its accounts have a published password. Use another one in production',
      )
    }
    const identity = await databaseIdentity(database)
    await database.transaction((tx) => setWatermark(tx, MARK, identity))
    return
  }
  if (config.PROCESSOR !== 'sandbox' || !(await isProduction(database.reader))) return
  throw new SettingError(
    'PROCESSOR',
    'the sandbox is refused on a production database. Set NODE_ENV=production, or on a copy run "affiliate db mark-development"',
  )
}

/** Marks a database that `affiliate seed` fills: production refuses it for good. */
export async function markSeeded(database: Database, at: number): Promise<void> {
  await database.transaction((tx) => setWatermark(tx, SEEDED, isoTime(at)))
}

/** Whether `affiliate seed` has filled this database. */
export async function isSeeded(db: Queries): Promise<boolean> {
  return (await readWatermark(db, SEEDED)) !== undefined
}

/** Whether a service with NODE_ENV=production has used this database, or the one that it was copied from. */
export async function isProduction(db: Queries): Promise<boolean> {
  return (await readWatermark(db, MARK)) !== undefined
}

/**
 * Refuses with `forbidden` when the mark must stay: with NODE_ENV=production, and on the database that a production service used last. A
 * restored backup is another database. Returns whether there is a mark to remove.
 */
export async function assertMarkCanGo(database: OpenDatabase, config: Config): Promise<boolean> {
  const mark = await readWatermark(database.reader, MARK)
  if (mark === undefined) return false
  if (config.NODE_ENV === 'production') {
    throw new Refusal('forbidden', 'NODE_ENV is production. Mark a copy, with development settings.')
  }
  if (mark === (await databaseIdentity(database))) {
    throw new Refusal(
      'forbidden',
      'The production service uses this database. Restore a backup as another database, and mark that one.',
    )
  }
  return true
}

/** Removes the mark from a copy, with an audit entry. Refuses like `assertMarkCanGo`. Returns whether there was a mark. */
export async function markDevelopment(platform: Platform, database: OpenDatabase): Promise<boolean> {
  if (!(await assertMarkCanGo(database, platform.config))) return false
  return platform.database.transaction(async (tx) => {
    if (!(await deleteWatermark(tx, MARK))) return false
    await recordAudit(platform, tx, {
      actor: OPERATOR,
      action: 'database.mark_development',
      subjectType: 'database',
      subjectId: await databaseIdentity(database),
      before: { production: true },
      after: { production: false },
    })
    return true
  })
}

/** Differs between a database and its copies: the file's inode on SQLite; cluster and database oid on PostgreSQL. */
async function databaseIdentity(database: OpenDatabase): Promise<string> {
  if (database.dialect === 'sqlite') return `inode ${statSync(database.file).ino}`
  const { rows } = await sql<{ identity: string }>`
    select system_identifier || ' ' || pg_database.oid as identity
    from pg_control_system(), pg_database where datname = current_database()`.execute(database.reader)
  return rows[0]?.identity ?? ''
}
