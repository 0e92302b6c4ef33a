import { MikroORM } from '@mikro-orm/core'
import { Migrator } from '@mikro-orm/migrations'
import { sql } from 'kysely'
import { withRetries } from './database.ts'
import { type DatabaseFault, isBusy } from './database-faults.ts'
import type { OpenDatabase } from './open-database.ts'
import { ENTITIES } from './schema.ts'
import type { SqliteDatabase } from './sqlite.ts'

export { type MigrationState, migrationState } from './migration-state.ts'

/** Any number that no other program takes as its PostgreSQL advisory lock. */
const MIGRATION_LOCK = 7_041_947

/** The ORM over our own connection: used for the schema and its migrations only. */
export async function openOrm(database: OpenDatabase) {
  const migrations = {
    migrationsList: await migrationsOf(database.dialect),
    path: `server/migrations/${database.dialect}`,
    transactional: true,
    // Foreign keys cannot be switched off inside a transaction on SQLite, and must not be: see the decision on databases.
    disableForeignKeys: false,
    snapshot: false,
  }
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
  return MikroORM.init({ ...options, driver: PostgreSqlDriver, clientUrl: database.url })
}

async function migrationsOf(dialect: OpenDatabase['dialect']) {
  if (dialect === 'sqlite') return (await import('../migrations/sqlite/index.ts')).sqliteMigrations
  return (await import('../migrations/postgresql/index.ts')).postgresqlMigrations
}

/**
 * Brings the database to the newest schema. Answers the names of the migrations that it ran. Any number of processes
 * may do so at once: one runs them, the others find them done.
 */
export async function migrate(database: OpenDatabase): Promise<string[]> {
  return database.dialect === 'sqlite' ? migrateSqlite(database) : migratePostgres(database.url)
}

async function migrateSqlite(database: SqliteDatabase): Promise<string[]> {
  // Another process that migrates keeps the lock longer than any request would wait for.
  const faultOf = (error: unknown): DatabaseFault | null =>
    isBusy(error) ? { kind: 'contention' } : database.faultOf(error)
  // The migrator makes its table outside of any transaction, and fails when another process has just made it.
  await withRetries(faultOf, () => database.transaction((tx) => sql.raw(SQLITE_MIGRATIONS_TABLE).execute(tx)))
  const { migrator } = await openOrm(database)
  // It looks up what has run already inside of its one transaction, which begins `immediate`.
  return withRetries(faultOf, async () => namesOf(await migrator.up()))
}

/** As the migrator itself writes it. */
const SQLITE_MIGRATIONS_TABLE = `create table if not exists mikro_orm_migrations (
  id integer not null primary key autoincrement,
  name text not null,
  executed_at datetime not null default (strftime('%s', 'now') * 1000))`

async function migratePostgres(url: string): Promise<string[]> {
  const { openPostgres } = await import('./postgresql.ts')
  // Its own connections: a migration may take longer than any statement of the service may.
  const database = openPostgres(url, { poolSize: 2, queryTimeoutMs: 0 })
  try {
    const { em: manager, migrator } = await openOrm(database)
    return await manager.transactional(async (em) => {
      const transaction = em.getTransactionContext()
      // The migrator takes no lock of its own.
      await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(transaction)
      return namesOf(await migrator.up({ transaction }))
    })
  } finally {
    await database.close()
  }
}

function namesOf(migrations: { name: string }[]): string[] {
  return migrations.map((migration) => migration.name)
}
