import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PoolClient, QueryConfig } from 'pg'
import { suite, type Test } from 'uvu'
import { type OpenDatabase, openDatabase } from '../../platform/database/open-database.ts'
import type { PostgresDatabase } from '../../platform/database/postgresql.ts'
import { administer, copyMigratedSqlite, databaseUrl, migratedPostgres } from './migrated-databases.ts'

export const DIALECTS = ['sqlite', 'postgresql'] as const
export type TestDialect = (typeof DIALECTS)[number]

/** With a folder beside the database, for keys and files. */
export type TestDatabase = Awaited<ReturnType<typeof openTestDatabase>>

/** The databases to test on: both, or one with TEST_SQLITE_ONLY or TEST_POSTGRES_ONLY. */
export function testDialects(): readonly TestDialect[] {
  if (process.env.TEST_SQLITE_ONLY) return ['sqlite']
  return process.env.TEST_POSTGRES_ONLY ? ['postgresql'] : DIALECTS
}

/** A suite that needs PostgreSQL; where there is none, an empty one that says so. */
export function onPostgres<Context>(it: Test<Context>): Test<Context> {
  if (testDialects().includes('postgresql')) return it
  console.log('\nskipped: there is no PostgreSQL in this run')
  const without = suite<Context>('without PostgreSQL')
  without.skip()
  return without
}

/** In place of the service's own 1.5 s, ms: beside other tests, a slow machine takes longer to make a connection. */
export const CONNECTION_WAIT = { waitMs: 60_000 }

export interface TestDatabaseOptions {
  migrated?: boolean
  /** PostgreSQL: prepares the database as its owner and returns the address to open it by. */
  openAs?: (ownerUrl: string) => Promise<string>
}

/**
 * An empty database; migrated unless `migrated` is false. One of PostgreSQL without options may be one that an earlier test of this process
 * has left as it was, with its open connections.
 */
export async function openTestDatabase(dialect: TestDialect, options: TestDatabaseOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-test-'))
  const removeFolder = () => rmSync(folder, { recursive: true, force: true })
  if (dialect === 'sqlite') {
    const file = join(folder, 'affiliate.db')
    if (options.migrated ?? true) await copyMigratedSqlite(file)
    const url = `sqlite:${file}`
    const database: OpenDatabase = await openDatabase(url, { create: true })
    return { database, url, folder, close: () => database.close().then(removeFolder) }
  }
  const { name, database, schema } = (isPlain(options) && spares.pop()) || (await createPostgres(options))
  const release = async () => {
    if (schema !== null && (await isEmptied(database, schema).catch(() => false)))
      spares.push({ name, database, schema })
    else await dropPostgres({ name, database })
    removeFolder()
  }
  let released: Promise<void> | undefined
  // Once: the next test may have it by the second time.
  return { database, url: database.url, folder, close: () => (released ??= release()) }
}

let counter = 1

interface PostgresTestDatabase {
  name: string
  database: PostgresDatabase
  /** What `SCHEMA` tells of it as it was made; `null` if it is for one test only. */
  schema: string | null
}

const isPlain = (options: TestDatabaseOptions) => Object.keys(options).length === 0

async function createPostgres(options: TestDatabaseOptions): Promise<PostgresTestDatabase> {
  const name = `test_${process.pid}_${counter++}`
  // Copying files is quicker than writing each page to the log, which such small databases could do as well.
  const from = (options.migrated ?? true) ? `template ${await migratedPostgres()} strategy file_copy` : ''
  await administer(`create database ${name} ${from}`)
  const ownerUrl = databaseUrl(name)
  const url = (await options.openAs?.(ownerUrl)) ?? ownerUrl
  const database = (await openDatabase(url, { create: true, ...CONNECTION_WAIT })) as PostgresDatabase
  if (!isPlain(options)) return { name, database, schema: null }
  for (const pool of Object.values(database.pools)) {
    pool.options.allowExitOnIdle = true
    pool.on('connect', prepareStatements)
  }
  const { rows } = await database.pools.write.query<{ schema: string }>(`select ${SCHEMA} as schema`)
  return { name, database, schema: rows[0]?.schema ?? null }
}

/** Has a connection prepare each query at its first use: tests ask the same ones hundreds of times, and planning takes longer than running them. */
function prepareStatements(client: PoolClient): void {
  const names = new Map<string, string>()
  const query = client.query.bind(client) as (...parts: unknown[]) => unknown
  client.query = ((config: string | QueryConfig, ...rest: unknown[]) => {
    // One without values may be several statements.
    if (typeof config === 'string' || config.name !== undefined || !isOneStatement(config))
      return query(config, ...rest)
    const name = names.get(config.text) ?? `prepared_${names.size}`
    names.set(config.text, name)
    return query({ ...config, name }, ...rest)
  }) as typeof client.query
}

const isOneStatement = ({ text, values = [] }: QueryConfig) =>
  values.length > 0 || /^\s*(?:select|with)\b/.test(text)

async function dropPostgres({
  name,
  database,
}: Pick<PostgresTestDatabase, 'name' | 'database'>): Promise<void> {
  await database.close()
  await administer(`drop database if exists ${name} with (force)`)
}

/** Empty databases of tests that are done, to be used by the next ones of this process: making one takes the server 20 ms. */
const spares: PostgresTestDatabase[] = []

process.on('beforeExit', async () => {
  // The server may be gone, which only a test that fails cares about.
  for (const spare of spares.splice(0)) await dropPostgres(spare).catch(() => undefined)
})

const OWN = 16_384
/** Differs after every change that a test may make, but for rows. */
const SCHEMA = `concat_ws(' ',
  (select concat(count(*), '-', max(oid)) from pg_class where oid >= ${OWN}),
  (select concat(count(*), '-', max(oid)) from pg_proc where oid >= ${OWN}),
  (select concat(count(*), '-', max(oid)) from pg_constraint where oid >= ${OWN}),
  (select concat(count(*), '-', max(oid)) from pg_trigger where oid >= ${OWN} and tgenabled = 'O'),
  (select count(*) from pg_attribute where attrelid >= ${OWN} and not attisdropped),
  (select count(*) from pg_index where indexrelid >= ${OWN} and indisvalid),
  (select count(*) from pg_db_role_setting),
  (select string_agg(name, ' ') from mikro_orm_migrations))`

/** Deletes all rows. Resolves to false if the database is of no use to another test: its schema was changed, or something still uses it. */
async function isEmptied({ pools }: PostgresDatabase, schema: string): Promise<boolean> {
  const { read, write } = pools
  if ([read, write].some((pool) => pool.idleCount < pool.totalCount)) return false
  const { rows } = await write.query<{ schema: string; connections: number; tables: string[] }>(`
    select ${SCHEMA} as schema,
      (select count(*) from pg_stat_activity where datname = current_database())::int as connections,
      array(select format('%I', relname) from pg_class
        where relkind = 'r' and relnamespace = 'public'::regnamespace and pg_relation_size(oid) > 0
          and relname <> 'mikro_orm_migrations') as tables`)
  const [found] = rows
  if (found?.schema !== schema || found.connections !== read.totalCount + write.totalCount) return false
  // As a replica it deletes without triggers: neither guards nor foreign keys.
  const deletions = found.tables.map((table) => `delete from ${table};`)
  await write.query(`begin; set local session_replication_role = replica; ${deletions.join(' ')} commit`)
  return true
}
