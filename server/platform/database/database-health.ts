import { sql } from 'kysely'
import { isStatementLost } from './database-faults.ts'
import { type DatabaseProblem, databaseProblem } from './database-problems.ts'
import type { OpenDatabase } from './open-database.ts'
import type { PostgresDatabase } from './postgresql.ts'

const RESTORE = 'Stop the service, keep a copy of the files, and restore a backup: affiliate db restore FILE.'

/** Commits that wait for a synchronous standby which is not there; `null` where none do. Cheap. */
export async function standbyProblem(database: OpenDatabase): Promise<DatabaseProblem | null> {
  if (database.dialect !== 'postgresql') return null
  // Only members of pg_monitor see the state of standbys, and the waits of other roles.
  const { rows } = await sql<{ names: string; waiting: number; connected: number; sees_all: boolean }>`
    select current_setting('synchronous_standby_names') as names,
      (select count(*) from pg_stat_activity where wait_event = 'SyncRep')::int as waiting,
      (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum'))::int as connected,
      pg_has_role('pg_monitor', 'usage') as sees_all`.execute(database.reader)
  const { names = '', waiting = 0, connected = 0, sees_all: seesAll = false } = rows[0] ?? {}
  if (names === '') return null
  const remedy =
    'Bring the standby back, or take it out of synchronous_standby_names and reload PostgreSQL; what waits is then answered.'
  if (waiting > 0) {
    return { says: `${waiting} commits wait for a synchronous standby (${names}).`, remedy }
  }
  if (connected > 0 || !seesAll) return null
  return { says: `No synchronous standby is connected (${names}): every write will hang.`, remedy }
}

/** Damage that can be seen: on SQLite every page is read; on PostgreSQL what the server has counted and marked. */
export function damageProblem(database: OpenDatabase): Promise<DatabaseProblem | null> {
  return database.dialect === 'sqlite' ? sqliteDamage(database) : postgresDamage(database)
}

async function sqliteDamage({ reader }: OpenDatabase): Promise<DatabaseProblem | null> {
  const { rows } = await sql<{ quick_check: string }>`pragma quick_check(1)`.execute(reader)
  const found = rows[0]?.quick_check ?? 'ok'
  if (found === 'ok') return null
  return { says: `The database is damaged: ${found.split('\n').at(-1)}.`, remedy: RESTORE }
}

async function postgresDamage({ reader }: PostgresDatabase): Promise<DatabaseProblem | null> {
  const { rows } = await sql<{ pages: number; indexes: string | null }>`
    select coalesce((select checksum_failures from pg_stat_database where datname = current_database()), 0)::int as pages,
      (select string_agg(indexrelid::regclass::text, ', ') from pg_index where not indisvalid) as indexes`.execute(
    reader,
  )
  const { pages = 0, indexes = null } = rows[0] ?? {}
  if (pages > 0) {
    return { says: `The database is damaged: ${pages} pages failed their checksum.`, remedy: RESTORE }
  }
  if (indexes === null) return null
  return { says: `Indexes are not valid: ${indexes}.`, remedy: 'Run "reindex index NAME" for each.' }
}

const TIMEOUTS = { connectionTimeoutMillis: 3000, query_timeout: 3000 }

/** What makes the pooler at this address unfit: it does not answer, or is too old for prepared statements. */
export async function examinePooler(url: string): Promise<DatabaseProblem | null> {
  const { clientOf } = await import('./postgres-hosts.ts')
  const name = `affiliate_probe_${process.pid}`
  const clients = [clientOf(url, TIMEOUTS), clientOf(url, TIMEOUTS)]
  try {
    for (const client of clients) {
      client.on('error', () => {})
      await client.connect()
      // Two clients with one name for a statement: a pooler in transaction mode must keep them apart.
      for (const text of ['select 1', 'select 1']) await client.query({ name, text })
    }
    return null
  } catch (error) {
    if (!isStatementLost(error)) {
      const problem = databaseProblem(error)
      if (problem === null) throw error
      return { says: `DATABASE_URL: ${problem.says}`, remedy: problem.remedy }
    }
    return {
      says: 'The pooler at DATABASE_URL does not keep prepared statements.',
      remedy: 'Install PgBouncer 1.21 or newer with max_prepared_statements = 200.',
    }
  } finally {
    await Promise.allSettled(clients.map((client) => client.end()))
  }
}
