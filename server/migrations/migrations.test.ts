import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { migrate, openOrm } from '../migrator.ts'
import { migrationNames, migrationState } from '../platform/database/migration-state.ts'
import type { OpenDatabase } from '../platform/database/open-database.ts'
import { ENTITIES } from '../schema.ts'
import { openTestDatabase, type TestDialect, testDialects } from '../test/testkit/databases.ts'
import { ONE_OF_EACH, populate } from '../test/testkit/one-of-each.ts'
import { raceProcesses } from '../test/testkit/racing-processes.ts'
import { rejectionOf } from '../test/testkit/rejection.ts'
import { schemaShape } from '../test/testkit/schema-shape.ts'
import { migrationsFor } from './index.ts'

/** Each dialect's own full-text search, which no entity can describe. */
const BEYOND_ENTITIES = /^offer_search|^offers (column search_vector|index CREATE INDEX offers_search) /

/** What PostgreSQL checks once a statement (`references` in ddl.ts), and SQLite by foreign keys. */
const CHECKED_AT_ONCE =
  /^(ledger_postings constraint ledger_postings_entry_id|sales constraint sales_(store|merchant|billing_cycle)_id|inbound_bodies constraint inbound_bodies_event_id)_foreign /

/** Only SQLite sums a cycle's shares from an index. */
const CYCLE_INDEX = /^sales index .*\bsales_cycle_shares\b/

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

/** The statements by which MikroORM would create these tables and their indexes. */
async function sqlFor(tables: Iterable<string>, { schema }: Awaited<ReturnType<typeof openOrm>>) {
  const wanted = new Set(tables)
  const statements = (await schema.getCreateSchemaSQL()).replaceAll('`', '"').split('\n')
  return statements
    .filter((text) =>
      wanted.has(/^(?:create table|alter table|create .*index "\w+" on) "(\w+)"/.exec(text)?.[1] ?? ''),
    )
    .join('\n')
}

/** Resolves once a transaction waits for a lock. */
async function untilOneWaits({ writer }: OpenDatabase): Promise<void> {
  for (;;) {
    const { rows } = await sql`select from pg_locks where not granted and locktype = 'relation'
      and database = (select oid from pg_database where datname = current_database())`.execute(writer)
    if (rows.length > 0) return
  }
}

/** Bodies are compressed with lz4, or not at all. */
async function compressesCheaply({ reader, writer }: OpenDatabase): Promise<void> {
  const { rows } = await sql<{ how: string }>`
    select attcompression::text || attstorage::text as how from pg_attribute
    where attrelid = 'inbound_bodies'::regclass and attname = 'body'`.execute(reader)
  const lz4 = sql`alter table sales alter column receipt set compression lz4`.execute(writer)
  assert.equal(rows, [{ how: (await rejectionOf(lz4)) === null ? 'lx' : 'e' }])
}

for (const dialect of testDialects()) {
  const names = migrationsFor(dialect).map((migration) => migration.name)
  const it = suite(`migrations on ${dialect}`)

  it('run in order, once, and make the schema that the entities describe', () =>
    withEmptyDatabase(dialect, (migrated) =>
      withEmptyDatabase(dialect, async (described) => {
        assert.equal(await migrationState(migrated), { executed: [], pending: names, unknown: [] })
        for (const run of [names, []]) {
          assert.equal(await migrate(migrated), run)
          assert.equal(await migrationState(migrated), { executed: names, pending: [], unknown: [] })
        }
        assert.equal([...names].sort(), names)
        assert.equal(migrationNames(), names, 'each has a file of its name, and each file is one')
        if (dialect === 'postgresql') await compressesCheaply(migrated)
        const orm = await openOrm(described)
        await orm.schema.execute(await orm.schema.getCreateSchemaSQL())
        const alike = (line: string) => dialect !== 'sqlite' || !CYCLE_INDEX.test(line)
        const shape = (await schemaShape(migrated))
          .filter((line) => !BEYOND_ENTITIES.test(line))
          .filter(alike)
        const wanted = (await schemaShape(described))
          .filter((line) => !CHECKED_AT_ONCE.test(line))
          .filter(alike)
        const missing = wanted.filter((line) => !shape.includes(line))
        const surplus = shape.filter((line) => !wanted.includes(line))
        const tables = new Set([...missing, ...surplus].map((line) => line.split(' ')[0] ?? ''))
        const lines = (sign: string, all: string[]) => all.map((line) => `${sign} ${line}`).join('\n')
        assert.is(
          missing.length + surplus.length,
          0,
          `the entities want other tables than the migrations make (+ to add, - to remove):
${lines('+', missing)}
${lines('-', surplus)}
Add a migration; those that landed are never edited. As MikroORM would create these tables:
${await sqlFor(tables, orm)}`,
        )
        assert.ok(shape.length > 250 && shape.some((line) => line.includes('sales_accepted_check')))
      }),
    ))

  it('keep the rows of an older database', () =>
    withEmptyDatabase(dialect, async (database) => {
      const { migrator } = await openOrm(database)
      await migrator.up({ to: '00001-initial' })
      await populate(database)
      const rows = async (table: 'applications' | 'affiliate_links' | 'credits') =>
        (await database.writer.selectFrom(table).selectAll().execute()) as object[]
      const tables = ['applications', 'affiliate_links', 'credits'] as const
      const before = await Promise.all(tables.map(rows))
      assert.ok(before.flat().length >= tables.length)
      await migrate(database)
      const after = await Promise.all(tables.map(rows))
      // What was added since is null.
      for (const [index, rows] of before.entries())
        for (const [at, former] of rows.entries()) {
          const row = after[index]?.[at] ?? {}
          const added = Object.fromEntries(Object.keys(row).map((name) => [name, null]))
          assert.equal(row, { ...added, ...former })
        }
    }))

  it('have rows of every table to be tried on', () => {
    const tables = ENTITIES.map((entity) => entity.meta.tableName).sort()
    assert.equal(Object.keys(ONE_OF_EACH).sort(), tables)
    assert.ok(Object.values(ONE_OF_EACH).every((rows) => rows.length > 0))
  })

  if (dialect === 'postgresql') {
    it('and the transactions of a running service wait for each other, and none is broken off', async () => {
      const { database, close } = await openTestDatabase(dialect)
      await populate(database)
      // The last migration is pending again, and fails once it has the locks: its tables exist.
      await sql`delete from mikro_orm_migrations where name = ${names.at(-1) ?? ''}`.execute(database.writer)
      let migrating: Promise<unknown> | undefined
      // As a worker does: it has read bodies, and then settles events.
      await database.transaction(async (tx) => {
        await tx.selectFrom('inbound_bodies').select('event_id').execute()
        migrating = migrate(database).catch((error: Error) => error.message)
        await untilOneWaits(database)
        await tx.updateTable('inbound_events').set({ attempts: 1 }).execute()
      })
      assert.match(String(await migrating), /already exists/)
      await close()
    })
  }

  it('of two processes at once all succeed, and run once', () =>
    withEmptyDatabase(dialect, async (database, url) => {
      const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
      const printed = await raceProcesses(2, {
        prepare: `
          const { openDatabase } = await import(${module('../platform/database/open-database.ts')})
          const { migrate, openOrm } = await import(${module('../migrator.ts')})
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
