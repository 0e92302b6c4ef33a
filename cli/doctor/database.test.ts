import { closeSync, openSync, statSync, writeSync } from 'node:fs'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { examinePooler } from '../../server/platform/database/database-health.ts'
import { openTestDatabase, type TestDatabase, testDialects } from '../../server/test/testkit/databases.ts'
import { openFakePooler } from '../../server/test/testkit/fake-pooler.ts'
import { runHere } from '../test/run-here.ts'
import type { Finding } from './finding.ts'

interface Context {
  bed: TestDatabase
}

const it = suite<Context>('a database that the doctor finds damaged, or a pooler that it finds unfit')
const onPostgres = testDialects().includes('postgresql') ? it : () => undefined

it.after.each(({ bed }) => bed?.close())

/** What fails, as the doctor and the status say it. */
async function findings({ url, folder }: TestDatabase, settings: Record<string, string> = {}) {
  const environment = { DATABASE_URL: url, DATA_DIR: folder, ...settings }
  const { code, stdout } = await runHere(['doctor', '--json'], environment)
  const { checks } = JSON.parse(stdout) as { checks: Finding[] }
  const failed = checks.filter(({ name, state }) => state === 'fail' && /^(database|pooler)$/.test(name))
  const status = await runHere(['status'], environment)
  assert.equal([code, failed.length], [1, 1], JSON.stringify(checks))
  assert.not.match(stdout + status.stdout + status.stderr, /se-cret/)
  return {
    doctor: failed.map(({ name, detail, mend }) => `${name}: ${detail} → ${mend}`).join(),
    status: status.stdout + status.stderr,
  }
}

it('reads every page of an SQLite file', async (context) => {
  context.bed = await openTestDatabase('sqlite')
  const { database, url } = context.bed
  const { rows } = await sql<{ page: number; size: number }>`
    select rootpage as page, (select page_size from pragma_page_size) as size
    from sqlite_schema where name = 'offers'`.execute(database.reader)
  await database.close()
  const file = url.slice('sqlite:'.length)
  const { page = 0, size = 0 } = rows[0] ?? {}
  assert.ok(page * size <= statSync(file).size)
  const disk = openSync(file, 'r+')
  writeSync(disk, Buffer.alloc(size, 0xff), 0, size, (page - 1) * size)
  closeSync(disk)
  const found = await findings(context.bed)
  const damaged = new RegExp(`^database: The database is damaged: .*age ${page}\\b.* → Stop the service`)
  assert.match(found.doctor, damaged)
  assert.match(found.status, /The database is damaged/)
})

onPostgres('sees pages that failed their checksum, as the server counts them', async (context) => {
  context.bed = await openTestDatabase('postgresql')
  const { database } = context.bed
  const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(database.writer)
  // The server's own view, with a count that takes a broken disk otherwise.
  for (const text of [
    'create schema counted',
    'create view counted.pg_stat_database as select datname, 3 as checksum_failures from pg_catalog.pg_database',
    `alter database ${rows[0]?.name} set search_path = counted, pg_catalog, public`,
  ])
    await sql.raw(text).execute(database.writer)
  const found = await findings(context.bed)
  const failed = /^database: The database is damaged: 3 pages failed their checksum\. → Stop the service/
  assert.match(found.doctor, failed)
  assert.match(found.status, /3 pages failed their checksum/)
})

onPostgres('names the indexes that are not valid', async (context) => {
  context.bed = await openTestDatabase('postgresql')
  const { writer } = context.bed.database
  const index = 'inbound_events_pending'
  await sql`update pg_index set indisvalid = false where indexrelid = ${index}::regclass`.execute(writer)
  const found = await findings(context.bed)
  assert.match(found.doctor, /^database: Indexes are not valid: inbound_events_pending\. → Run "reindex/)
  assert.match(found.status, /Indexes are not valid: inbound_events_pending/)
})

onPostgres('asks the pooler, past which commands go', async (context) => {
  context.bed = await openTestDatabase('postgresql')
  const DATABASE_DIRECT_URL = context.bed.url
  const withPooler = (DATABASE_URL: string) => findings(context.bed, { DATABASE_URL, DATABASE_DIRECT_URL })
  const pooler = await openFakePooler({ at: 'start', code: '08P01', message: 'no such database: shop' })
  const refused = await withPooler(pooler.url)
  assert.match(
    refused.doctor,
    /^pooler: A pooler .* answers with an error\. \(no such database: shop\) → See its log/,
  )
  assert.match(refused.status, /DATABASE_URL: A pooler at this address answers with an error\. See its log/)
  await pooler.close()
  const gone = await withPooler(pooler.url)
  assert.match(gone.doctor, /^pooler: The database server cannot be reached\. \(connect ECONNREFUSED/)
  assert.match(gone.status, /DATABASE_URL: The database server cannot be reached/)
  assert.is(await examinePooler(DATABASE_DIRECT_URL), null)
})

it('tells a pooler that keeps no prepared statements, as PgBouncer before 1.21', async () => {
  for (const [code, message] of [
    ['42P05', 'prepared statement "a" already exists'],
    ['26000', 'prepared statement "a" does not exist'],
  ] as const) {
    const pooler = await openFakePooler({ at: 'statement', code, message })
    assert.equal(await examinePooler(pooler.url), {
      says: 'The pooler at DATABASE_URL does not keep prepared statements.',
      remedy: 'Install PgBouncer 1.21 or newer with max_prepared_statements = 200.',
    })
    await pooler.close()
  }
})

it.run()
