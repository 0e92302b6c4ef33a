import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runAffiliate } from '../../cli/test/run-affiliate.ts'
import { migrate, migrationState } from '../platform/database/migrator.ts'
import { startService } from '../service.ts'
import { testDialects } from './testkit/databases.ts'
import { type FixtureDatabase, openFixtureDatabase } from './testkit/fixture-databases.ts'
import { schemaShape } from './testkit/schema-shape.ts'

const WRONG_KEY = Buffer.alloc(32, 8).toString('base64')

/** All that a start could write: the schema, every row, and every file in the data folder. */
async function stateOf({ database, folder }: FixtureDatabase): Promise<unknown> {
  const tables = (await database.reader.introspection.getTables()).map(({ name }) => name).sort()
  const rows: Record<string, string[]> = {}
  for (const table of tables) {
    const found = await sql`select * from ${sql.table(table)}`.execute(database.reader)
    rows[table] = found.rows.map((row) => JSON.stringify(row)).sort()
  }
  // Reads of this test keep a log and an index of it open beside an SQLite file.
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => !/-(wal|shm)$/.test(name),
  )
  const files = names.sort().map((name) => {
    const path = join(folder, name)
    return [name, statSync(path).isFile() && readFileSync(path, 'base64')]
  })
  return { shape: await schemaShape(database), rows, files }
}

for (const dialect of testDialects()) {
  const it = suite<{ fixture: FixtureDatabase }>(`a start with a wrong key on ${dialect}`)

  it.before.each(async (world) => {
    world.fixture = await openFixtureDatabase(dialect, '309daf1')
  })
  it.after.each(({ fixture }) => fixture.close())

  const settings = ({ url, folder }: FixtureDatabase) => ({
    PORT: '0',
    DATABASE_URL: url,
    DATA_DIR: folder,
    LOG_LEVEL: 'silent',
  })

  async function writesNothing(fixture: FixtureDatabase, key: Record<string, string>): Promise<void> {
    const before = await stateOf(fixture)
    const environment = { ...settings(fixture), ...key }
    const refusal = await startService({ environment }).then(
      (service) => service.stop(),
      (error: Error) => error.message,
    )
    assert.match(String(refusal), /^setting APP_KEY: /)
    const { code, stderr } = await runAffiliate(['db', 'migrate'], { environment })
    assert.is(code, 1)
    assert.match(stderr, /^affiliate: setting APP_KEY: .*\n$/)
    assert.equal(await stateOf(fixture), before)
  }

  it('writes nothing to a database that waits for migrations', async ({ fixture }) => {
    assert.ok((await migrationState(fixture.database)).pending.length > 0)
    await writesNothing(fixture, { APP_KEY: WRONG_KEY })
  })

  it('writes nothing to a database of the newest version', async ({ fixture }) => {
    await migrate(fixture.database)
    await writesNothing(fixture, { APP_KEY: WRONG_KEY })
  })

  it('makes no key for a database that has one', async ({ fixture }) => {
    await writesNothing(fixture, {})
  })

  if (dialect === 'sqlite') {
    it('leaves a copy that a backup made as it is, byte for byte', async ({ fixture }) => {
      const copy = join(fixture.folder, 'copy.db')
      const handle = new BetterSqlite(fixture.url.slice('sqlite:'.length))
      await handle.backup(copy)
      handle.close()
      const plain = new BetterSqlite(copy)
      plain.pragma('journal_mode = DELETE')
      plain.close()
      const environment = { ...settings(fixture), DATABASE_URL: `sqlite:${copy}`, APP_KEY: WRONG_KEY }
      const before = readFileSync(copy)
      const refusal = await startService({ environment }).then(
        (service) => service.stop(),
        (error: Error) => error.message,
      )
      assert.match(String(refusal), /^setting APP_KEY: /)
      assert.ok(readFileSync(copy).equals(before))
      assert.equal(
        readdirSync(fixture.folder).filter((name) => name.startsWith('copy.db-')),
        [],
      )
      rmSync(copy)
    })
  }

  it.run()
}
