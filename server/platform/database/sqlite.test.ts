// database: none
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import BetterSqlite from 'better-sqlite3'
import { CompiledQuery, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { faultKind, messageOf, rejectionOf } from '../../test/testkit/rejection.ts'
import type { Queries } from './database.ts'
import { openSqlite, type SqliteDatabase } from './sqlite.ts'

interface Context {
  file: string
  database: SqliteDatabase
  /** A plain handle on the same file, that waits for no lock. */
  rival: BetterSqlite.Database
}

async function pragma(db: Queries, name: string): Promise<unknown> {
  const { rows } = await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(db)
  return Object.values(rows[0] ?? {})[0]
}

const codeOf = async (work: Promise<unknown>) =>
  ((await rejectionOf(work)) as { code?: unknown } | null)?.code
const amounts = async ({ reader }: SqliteDatabase) => (await sql`select n from t`.execute(reader)).rows

const it = suite<Context>('sqlite')

it.before.each(async (context) => {
  context.file = join(mkdtempSync(join(tmpdir(), 'affiliate-sqlite-')), 'affiliate.db')
  context.database = openSqlite(context.file, { create: true })
  await context.database.transaction((tx) => sql`create table t (n bigint not null)`.execute(tx))
  await context.database.transaction((tx) => sql`insert into t values (0)`.execute(tx))
  await sql`create table numbers (n integer primary key)`.execute(context.database.writer)
  context.rival = new BetterSqlite(context.file, { timeout: 0 })
})

it.after.each(async ({ database, rival, file }) => {
  rival.close()
  await database.close()
  rmSync(join(file, '..'), { recursive: true, force: true })
})

it('writes with a log that is synced at each commit, and with foreign keys', async ({ database }) => {
  await database.transaction(async (tx) => {
    assert.is(await pragma(tx, 'journal_mode'), 'wal')
    assert.is(await pragma(tx, 'synchronous'), 2)
    assert.is(await pragma(tx, 'foreign_keys'), 1)
  })
  assert.is(await pragma(database.reader, 'query_only'), 1)
})

it('locks before the first read, so that a read-then-write cannot fail', async ({ database, rival }) => {
  await database.transaction(async (tx) => {
    await sql`select n from t`.execute(tx)
    assert.throws(() => rival.exec('update t set n = 9'), /database is locked/)
    await sql`update t set n = 1`.execute(tx)
  })
  rival.exec('update t set n = 9')
})

it("waits for another process's write without stopping this one", async ({ database, rival }) => {
  rival.exec('begin immediate; update t set n = 5')
  let begun = false
  const writing = database.transaction((tx) => {
    begun = true
    return sql`update t set n = n + 1`.execute(tx)
  })
  // The loop turns while the transaction waits. It waits for a second, so three turns of a millisecond each end before that.
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1))
  assert.not.ok(begun)
  rival.exec('commit')
  await writing
  assert.equal(rival.prepare('select n from t').get(), { n: 6 })
})

it('refuses what waits while another process locks, and writes afterwards', async ({ database, rival }) => {
  rival.exec('begin exclusive')
  let runs = 0
  const add = () =>
    database.transaction((tx) => {
      runs += 1
      return sql`update t set n = n + 1`.execute(tx)
    })
  const faults = await Promise.all(Array.from({ length: 12 }, () => faultKind(database, add())))
  assert.equal(faults, Array(12).fill('unavailable'))
  assert.is(runs, 0)
  rival.exec('rollback')
  await Promise.all([add(), add(), add()])
  assert.equal(await amounts(database), [{ n: 3 }])
})

it('does not begin what waited too long behind a transaction of its process', async ({ database }) => {
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const long = database.transaction(() => over)
  const late = database.transaction(async () => assert.unreachable('begun anyway'))
  assert.is(await faultKind(database, late), 'unavailable')
  end()
  await long
  await database.transaction((tx) => sql`update t set n = 4`.execute(tx))
  assert.equal(await amounts(database), [{ n: 4 }])
})

