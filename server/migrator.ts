import { MikroORM } from '@mikro-orm/core'
import { Migrator } from '@mikro-orm/migrations'
import { sql } from 'kysely'
import { migrationsFor } from './migrations/index.ts'
import { type Queries, withRetries } from './platform/database/database.ts'
import { type DatabaseFault, isBusy, postgresFault } from './platform/database/database-faults.ts'
import { migrationState, refuseNewerDatabase } from './platform/database/migration-state.ts'
import type { OpenDatabase } from './platform/database/open-database.ts'
import { hostAddresses } from './platform/database/postgres-address.ts'
import type { PostgresDatabase } from './platform/database/postgresql.ts'
import { refuseUnsuitableServer } from './platform/database/server-settings.ts'
import type { SqliteDatabase } from './platform/database/sqlite.ts'

/** The PostgreSQL advisory lock of migrations. */
const MIGRATION_LOCK = 7_041_947

/** The ORM on the connection of `database`. */
export async function openOrm(database: OpenDatabase) {
  const migrations = {
    migrationsList: migrationsFor(database.dialect),
    path: 'server/migrations',
    transactional: true,
    // SQLite cannot switch foreign keys off inside a transaction; see the decision on databases.
    disableForeignKeys: false,
    snapshot: false,
  }
  const { ENTITIES } = await import('./schema.ts')
  const options = {
    entities: ENTITIES,
    extensions: [Migrator],
    migrations,
    driverOptions: database.writer,
    logger: () => {},
  }
  if (database.dialect === 'sqlite') {
    const { SqliteDriver } = await import('@mikro-orm/sqlite')
    return MikroORM.init({ ...options, driver: SqliteDriver, dbName: database.file })
  }
  const { PostgreSqlDriver } = await import('@mikro-orm/postgresql')
  return MikroORM.init({
    ...options,
    driver: PostgreSqlDriver,
    clientUrl: hostAddresses(database.url)[0] ?? '',
  })
}

/** Runs the pending migrations; returns their names. Safe in several processes at once: one runs them, the others find them done. */
export async function migrate(database: OpenDatabase): Promise<string[]> {
  await refuseUnsuitableServer(database)
  refuseNewerDatabase(await migrationState(database))
  return database.dialect === 'sqlite' ? migrateSqlite(database) : migratePostgres(database.directUrl)
}

async function migrateSqlite(database: SqliteDatabase): Promise<string[]> {
  // Another process that migrates holds the lock longer than a transaction waits for, or has just created the migrator's table.
  const faultOf = (error: unknown): DatabaseFault | null =>
    isBusy(error) || /mikro_orm_migrations\S* already exists/.test(String(error))
      ? { kind: 'contention' }
      : database.faultOf(error)
  const { migrator } = await openOrm(database)
  // It looks up what has run inside its transaction, which begins `immediate`.
  return withRetries(faultOf, async () => (await migrator.up()).map(({ name }) => name))
}

/** How long one try to lock all tables may block the running service. */
const LOCK_TIMEOUT_MS = 200
const PAUSE_MS = 300
/** How long to retry in all, while a backup for instance holds a table. */
const GIVE_UP_AFTER_MS = 30_000

async function migratePostgres(url: string): Promise<string[]> {
  const { openPostgres } = await import('./platform/database/postgresql.ts')
  // Its own connections, without a statement timeout: a migration may take long, and the migrator writes on two of them.
  const database = openPostgres(url, { poolSize: 4, queryTimeoutMs: 0 })
  try {
    const orm = await openOrm(database)
    const giveUpAt = performance.now() + GIVE_UP_AFTER_MS
    for (;;) {
      try {
        const migrations = await migrateAlone(orm, database)
        // The planner knows nothing of new tables and indexes until their first statistics.
        if (migrations.length > 0) await sql`analyze`.execute(database.writer)
        return migrations
      } catch (error) {
        if (postgresFault(error)?.kind !== 'contention' || performance.now() > giveUpAt) throw error
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      }
    }
  } finally {
    await database.close()
  }
}

function migrateAlone(
  { em: manager, migrator }: Awaited<ReturnType<typeof openOrm>>,
  database: PostgresDatabase,
): Promise<string[]> {
  return manager.transactional(async (em) => {
    const transaction = em.getTransactionContext<Queries>()
    if (!transaction) throw new Error('no transaction to migrate in')
    await sql`set local statement_timeout = 0`.execute(transaction)
    await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(transaction)
    if ((await migrationState(database)).pending.length === 0) return []
    await lockAllTables(transaction)
    return (await migrator.up({ transaction })).map(({ name }) => name)
  })
}

/**
 * Locks all tables before any change: locking them one by one could deadlock with the running service. Other transactions queue behind the
 * request, so it has a short timeout.
 */
async function lockAllTables(transaction: Queries): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select tablename as name from pg_tables
    where schemaname = current_schema() and tablename <> 'mikro_orm_migrations' order by tablename`.execute(
    transaction,
  )
  if (rows.length === 0) return
  await sql`set local lock_timeout = ${sql.lit(LOCK_TIMEOUT_MS)}`.execute(transaction)
  await sql`lock table ${sql.join(rows.map(({ name }) => sql.table(name)))} in access exclusive mode`.execute(
    transaction,
  )
  await sql`set local lock_timeout to default`.execute(transaction)
}
