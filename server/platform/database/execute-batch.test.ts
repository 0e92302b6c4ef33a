// database: sqlite
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import BetterSqlite from 'better-sqlite3'
import { CompiledQuery, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { messageOf } from '../../test/testkit/rejection.ts'
import { openSqlite, type SqliteDatabase } from './sqlite.ts'

interface Context {
  folder: string
  database: SqliteDatabase
}

const it = suite<Context>('executeBatch on sqlite')

it.before.each(async (context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'execute-batch-'))
  context.database = openSqlite(join(context.folder, 'a.db'), { create: true })
  await sql`create table t (n integer primary key)`.execute(context.database.writer)
})
it.after.each(async ({ folder, database }) => {
  await database.close()
  rmSync(folder, { recursive: true, force: true })
})

const INSERT = 'insert into t (n) values (?) on conflict do nothing returning n'
const insert = (...numbers: number[]) => numbers.map((n) => CompiledQuery.raw(INSERT, [n]))
const numbers = async ({ database }: Context) =>
  (await sql<{ n: number }>`select n from t order by n`.execute(database.reader)).rows.map(({ n }) => n)

it('returns the rows of all statements', async (context) => {
  const { database } = context
  await database.executeBatch(...insert(2))
  assert.equal(await database.executeBatch(...insert(1, 2, 3)), [{ n: 1 }, { n: 3 }])
  assert.equal(await numbers(context), [1, 2, 3])
})

it('rolls back when one of the statements fails, and goes on afterwards', async (context) => {
  const { database } = context
  const failing = database.executeBatch(...insert(1), CompiledQuery.raw('insert into nowhere values (1)'))
  assert.match(await messageOf(failing), /no such table/)
  assert.equal(await numbers(context), [])
  await database.executeBatch(...insert(2))
  assert.equal(await numbers(context), [2])
})

it('waits for the write lock of another process without blocking this one', async (context) => {
  const rival = new BetterSqlite(join(context.folder, 'a.db'))
  rival.exec('begin immediate')
  const written = context.database.executeBatch(...insert(1))
  await nextTurn()
  assert.equal(await numbers(context), [])
  rival.exec('commit')
  rival.close()
  await written
  assert.equal(await numbers(context), [1])
})

it('waits for an open transaction of this process, and is no part of it', async (context) => {
  const { database } = context
  const gate = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const failing = database.transaction(async (tx) => {
    await sql`insert into t (n) values (1)`.execute(tx)
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

it('is refused inside a transaction', async ({ database }) => {
  const inside = database.transaction(() => database.executeBatch(...insert(1)))
  assert.match(await messageOf(inside), /nested transaction/)
})

it.run()
