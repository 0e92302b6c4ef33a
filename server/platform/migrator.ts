import { MikroORM } from '@mikro-orm/core'
import { Migrator } from '@mikro-orm/migrations'
import { sql } from 'kysely'
import { type Queries, withRetries } from './database.ts'
import { type DatabaseFault, isBusy, postgresFault } from './database-faults.ts'
import { migrationState } from './migration-state.ts'
import type { OpenDatabase } from './open-database.ts'
import type { PostgresDatabase } from './postgresql.ts'
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

/** How long the service's transactions may be held up at a time while all tables are waited for. */
const HOLD_UP_MS = 200
const PAUSE_MS = 300
/** How long those who hold a table, a backup for instance, are waited for in all. */
const PATIENCE_MS = 30_000

async function migratePostgres(url: string): Promise<string[]> {
  const { openPostgres } = await import('./postgresql.ts')
  // Its own connections: a migration may take longer than any statement of the service may.
  const database = openPostgres(url, { poolSize: 2, queryTimeoutMs: 0 })
  try {
    const orm = await openOrm(database)
    const giveUpAt = performance.now() + PATIENCE_MS
    for (;;) {
      try {
        return await migrateAlone(orm, database)
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
    // The migrator takes no lock of its own.
    await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(transaction)
    if ((await migrationState(database)).pending.length === 0) return []
    await takeAllTables(transaction)
    return namesOf(await migrator.up({ transaction }))
  })
}

/**
 * Before anything is changed, and all or none: who took them one by one would hold one that a transaction of the running service wants,
 * and wait for one that it holds. While they are waited for, everybody else waits behind, so that is given up soon.
 */
async function takeAllTables(transaction: Queries): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select tablename as name from pg_tables
    where schemaname = current_schema() and tablename <> 'mikro_orm_migrations' order by tablename`.execute(
    transaction,
  )
  if (rows.length === 0) return
  await sql`set local lock_timeout = ${sql.lit(HOLD_UP_MS)}`.execute(transaction)
  await sql`lock table ${sql.join(rows.map(({ name }) => sql.table(name)))} in access exclusive mode`.execute(
    transaction,
  )
  await sql`set local lock_timeout to default`.execute(transaction)
}

function namesOf(migrations: { name: string }[]): string[] {
  return migrations.map((migration) => migration.name)
}
