import { CompiledQuery, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../proof/testbed/databases.ts'
import { fc } from '../proof/testbed/property.ts'
import { BytesInParts } from './bytes-in-parts.ts'
import { openPostgres, type PostgresDatabase } from './postgresql.ts'
import { queryInParts } from './query-in-parts.ts'

interface Context {
  testDatabase: TestDatabase
  /** One connection, on which a statement may take 300 ms. */
  database: PostgresDatabase
}

interface Row {
  number: number | null
  words: string | null
  bytes: Buffer
}

const it = suite<Context>('bytes in parts')

it.before.each(async (context) => {
  context.testDatabase = await openTestDatabase('postgresql', { migrated: false })
  context.database = openPostgres(context.testDatabase.url, { poolSize: 1, queryTimeoutMs: 300 })
  await sql`create table t (number bigint unique, words text, bytes bytea)`.execute(context.database.writer)
})
it.after.each(async ({ testDatabase, database }) => {
  await database.close()
  await testDatabase.close()
})

const insert = (number: number | null, words: string | null, parts: Buffer[]) =>
  CompiledQuery.raw('insert into t values ($1::bigint, $2::text, $3::bytea) returning *', [
    number,
    words,
    new BytesInParts(parts),
  ])

it('come as one run, beside values of every kind', async ({ database }) => {
  const words = fc.option(
    fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\0', '').toWellFormed()),
  )
  const parts = fc.array(
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    { maxLength: 20 },
  )
  const check = async (text: string | null, buffers: Buffer[]) => {
    const [row] = await database.writeAtOnce<Row>(insert(null, text, buffers))
    assert.equal({ ...row }, { number: null, words: text, bytes: Buffer.concat(buffers) })
  }
  await fc.assert(fc.asyncProperty(words, parts, check), { numRuns: 100 })
  const large = Array.from({ length: 1500 }, (_, n) => Buffer.alloc(1000, n % 251))
  await check('as many as a system takes at once, and more', large)
})

it('leave the driver another way, which says the same', () => {
  const parts = [Buffer.from('a'), Buffer.alloc(0), Buffer.from('bc')]
  assert.equal(new BytesInParts(parts).toPostgres(), Buffer.from('abc'))
})

it('have as much patience as any statement', () => {
  const patient = queryInParts({ text: 'select 1' }, () => {})
  const config = { text: 'select 1', query_timeout: 7 }
  assert.equal(
    [patient, queryInParts(config, () => {})].map(
      (query) => (query as { query_timeout?: number }).query_timeout,
    ),
    [undefined, 7],
  )
})

it('whose statement is refused leave the connection as good as it was', async ({ database }) => {
  const pid = async () =>
    (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(database.reader)).rows
  const before = await pid()
  await database.writeAtOnce(insert(1, null, [Buffer.from('a')]))
  const error = await database
    .writeAtOnce(insert(1, null, [Buffer.from('b')]))
    .catch((reason: unknown) => reason)
  assert.is(database.faultOf(error)?.kind, 'unique')
  const [row] = await database.writeAtOnce<Row>(insert(2, null, [Buffer.from('c')]))
  assert.equal(row?.bytes, Buffer.from('c'))
  assert.equal(await pid(), before)
})

it('whose statement hangs are given up in time, and nothing of it is left', async ({
  database,
  testDatabase,
}) => {
  await testDatabase.database.transaction(async (rival) => {
    await sql`lock table t`.execute(rival)
    const error = await database
      .writeAtOnce(insert(1, null, [Buffer.from('a')]))
      .catch((reason: unknown) => reason)
    assert.is(database.faultOf(error)?.kind, 'unavailable')
  })
  const [row] = await database.writeAtOnce<Row>(insert(2, null, [Buffer.from('b')]))
  assert.is(row?.number, 2)
})

if (testDialects().includes('postgresql')) it.run()
else {
  const without = suite('without PostgreSQL')
  without.skip('there is no PostgreSQL in this run', () => {})
  without.run()
}
