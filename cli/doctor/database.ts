import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { sql } from 'kysely'
import type { Config } from '../../server/platform/config.ts'
import {
  damageProblem,
  examinePooler,
  standbyProblem,
} from '../../server/platform/database/database-health.ts'
import { type MigrationState, migrationState } from '../../server/platform/database/migration-state.ts'
import {
  type OpenDatabase,
  openDatabase,
  refuseOtherDatabase,
} from '../../server/platform/database/open-database.ts'
import { databaseNameOf, hostsOf } from '../../server/platform/database/postgres-address.ts'
import { unsuitableSettings } from '../../server/platform/database/server-settings.ts'
import { about, databaseFailure, type Finding, type Found, wordsOf } from './finding.ts'

const { ok, warn, fail } = about('database')
const migrations = about('migrations')
const pooler = about('pooler')
const replica = about('replica')

/** `usable`: it answers and has the newest schema. */
export async function examineDatabase(
  config: Config,
  database: OpenDatabase,
): Promise<{ usable: boolean; found: Found }> {
  try {
    await sql`select 1`.execute(database.reader)
    const state = await migrationState(database)
    const own =
      database.dialect === 'sqlite'
        ? await examineSqlite(database, database.file)
        : await examinePostgres(config, database)
    const damage = await damageProblem(database)
    const problems = [damage, await standbyProblem(database)].filter((problem) => problem !== null)
    return {
      usable: state.pending.length === 0 && damage === null,
      found: [
        own,
        problems.map(({ says, remedy }) => fail(says, remedy)),
        await judgePooler(config),
        judgeMigrations(state),
      ],
    }
  } catch (error) {
    return { usable: false, found: databaseFailure(error) }
  }
}

function judgeMigrations({ executed, pending, unknown }: MigrationState): Finding {
  if (unknown.length > 0) {
    return migrations.fail(
      `the database belongs to a newer version: this one does not know ${unknown.join(', ')}`,
      'Install that version again, or restore a backup from before the upgrade.',
    )
  }
  if (pending.length === 0) return migrations.ok(`${executed.length} applied, none pending`)
  const mend = 'Run "affiliate db migrate"; "affiliate serve" does it too.'
  return migrations.fail(`${pending.join(', ')} pending`, mend)
}

/** The address of the service, where commands go past it. */
async function judgePooler({ DATABASE_URL, DATABASE_DIRECT_URL }: Config): Promise<Found> {
  if (DATABASE_DIRECT_URL === undefined) return null
  try {
    await refuseOtherDatabase('DATABASE_DIRECT_URL', DATABASE_DIRECT_URL, DATABASE_URL)
    const problem = await examinePooler(DATABASE_URL)
    if (problem) return pooler.fail(problem.says, problem.remedy)
    return pooler.ok(`DATABASE_URL (${hostsOf(DATABASE_URL)}) answers and keeps prepared statements`)
  } catch (error) {
    return databaseFailure(error, 'pooler')
  }
}

async function examineSqlite(database: OpenDatabase, file: string): Promise<Found> {
  const mode = await settingOf(database, 'pragma journal_mode', 'journal_mode')
  const wal =
    mode === 'wal'
      ? ok(`SQLite at ${file}, WAL; the service writes with synchronous=FULL`)
      : warn(
          `SQLite at ${file} is in journal mode ${mode}`,
          'The service switches to WAL when it starts; a copy made by "db backup" needs nothing else.',
        )
  return [wal, writable(file)]
}

function writable(file: string): Finding {
  try {
    for (const path of [file, dirname(file)]) accessSync(path, constants.W_OK)
    return ok('the file and its folder can be written')
  } catch {
    const mend = 'Run as the user of the service, or give this one write permission on the folder.'
    return fail(`${file} or its folder cannot be written by this user`, mend)
  }
}

async function examinePostgres(config: Config, database: OpenDatabase): Promise<Found> {
  // Commands go past a pooler, which `judgePooler` examines.
  const url = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL
  const hosts = hostsOf(url)
  const version = await settingOf(database, 'show server_version', 'server_version')
  const off: string[] = []
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    if ((await settingOf(database, `show ${name}`, name)) === 'off') off.push(name)
  }
  const readOnly = await settingOf(database, 'select pg_is_in_recovery() as standby', 'standby')
  if (readOnly === 'true') {
    return fail(`${hosts} is a standby and takes reads only`, 'Name the primary in DATABASE_URL.')
  }
  const place = `PostgreSQL ${version} at ${hosts}/${databaseNameOf(url)}`
  const unsuitable = (await unsuitableSettings(database)).map((problem) =>
    fail(problem, 'Correct it on the server; the service does not start with it.'),
  )
  if (off.length === 0) return [ok(`${place}; what is committed is on disk (fsync on)`), ...unsuitable]
  const lossy = fail(
    `${place} runs with ${off.join(', ')} off: a power cut loses what was answered`,
    `Set ${off.map((name) => `${name} = on`).join(', ')} in postgresql.conf and reload.`,
  )
  return [...unsuitable, lossy]
}

/** How far the replica of DATABASE_READ_URL is behind. Empty without one. */
export async function examineReplica(config: Config): Promise<Found> {
  const { DATABASE_READ_URL: url, DATABASE_URL, DATABASE_DIRECT_URL } = config
  if (url === undefined) return null
  const place = hostsOf(url)
  const direct = DATABASE_DIRECT_URL ?? DATABASE_URL
  try {
    await refuseOtherDatabase('DATABASE_READ_URL', url, direct)
  } catch (error) {
    return replica.fail(`${place}: ${wordsOf(error)}`, 'Public reads go to the primary meanwhile.')
  }
  const database = await openDatabase(direct, { create: false, readOnly: true, readUrl: url })
  try {
    const found = database.dialect === 'postgresql' ? database.replica : null
    if (await found?.reachesNow()) return replica.ok(`${place} has what the primary has`)
    const mend = 'Look at pg_stat_replication on the primary. More than 5 s behind it is not used.'
    return replica.warn(`${place} is behind the primary`, mend)
  } finally {
    await database.close()
  }
}

async function settingOf(database: OpenDatabase, statement: string, column: string): Promise<string> {
  const { rows } = await sql.raw<Record<string, unknown>>(statement).execute(database.reader)
  return String(rows[0]?.[column] ?? '')
}
