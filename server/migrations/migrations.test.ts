import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { migrate, migrationState, openOrm } from '../platform/database/migrator.ts'
import type { OpenDatabase } from '../platform/database/open-database.ts'
import { ENTITIES } from '../platform/database/schema.ts'
import { openTestDatabase, type TestDialect, testDialects } from '../test/testkit/databases.ts'
import { idNumber, ONE_OF_EACH, populate } from '../test/testkit/one-of-each.ts'
import { raceProcesses } from '../test/testkit/racing-processes.ts'
import { schemaShape } from '../test/testkit/schema-shape.ts'
import { postgresqlMigrations } from './postgresql/index.ts'
import { sqliteMigrations } from './sqlite/index.ts'

const NAMES = { sqlite: sqliteMigrations, postgresql: postgresqlMigrations }

/** Each dialect's own full-text search, which no entity can describe. */
const BEYOND_ENTITIES = /^offer_search|^offers (column search_vector|index CREATE INDEX offers_search) /

/** What PostgreSQL is asked of once a statement (migrations 12 and 14), and SQLite by foreign keys. */
const CHECKED_AT_ONCE =
  /^(ledger_postings constraint ledger_postings_entry_id|sales constraint sales_(store|merchant|billing_cycle)_id|inbound_bodies constraint inbound_bodies_event_id)_foreign /

/** SQLite's index of a cycle's sales holds more than the entities say (migration 13). */
const CYCLE_INDEX = /^sales index .*\bsales_cycle\b/

async function withEmptyDatabase(
  dialect: TestDialect,
  work: (database: OpenDatabase, url: string) => Promise<void>,
): Promise<void> {
  const { database, url, close } = await openTestDatabase(dialect, { migrated: false })
  try {
    await work(database, url)
  } finally {
    await close()
  }
}

/** Every row of the given tables, as JSON with sorted names. */
async function rowsOf(
  database: OpenDatabase,
  columns: Map<string, string[]>,
): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  for (const [table, names] of columns) {
    const { rows } = await sql<Record<string, unknown>>`
      select ${sql.join(names.map((name) => sql.ref(name)))} from ${sql.table(table)}`.execute(
      database.writer,
    )
    found.set(table, rows.map((row) => JSON.stringify(row)).sort())
  }
  return found
}

/** Columns that a migration drops: `payout_lines` holds the same, and a former version must not go on without knowing of parts. */
const DROPPED: Record<string, readonly string[]> = { billing_cycle_shares: ['payout_id'] }

/** The columns that there are by now, of the tables that the entities describe. */
async function columnsOf(database: OpenDatabase): Promise<Map<string, string[]>> {
  const tables = (await database.writer.introspection.getTables()).filter(({ name }) => name in ONE_OF_EACH)
  return new Map(
    tables.map((table) => [
      table.name,
      table.columns
        .map((column) => column.name)
        .filter((column) => !DROPPED[table.name]?.includes(column))
        .sort(),
    ]),
  )
}

/** Resolves once a lock is waited for. */
async function somebodyWaits({ writer }: OpenDatabase): Promise<void> {
  for (;;) {
    const { rows } = await sql`select from pg_locks where not granted and locktype = 'relation'
      and database = (select oid from pg_database where datname = current_database())`.execute(writer)
    if (rows.length > 0) return
  }
}

