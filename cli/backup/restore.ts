import { closeSync, openSync, readSync } from 'node:fs'
import { resolve } from 'node:path'
import { migrate } from '../../server/migrator.ts'
import { type Config, sqliteFileOf } from '../../server/platform/config.ts'
import { findAppKeys } from '../../server/platform/crypto/app-keys.ts'
import { refuseForeignKeys } from '../../server/platform/crypto/key-mark.ts'
import { migrationNames, migrationState } from '../../server/platform/database/migration-state.ts'
import { type OpenDatabase, openDatabase } from '../../server/platform/database/open-database.ts'
import { readKeys, runChecks } from '../commands/ledger.actions.ts'
import { Failure } from '../failures.ts'
import type { Output } from '../terminal/output.ts'
import { onSignals, type RestoredCopy } from './backup.ts'
import { postgresCopy } from './restore-postgresql.ts'
import { sqliteCopy } from './restore-sqlite.ts'

/**
 * Restores a backup into a new database beside the present one, migrates the copy to this version and checks every invariant of its
 * books. The copy is kept also when some do not hold, so that they can be looked at; after any other failure, and after
 * Ctrl-C, nothing is left of it. With `discard` it is always deleted. Throws `Failure`, and `SettingError` for a key that does not open the
 * backup. `migrated` names the migrations that the copy was behind.
 */
export async function restoreBackup(
  config: Config,
  out: Output,
  file: string,
  { to, discard = false }: { to?: string; discard?: boolean },
) {
  const backup = resolve(file)
  const target = discard ? drillTarget(config, backup) : to
  const copy = await openCopy(config.DATABASE_URL, backup, target)
  let interrupted = false
  const ignoreSignals = onSignals(() => {
    interrupted = true
    out.endProgress()
    copy.discard().finally(() => process.exit(130))
  })
  try {
    out.progress(`restoring into ${copy.place}`)
    await copy.load()
    await refuseForeignKeys(copy.draftUrl, findAppKeys(config))
    const database = await openDatabase(copy.draftUrl, { create: false })
    const checked = await migrateAndVerify(config, out, backup, database).finally(() => database.close())
    await (discard ? copy.discard() : copy.keep())
    return { copy, ...checked }
  } catch (error) {
    // What the interruption broke off is no failure of its own: the process ends once the copy is gone.
    if (interrupted) await new Promise(() => {})
    await copy.discard()
    throw error
  } finally {
    ignoreSignals()
  }
}

/** The copy of a drill never gets this name, which must only be free. SQLite makes it beside the backup. */
function drillTarget(config: Config, backup: string): string {
  return sqliteFileOf(config.DATABASE_URL) === null ? `drill_${process.pid}` : `${backup}.drill`
}

async function openCopy(databaseUrl: string, backup: string, to: string | undefined): Promise<RestoredCopy> {
  const kind = kindOf(backup)
  const present = sqliteFileOf(databaseUrl)
  const wanted = present === null ? 'PostgreSQL' : 'SQLite'
  if (kind === null)
    throw new Failure(`${backup} is not a backup of this service, or is damaged from its start.`)
  if (kind !== wanted) {
    throw new Failure(`${backup} is a backup of ${kind}, but DATABASE_URL names ${wanted}.`)
  }
  return present === null ? postgresCopy(backup, databaseUrl, to) : sqliteCopy(backup, resolve(present), to)
}

/** By the first bytes: https://www.sqlite.org/fileformat.html, and `pg_backup_archiver.h` for pg_dump's custom format. */
const KINDS = [
  { start: 'SQLite format 3\0', kind: 'SQLite' },
  { start: 'PGDMP', kind: 'PostgreSQL' },
] as const

function kindOf(backup: string): 'SQLite' | 'PostgreSQL' | null {
  const bytes = Buffer.alloc(16)
  let file: number | null = null
  try {
    file = openSync(backup, 'r')
    readSync(file, bytes)
  } catch (error) {
    throw new Failure(`cannot read ${backup}: ${(error as NodeJS.ErrnoException).code}`)
  } finally {
    if (file !== null) closeSync(file)
  }
  return KINDS.find(({ start }) => bytes.toString('latin1').startsWith(start))?.kind ?? null
}

async function migrateAndVerify(config: Config, out: Output, backup: string, database: OpenDatabase) {
  const { executed } = await migrationState(database)
  if (executed.length === 0)
    throw new Failure(`${backup} is not a backup of this service: it has no migrations.`)
  const known = migrationNames()
  const newer = executed.filter((name) => !known.includes(name))
  if (newer.length > 0) {
    throw new Failure(
      `${backup} was made by a newer version of this service (migration ${newer[0]}). Restore it with that version or a later one.`,
    )
  }
  out.progress('migrating the copy')
  const migrated = await migrate(database).catch((error: Error) => {
    const [reason] = error.message.split('\n')
    throw new Failure(
      `${backup} cannot be migrated to this version (${reason}). Restore it with the version that made it.`,
      { code: 'unavailable' },
    )
  })
  const books = { database, keys: readKeys(config) }
  return { migrated, results: await runChecks(books, out) }
}
