import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runAffiliate } from '../../cli/test/run-affiliate.ts'
import { runHere } from '../../cli/test/run-here.ts'
import type { Refusal } from '../platform/api/refusal.ts'
import { startService } from '../service.ts'
import { testDialects } from './testkit/databases.ts'
import { type FilledMarket, openFilledMarket } from './testkit/filled-market.ts'
import { schemaShape } from './testkit/schema-shape.ts'

const WRONG_KEY = Buffer.alloc(32, 8).toString('base64')

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
  const former = suite<{ filled: FilledMarket }>(`a database made before 0.2.0 on ${dialect}`)

  former('is refused in one sentence by the service and every command, and not written to', async () => {
    const filled = await openFilledMarket(dialect)
    try {
      await sql`insert into mikro_orm_migrations (name) values ('00002-guards')`.execute(
        filled.database.writer,
      )
      const before = await stateOf(filled)
      const sentence =
        /^This database was made before version 0\.2\.0, [^\n]* set DATABASE_URL to a new database\.$/
      for (const key of [{ APP_KEY: filled.appKey }, { APP_KEY: WRONG_KEY }, {}]) {
        const environment = {
          DATABASE_URL: filled.url,
          DATA_DIR: filled.folder,
          PORT: '0',
          LOG_LEVEL: 'silent',
        }
        const refusal = await startService({ environment: { ...environment, ...key } }).then(
          (service) => service.stop(),
          (error: Refusal) => error.detail,
        )
        assert.match(String(refusal), sentence)
      }
      for (const args of COMMANDS) {
        const environment = { DATABASE_URL: filled.url, APP_KEY: filled.appKey, DATA_DIR: filled.folder }
        const ended = await runHere(args, environment)
        assert.equal([ended.code, ended.stdout], [1, ''], args.join(' '))
        assert.match(ended.stderr.replace(/^affiliate: (.*)\n$/, '$1'), sentence, args.join(' '))
      }
      const { code, stderr } = await runAffiliate(['serve'], {
        environment: { DATABASE_URL: filled.url, APP_KEY: filled.appKey, DATA_DIR: filled.folder, PORT: '0' },
      })
      assert.is(code, 1)
      assert.match(stderr, /^affiliate: This database was made before version 0\.2\.0, .*\n$/)
      const doctor = await runHere(['doctor'], { DATABASE_URL: filled.url, APP_KEY: filled.appKey })
      assert.is(doctor.code, 1)
      assert.match(doctor.stdout, /made before version 0\.2\.0/)
      assert.equal(await stateOf(filled), before)
    } finally {
      await filled.close()
    }
  })

  former.run()

  const it = suite<{ filled: FilledMarket }>(`a start with a wrong key on ${dialect}`)

  it.before.each(async (world) => {
    world.filled = await openFilledMarket(dialect)
  })
  it.after.each(({ filled }) => filled.close())

  const settings = ({ url, folder }: FilledMarket) => ({
    PORT: '0',
    DATABASE_URL: url,
    DATA_DIR: folder,
    LOG_LEVEL: 'silent',
  })

  async function writesNothing(filled: FilledMarket, key: Record<string, string>): Promise<void> {
    const before = await stateOf(filled)
    const environment = { ...settings(filled), ...key }
    const refusal = await startService({ environment }).then(
      (service) => service.stop(),
      (error: Error) => error.message,
    )
    assert.match(String(refusal), /^setting APP_KEY: /)
    const { code, stderr } = await runHere(['db', 'migrate'], { APP_KEY: '', ...environment })
    assert.is(code, 1)
    assert.match(stderr, /^affiliate: setting APP_KEY: .*\n$/)
    assert.equal(await stateOf(filled), before)
  }

  it('writes nothing to a database that waits for migrations', async ({ filled }) => {
    await sql`delete from mikro_orm_migrations`.execute(filled.database.writer)
    await writesNothing(filled, { APP_KEY: WRONG_KEY })
  })

  it('writes nothing to a database of the newest version', async ({ filled }) => {
    await writesNothing(filled, { APP_KEY: WRONG_KEY })
  })

  it('makes no key for a database that has one', async ({ filled }) => {
    await writesNothing(filled, {})
  })

  if (dialect === 'sqlite') {
    it('leaves a copy that a backup made as it is, byte for byte', async ({ filled }) => {
      const copy = join(filled.folder, 'copy.db')
      const handle = new BetterSqlite(filled.url.slice('sqlite:'.length))
      await handle.backup(copy)
      handle.close()
      const plain = new BetterSqlite(copy)
      plain.pragma('journal_mode = DELETE')
      plain.close()
      const environment = { ...settings(filled), DATABASE_URL: `sqlite:${copy}`, APP_KEY: WRONG_KEY }
      const before = readFileSync(copy)
      const refusal = await startService({ environment }).then(
        (service) => service.stop(),
        (error: Error) => error.message,
      )
      assert.match(String(refusal), /^setting APP_KEY: /)
      assert.ok(readFileSync(copy).equals(before))
      assert.equal(
        readdirSync(filled.folder).filter((name) => name.startsWith('copy.db-')),
        [],
      )
      rmSync(copy)
    })
  }

  it.run()
}
