import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runAffiliate } from '../../cli/test/run-affiliate.ts'
import { runHere } from '../../cli/test/run-here.ts'
import { migrate } from '../migrator.ts'
import { startService } from '../service.ts'
import { testDialects } from './testkit/databases.ts'
import { type FilledMarket, openFilledMarket } from './testkit/filled-market.ts'
import { assertNone } from './testkit/pluck.ts'
import { schemaShape } from './testkit/schema-shape.ts'

const WRONG_KEY = Buffer.alloc(32, 8).toString('base64')
const FORMER = /^This database was made before version 0\.2\.0, [^\n]* set DATABASE_URL to a new database\.$/
const NEWER = /newer version: this one does not know 00099-later\. Install that version again/

/** All that a start could write: the schema, every row, and every file in the data folder. */
async function stateOf({ database, folder }: FilledMarket): Promise<unknown> {
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

/** One command of each way to open a database. */
const COMMANDS = [
  ['db', 'migrate'],
  ['db', 'status'],
  ['db', 'backup', 'copy'],
  ['status'],
  ['ledger', 'verify'],
  ['ledger', 'statement', 'someone@example.com'],
  ['users', 'list'],
  ['seed', '--yes'],
  ['keys', 'rotate', '--yes'],
]

for (const dialect of testDialects()) {
  const it = suite<{ filled: FilledMarket }>(`a database that is refused on ${dialect}`)

  // No test leaves anything in it, but for the last one.
  it.before(async (world) => {
    world.filled = await openFilledMarket(dialect)
  })
  it.after(({ filled }) => filled.close())

  const settings = ({ url, folder }: FilledMarket) => ({ DATABASE_URL: url, DATA_DIR: folder })
  /** What a start says that must not succeed. */
  const refusalOf = (environment: Record<string, string>) =>
    startService({ environment: { PORT: '0', LOG_LEVEL: 'silent', ...environment } }).then(
      (service) => service.stop().then(() => 'started'),
      (error: Error & { detail?: string }) => error.detail ?? error.message,
    )
  /** Runs `work` while the database seems to have this migration too. */
  const withMigration = async ({ database }: FilledMarket, name: string, work: () => Promise<void>) => {
    await sql`insert into mikro_orm_migrations (name) values (${name})`.execute(database.writer)
    await work()
    await sql`delete from mikro_orm_migrations where name = ${name}`.execute(database.writer)
  }

  it('of before 0.2.0: by the service and every command, and not written to', ({ filled }) =>
    withMigration(filled, '00002-guards', async () => {
      const before = await stateOf(filled)
      const environment = { ...settings(filled), APP_KEY: filled.appKey }
      for (const key of [{}, { APP_KEY: WRONG_KEY }, { APP_KEY: '' }])
        assert.match(await refusalOf({ ...environment, ...key }), FORMER)
      for (const args of COMMANDS) {
        const ended = await runHere(args, environment)
        assert.equal([ended.code, ended.stdout], [1, ''], args.join(' '))
        assert.match(ended.stderr.replace(/^affiliate: (.*)\n$/, '$1'), FORMER, args.join(' '))
      }
      const { code, stderr } = await runAffiliate(['serve'], { environment: { ...environment, PORT: '0' } })
      assert.equal([code, FORMER.test(stderr.replace(/^affiliate: (.*)\n$/, '$1'))], [1, true], stderr)
      const doctor = await runHere(['doctor'], environment)
      assert.is(doctor.code, 1)
      assert.match(doctor.stdout, /made before version 0\.2\.0/)
      assert.equal(await stateOf(filled), before)
    }))

  it('of a newer version: by the service and writing commands; others name it', ({ filled }) =>
    withMigration(filled, '00099-later', async () => {
      const environment = { ...settings(filled), APP_KEY: filled.appKey }
      assert.match(await migrate(filled.database).then(String, (error: Error) => error.message), NEWER)
      assert.match(await refusalOf(environment), NEWER)
      const run = (...args: string[]) => runHere(args, environment)
      assert.match((await run('billing', 'close', '--yes')).stderr, NEWER)
      const status = await run('status')
      assert.is(status.code, 0, status.stderr)
      assert.match(status.stdout, /newer version: this one does not know 00099-later/)
      assert.match((await run('doctor')).stdout, /✗ migrations +the database belongs to a newer version/)
      assert.match((await run('db', 'status')).stdout, /Unknown +00099-later/)
    }))

  async function writesNothing(filled: FilledMarket, key: Record<string, string>): Promise<void> {
    const before = await stateOf(filled)
    const environment = { ...settings(filled), ...key }
    assert.match(await refusalOf(environment), /^setting APP_KEY: /)
    const { code, stderr } = await runHere(['db', 'migrate'], { APP_KEY: '', ...environment })
    assert.is(code, 1)
    assert.match(stderr, /^affiliate: setting APP_KEY: .*\n$/)
    assert.equal(await stateOf(filled), before)
  }

  it('of another key: nothing is written, and no key is made for it', async ({ filled }) => {
    await writesNothing(filled, { APP_KEY: WRONG_KEY })
    await writesNothing(filled, {})
  })

  if (dialect === 'sqlite') {
    it('of another key: a copy that a backup made stays as it is, byte for byte', async ({ filled }) => {
      const copy = join(filled.folder, 'copy.db')
      const handle = new BetterSqlite(filled.url.slice('sqlite:'.length))
      await handle.backup(copy)
      handle.close()
      const plain = new BetterSqlite(copy)
      plain.pragma('journal_mode = DELETE')
      plain.close()
      const before = readFileSync(copy)
      const environment = { ...settings(filled), DATABASE_URL: `sqlite:${copy}`, APP_KEY: WRONG_KEY }
      assert.match(await refusalOf(environment), /^setting APP_KEY: /)
      assert.ok(readFileSync(copy).equals(before))
      assertNone(readdirSync(filled.folder), (name) => name.startsWith('copy.db-'))
      rmSync(copy)
    })
  }

  it('of another key: nothing is written to one that waits for migrations', async ({ filled }) => {
    await sql`delete from mikro_orm_migrations`.execute(filled.database.writer)
    await writesNothing(filled, { APP_KEY: WRONG_KEY })
  })

  it.run()
}