it('calls a full disk unavailable, undoes the transaction, recovers with room', async ({ database }) => {
  const pages = Number(await pragma(database.writer, 'page_count'))
  await pragma(database.writer, `max_page_count = ${pages + 2}`)
  const fill = () =>
    database.transaction(async (tx) => {
      await sql`update t set n = 1`.execute(tx)
      await sql`create table big (x)`.execute(tx)
      await sql`insert into big values (zeroblob(100000))`.execute(tx)
    })
  const error = await rejectionOf(fill())
  assert.is((error as { code: string }).code, 'SQLITE_FULL')
  assert.is(database.faultOf(error)?.kind, 'unavailable')
  assert.equal(await amounts(database), [{ n: 0 }])
  await pragma(database.writer, 'max_page_count = 100000')
  await fill()
  assert.equal(await amounts(database), [{ n: 1 }])
})

it('writes nothing through the reader: it counts as a read-only database', async ({ database }) => {
  const write = () => sql`update t set n = 1`.execute(database.reader)
  assert.is(await codeOf(write()), 'SQLITE_READONLY')
  assert.is(await faultKind(database, write()), 'unavailable')
})

it('keeps statements that notice when another process changes a table', async ({ database, rival }) => {
  const read = async () => (await sql`select * from t`.execute(database.reader)).rows
  const add = () => database.transaction((tx) => sql`insert into t (n) values (1) returning *`.execute(tx))
  assert.equal(await read(), [{ n: 0 }])
  await add()
  rival.exec('alter table t add column note text')
  assert.equal(await read(), [
    { n: 0, note: null },
    { n: 1, note: null },
  ])
  assert.equal((await add()).rows, [{ n: 1, note: null }])
  rival.exec('drop table t')
  assert.is(await codeOf(read()), 'SQLITE_ERROR')
})

it('copes with more statements than it keeps', async ({ database }) => {
  for (let round = 0; round < 2; round += 1) {
    for (let index = 0; index < 600; index += 1) {
      const { rows } = await sql`select ${sql.raw(String(index))} as n, ${index} as bound`.execute(
        database.reader,
      )
      assert.equal(rows, [{ n: index, bound: index }])
    }
  }
})

const INSERT = 'insert into numbers values (?) on conflict do nothing returning n'
const insert = (...numbers: number[]) => numbers.map((n) => CompiledQuery.raw(INSERT, [n]))
const numbers = async ({ database }: Context) =>
  (await sql<{ n: number }>`select n from numbers order by n`.execute(database.reader)).rows.map(({ n }) => n)

it('executeBatch returns the rows of all statements', async (context) => {
  const { database } = context
  await database.executeBatch(...insert(2))
  assert.equal(await database.executeBatch(...insert(1, 2, 3)), [{ n: 1 }, { n: 3 }])
  assert.equal(await numbers(context), [1, 2, 3])
})

it('executeBatch rolls back when one of the statements fails, and goes on afterwards', async (context) => {
  const { database } = context
  const failing = database.executeBatch(...insert(1), CompiledQuery.raw('insert into nowhere values (1)'))
  assert.match(await messageOf(failing), /no such table/)
  assert.equal(await numbers(context), [])
  await database.executeBatch(...insert(2))
  assert.equal(await numbers(context), [2])
})

it('executeBatch waits for the write lock of another process without blocking this one', async (context) => {
  context.rival.exec('begin immediate')
  const written = context.database.executeBatch(...insert(1))
  await nextTurn()
  assert.equal(await numbers(context), [])
  context.rival.exec('commit')
  await written
  assert.equal(await numbers(context), [1])
})

it('executeBatch waits for an open transaction of this process, and is no part of it', async (context) => {
  const { database } = context
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const failing = database.transaction(async (tx) => {
    await sql`insert into numbers values (1)`.execute(tx)
    begun.resolve()
    await gate.promise
    throw new Error('rolled back')
  })
  await begun.promise
  const written = database.executeBatch(...insert(2))
  await nextTurn()
  assert.equal(await numbers(context), [])
  gate.resolve()
  assert.is(await messageOf(failing), 'rolled back')
  await written
  assert.equal(await numbers(context), [2])
})

it('executeBatch is refused inside a transaction', async ({ database }) => {
  const inside = database.transaction(() => database.executeBatch(...insert(1)))
  assert.match(await messageOf(inside), /nested transaction/)
})

it.run()