for (const dialect of testDialects()) {
  const names = NAMES[dialect].map((migration) => migration.name)
  const it = suite(`migrations on ${dialect}`)

  it('make the schema that the entities describe', () =>
    withEmptyDatabase(dialect, (migrated) =>
      withEmptyDatabase(dialect, async (described) => {
        await migrate(migrated)
        const orm = await openOrm(described)
        await orm.schema.execute(await orm.schema.getCreateSchemaSQL())
        const alike = (line: string) => dialect !== 'sqlite' || !CYCLE_INDEX.test(line)
        const shape = (await schemaShape(migrated))
          .filter((line) => !BEYOND_ENTITIES.test(line))
          .filter(alike)
        const wanted = (await schemaShape(described))
          .filter((line) => !CHECKED_AT_ONCE.test(line))
          .filter(alike)
        assert.equal(shape, wanted)
        assert.ok(shape.length > 250 && shape.some((line) => line.includes('sales_accepted_check')))
      }),
    ))

  it('run in order, once; a second run finds nothing to do', () =>
    withEmptyDatabase(dialect, async (database) => {
      assert.equal(await migrationState(database), { executed: [], pending: names })
      assert.equal(await migrate(database), names)
      assert.equal(await migrationState(database), { executed: names, pending: [] })
      assert.equal(await migrate(database), [])
      assert.equal(await migrationState(database), { executed: names, pending: [] })
      assert.equal([...names].sort(), names)
    }))

  it('have rows of every table to be tried on', () => {
    const tables = Object.values(ENTITIES)
      .map((entity) => entity.meta.tableName)
      .sort()
    assert.equal(Object.keys(ONE_OF_EACH).sort(), tables)
    assert.ok(Object.values(ONE_OF_EACH).every((rows) => rows.length > 0))
  })

  it('lose nothing of a populated database, each of them', () =>
    withEmptyDatabase(dialect, async (database) => {
      const { migrator } = await openOrm(database)
      for (const name of names) {
        const columns = await columnsOf(database)
        const before = await rowsOf(database, columns)
        assert.equal(
          [...before].filter(([, rows]) => rows.length === 0),
          [],
          `no rows before ${name}`,
        )
        await migrator.up({ to: name })
        assert.equal(await rowsOf(database, columns), before, name)
        if (dialect === 'sqlite') {
          assert.equal((await sql`pragma foreign_key_check`.execute(database.reader)).rows, [], name)
          const [verdict] = (await sql`pragma integrity_check`.execute(database.reader)).rows
          assert.equal(verdict, { integrity_check: 'ok' }, name)
        }
        await populate(database)
      }
    }))

  it('take all visits that were counted before for visits of their own', () =>
    withEmptyDatabase(dialect, async (database) => {
      const { migrator } = await openOrm(database)
      await migrator.up({ to: names[names.indexOf('00007-repeat-clicks') - 1] as string })
      await populate(database)
      const link = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
      await sql`insert into click_counts (link_id, clicks) values (${link}, 42)`.execute(database.writer)
      await migrate(database)
      const { reader } = database
      const counts = await reader.selectFrom('click_counts').select(['clicks', 'unique_clicks']).execute()
      assert.ok(counts.length > 1 && counts.some(({ clicks }) => clicks === 42))
      for (const { clicks, unique_clicks } of counts) assert.is(unique_clicks, clicks)
      assert.equal(await reader.selectFrom('clicks').select('repeated').distinct().execute(), [
        { repeated: 0 },
      ])
    }))

  it('leave admins logged in for 12 hours at most, and others as they are', () =>
    withEmptyDatabase(dialect, async (database) => {
      const { migrator } = await openOrm(database)
      await migrator.up({ to: names[names.indexOf('00032-second-factor') - 1] as string })
      await populate(database)
      const [day, hour] = [86_400_000, 3_600_000]
      const [merchant, , admin] = ONE_OF_EACH.users.map(({ id }) => id)
      const sessions: [string, string | undefined, number][] = [
        ['a', admin, 30 * day],
        ['b', admin, hour],
        ['c', merchant, 30 * day],
      ]
      for (const [n, [hash, user, lifetime]] of sessions.entries()) {
        await sql`insert into sessions (id, user_id, token_hash, created_at, expires_at)
          values (${idNumber(900 + n)}, ${user}, ${hash}, ${day}, ${day + lifetime})`.execute(database.writer)
      }
      await migrate(database)
      const rows = await database.reader
        .selectFrom('sessions')
        .select(['token_hash', 'expires_at', 'setup_only'])
        .where('created_at', '=', day)
        .orderBy('token_hash')
        .execute()
      assert.equal(
        rows.map(({ token_hash, expires_at, setup_only }) => [token_hash, expires_at - day, setup_only]),
        [
          ['a', 12 * hour, 0],
          ['b', hour, 0],
          ['c', 30 * day, 0],
        ],
      )
    }))

  if (dialect === 'postgresql') {
    it('and the transactions of a running service wait for each other, and none is broken off', () =>
      withEmptyDatabase(dialect, async (database) => {
        const { migrator } = await openOrm(database)
        await migrator.up({ to: '00012-checked-at-once' })
        await populate(database)
        let migrating: Promise<string[]> | undefined
        // As a worker does: it has read bodies, and then settles events, which the migration has begun with.
        await database.transaction(async (tx) => {
          await tx.selectFrom('inbound_bodies').select('event_id').execute()
          migrating = migrate(database)
          await somebodyWaits(database)
          await tx.updateTable('inbound_events').set({ attempts: 1 }).execute()
        })
        assert.equal(await migrating, names.slice(names.indexOf('00014-bodies-of-events')))
      }))

    it('have bodies compressed cheaply, or not at all', () =>
      withEmptyDatabase(dialect, async (database) => {
        await migrate(database)
        const { rows } = await sql<{ how: string }>`
          select attcompression::text || attstorage::text as how from pg_attribute
          where attrelid = 'inbound_bodies'::regclass and attname = 'body'`.execute(database.reader)
        const knowsLz4 = await sql`alter table sales alter column receipt set compression lz4`
          .execute(database.writer)
          .then(() => true)
          .catch(() => false)
        assert.equal(rows, [{ how: knowsLz4 ? 'lx' : 'e' }])
      }))
  }

  it('of two processes at once all succeed, and run once', () =>
    withEmptyDatabase(dialect, async (database, url) => {
      const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
      const printed = await raceProcesses(2, {
        prepare: `
          const { openDatabase } = await import(${module('../platform/database/open-database.ts')})
          const { migrate, openOrm } = await import(${module('../platform/database/migrator.ts')})
          const database = await openDatabase(${JSON.stringify(url)}, { create: true })
          await openOrm(database)`,
        run: `
          console.log(JSON.stringify(await migrate(database)))
          await database.close()`,
      })
      assert.equal(printed.flatMap((line) => JSON.parse(line) as string[]).sort(), names)
      assert.equal((await migrationState(database)).pending, [])
    }))

  it.run()
}
