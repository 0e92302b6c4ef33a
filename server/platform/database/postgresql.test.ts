import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { CompiledQuery, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres, openTestDatabase, type TestDatabase } from '../../test/testkit/databases.ts'
import { eventually } from '../../test/testkit/eventually.ts'
import { faultKind, messageOf, transactionFault } from '../../test/testkit/rejection.ts'
import { openTcpProxy } from '../../test/testkit/tcp-proxy.ts'
import type { Queries } from './database.ts'
import { openPostgres, type PostgresDatabase } from './postgresql.ts'

interface Context {
  testDatabase: TestDatabase
  /** One connection, on which a statement may take a second: hundreds of times what these usually take. */
  database: PostgresDatabase
}

const amounts = async (db: Queries) =>
  (await sql<{ n: number }>`select n from t order by n`.execute(db)).rows.map((row) => row.n)

/** A statement that does not end before `release`, which resolves when the server has ended it. */
async function hangingStatement({ database }: TestDatabase) {
  const released = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const holding = database.transaction(async (tx) => {
    await sql`select pg_advisory_xact_lock(1)`.execute(tx)
    held.resolve()
    await released.promise
  })
  await held.promise
  const pids = async () => {
    const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity
      where datname = current_database() and state = 'active' and query = ${HANGING}`.execute(database.reader)
    return rows.map(({ pid }) => pid)
  }
  return {
    pids,
    async release() {
      released.resolve()
      await holding
      await eventually(pids, (left) => left.length === 0)
    },
  }
}
const HANGING = 'select pg_advisory_xact_lock_shared(1)'
const hang = (db: Queries) => sql.raw(HANGING).execute(db)
const ONE = CompiledQuery.raw('select 1 as one')
/** The connection for writes. */
const backendOf = async ({ executeBatch }: PostgresDatabase) =>
  (await executeBatch<{ pid: number }>(CompiledQuery.raw('select pg_backend_pid() as pid')))[0]?.pid

const it = suite<Context>('postgresql')

it.before(async (context) => {
  context.testDatabase = await openTestDatabase('postgresql', { migrated: false })
  const { database } = context.testDatabase
  await database.transaction((tx) => sql`create table t (n bigint not null)`.execute(tx))
})
it.before.each(async (context) => {
  await context.testDatabase.database.transaction((tx) => sql`delete from t`.execute(tx))
  context.database = openPostgres(context.testDatabase.url, { poolSize: 1, queryTimeoutMs: 1000 })
})
it.after.each(({ database }) => database.close())
it.after(({ testDatabase }) => testDatabase.close())

it('runs on a server that syncs what it commits', async ({ database }) => {
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const { rows } = await sql<Record<string, string>>`show ${sql.raw(setting)}`.execute(database.reader)
    assert.is(rows[0]?.[setting], 'on', setting)
  }
})

it('leaves nothing of a transaction with an unanswered statement', async ({ database, testDatabase }) => {
  const hanging = await hangingStatement(testDatabase)
  const fault = await transactionFault(database, async (tx) => {
    await sql`insert into t values (1)`.execute(tx)
    await hang(tx)
  })
  assert.is(fault, 'unavailable')
  // The abandoned statement ends, and the connection would be good for the next borrower.
  await hanging.release()
  await database.transaction((tx) => sql`insert into t values (2)`.execute(tx))
  assert.equal(await amounts(database.reader), [2])
})

it('does not keep a connection to a server that takes reads only', async ({ testDatabase, database }) => {
  const name = new URL(testDatabase.url).pathname.slice(1)
  const setReadOnly = (value: string) =>
    sql`alter database ${sql.id(name)} set default_transaction_read_only = ${sql.raw(value)}`
  const insert = (n: number) => database.transaction((tx) => sql`insert into t values (${n})`.execute(tx))
  // The one connection of the pool, as after a switchover behind a proxy.
  await sql`set session characteristics as transaction read only`.execute(database.writer)
  assert.is(await faultKind(database, insert(1)), 'unavailable')
  await insert(2)
  // A new connection that leads to a standby is refused, not kept.
  await setReadOnly('on').execute(database.writer)
  const standby = openPostgres(testDatabase.url, { poolSize: 1 })
  assert.is(await faultKind(database, standby.executeBatch(ONE)), 'unavailable')
  const reader = openPostgres(testDatabase.url, { poolSize: 1, readOnly: true })
  assert.equal(await amounts(reader.reader), [2])
  await setReadOnly('off').execute(database.writer)
  assert.is((await standby.executeBatch(ONE)).length, 1)
  await Promise.all([standby.close(), reader.close()])
})

it('does not hold its callers while a statement hangs', async ({ database, testDatabase }) => {
  const hanging = await hangingStatement(testDatabase)
  await hang(database.reader).catch(() => {})
  // The one connection for reads is the server's until it is done; writes have their own.
  assert.is(await faultKind(database, amounts(database.reader)), 'unavailable')
  assert.equal(await amounts(database.writer), [])
  await hanging.release()
})

it('keeps the place of an unanswered write until the server is done', async ({ database, testDatabase }) => {
  const before = await backendOf(database)
  const hanging = await hangingStatement(testDatabase)
  const write = database.executeBatch(CompiledQuery.raw(HANGING))
  assert.is(await faultKind(database, write), 'unavailable')
  const waiting = backendOf(database)
  assert.equal(await hanging.pids(), [before])
  await hanging.release()
  const after = await waiting
  assert.is.not(after, before)
  // One that ends well is used again.
  assert.is(await backendOf(database), after)
})

it('gets the connection back after an abandoned statement ends', async ({ database, testDatabase }) => {
  const hanging = await hangingStatement(testDatabase)
  const late = database.transaction(async (tx) => {
    await hang(tx).catch(() => {})
    await hanging.release()
  })
  assert.is(await faultKind(database, late), 'unavailable')
  await database.transaction((tx) => sql`insert into t values (1)`.execute(tx))
  assert.equal(await amounts(database.reader), [1])
})

it('does not wait for a server that vanished without a word', async ({ testDatabase }) => {
  const url = new URL(testDatabase.url)
  const proxy = await openTcpProxy({ host: url.hostname, port: Number(url.port) })
  url.host = `127.0.0.1:${proxy.port}`
  const database = openPostgres(url.href, { poolSize: 1, queryTimeoutMs: 1000 })
  const write = () => database.executeBatch(ONE).catch(() => [])
  try {
    assert.equal(await write(), [{ one: 1 }])
    proxy.vanish()
    assert.equal(await write(), [])
    // The old connection is still open; its place is given up.
    await eventually(() => database.pools.write.totalCount === 0)
    await proxy.mend()
    assert.equal(await write(), [{ one: 1 }])
  } finally {
    await database.close()
    await proxy.close()
  }
})

it('repeats a hot write if the server lacks its prepared statement or has it', async ({ database }) => {
  assert.equal(await database.executeBatch(ONE), [{ one: 1 }])
  // As a pooler that changes the server's connection between two transactions.
  await sql`deallocate all`.execute(database.writer)
  assert.equal(await database.executeBatch(ONE), [{ one: 1 }])
  const other = CompiledQuery.raw('select 2 as two')
  const name = `batch_${hash('sha256', other.sql, 'hex').slice(0, 32)}`
  await database.pools.write.query(`prepare ${name} as select 2 as two`)
  assert.equal(await database.executeBatch(other), [{ two: 2 }])
})

it('undoes the transaction of a value that is not exact, and goes on', async ({ database }) => {
  const inexact = database.transaction(async (tx) => {
    await sql`insert into t values (1)`.execute(tx)
    await sql`select 0.5::numeric as n`.execute(tx)
  })
  assert.match(await messageOf(inexact), 'not an exact whole number')
  assert.equal(await amounts(database.reader), [])
})

it('reads whole numerics as numbers, as bigints beyond 2^53, and refuses fractions', async ({ database }) => {
  const read = async (text: string) =>
    (await sql<{ n: unknown }>`select ${sql.raw(text)} as n`.execute(database.reader)).rows[0]?.n
  assert.is(await read('12::numeric'), 12)
  assert.is(await read('-5::int8'), -5)
  assert.is(await read('3::int4'), 3)
  assert.is(await read('null::int8'), null)
  assert.is(await read('1e20::numeric'), 10n ** 20n)
  assert.is(await read('-9007199254740993::int8'), -9007199254740993n)
  for (const text of ['0.5::numeric', "'NaN'::numeric"])
    assert.match(await messageOf(read(text)), 'not an exact whole number', text)
})

it('calls lost and refused connections unavailable and reconnects', async ({ database, testDatabase }) => {
  const lost = database.transaction(async (tx) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
    await sql`select pg_terminate_backend(${rows[0]?.pid ?? 0})`.execute(testDatabase.database.reader)
    await sql`insert into t values (1)`.execute(tx)
  })
  assert.is(await faultKind(database, lost), 'unavailable')
  assert.equal(await amounts(database.reader), [])
})

it('does not use a connection again whose server said that it ends', async ({ database }) => {
  const end = (code: string) =>
    sql`do ${sql.lit(`begin raise exception 'ends' using errcode = '${code}'; end`)}`
  for (const code of ['57P01', '57P02', '57P03', '08006', '08P01']) {
    const before = await backendOf(database)
    assert.is(await faultKind(database, end(code).execute(database.writer)), 'unavailable', code)
    assert.is.not(await backendOf(database), before, code)
  }
})

it('calls a server that is not there or does not know us unavailable', async ({ testDatabase }) => {
  const elsewhere = [
    (url: URL) => Object.assign(url, { host: '127.0.0.1:1' }),
    (url: URL) => Object.assign(url, { pathname: '/no_such_database' }),
    (url: URL) => Object.assign(url, { username: 'nobody_at_all', password: 'x' }),
  ]
  for (const change of elsewhere) {
    const database = openPostgres(change(new URL(testDatabase.url)).href)
    assert.is(await transactionFault(database), 'unavailable', database.url)
    await database.close()
  }
})

it('calls lock failures contention', async ({ database, testDatabase }) => {
  await database.transaction(async (tx) => {
    await sql`lock table t`.execute(tx)
    const rival = testDatabase.database.writer.transaction()
    const refused = rival.execute((theirs) => sql`lock table t nowait`.execute(theirs))
    assert.is(await faultKind(database, refused), 'contention')
  })
})

it('closes while a connection is being made, and finishes what it is for', async ({ testDatabase }) => {
  for (let waitMs = 0; waitMs < 10; waitMs += 1) {
    const database = openPostgres(testDatabase.url, { poolSize: 1 })
    const work = database.transaction((tx) => sql`select 1`.execute(tx)).catch(() => null)
    await pause(waitMs)
    await database.close()
    await work
  }
})

onPostgres(it).run()
