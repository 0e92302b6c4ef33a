import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../../test/testkit/databases.ts'
import { messageOf, rejectionOf } from '../../test/testkit/rejection.ts'
import { afterCommit, type Queries, type Tx, WriteConflict } from './database.ts'
import { type OpenDatabase, openDatabase } from './open-database.ts'

interface Context {
  testDatabase: TestDatabase
  database: OpenDatabase
  /** The same database over other connections, as another process has it. */
  other: OpenDatabase
}

async function balance(db: Queries): Promise<number> {
  const { rows } = await sql<{ amount: number }>`select amount from tills where id = 'main'`.execute(db)
  return rows[0]?.amount ?? Number.NaN
}

const setBalance = (tx: Tx, amount: number) =>
  sql`update tills set amount = ${amount} where id = 'main'`.execute(tx)

for (const dialect of testDialects()) {
  const it = suite<Context>(`transactions on ${dialect}`)

  it.before(async (context) => {
    context.testDatabase = await openTestDatabase(dialect, { migrated: false })
    context.database = context.testDatabase.database
    await context.database.transaction(async (tx) => {
      const columns = sql`id text primary key, owner text not null, amount bigint not null`
      await sql`create table tills (${columns})`.execute(tx)
      await sql`create unique index tills_owner on tills (owner, amount)`.execute(tx)
    })
    context.other = await openDatabase(context.testDatabase.url, { create: false })
  })
  it.before.each(({ database }) =>
    database.transaction(async (tx) => {
      await sql`delete from tills`.execute(tx)
      await sql`insert into tills values ('main', 'asma', 0)`.execute(tx)
    }),
  )

  it.after(async ({ other, testDatabase }) => {
    await other.close()
    await testDatabase.close()
  })

  it('roll back on any error, which reaches the caller as it is, at once', async ({ database }) => {
    let runs = 0
    const failure = new Error('no such offer')
    const failing = database.transaction(async (tx) => {
      runs += 1
      await setBalance(tx, 5)
      throw failure
    })
    assert.is(await rejectionOf(failing), failure)
    assert.is(runs, 1)
    assert.is(await balance(database.reader), 0)
  })

  it('run again as a whole after a lost race, and give up after a few times', async ({ database }) => {
    let runs = 0
    await database.transaction(async (tx) => {
      runs += 1
      await setBalance(tx, (await balance(tx)) + 1)
      if (runs < 3) throw new WriteConflict('the open cycle')
    })
    assert.is(runs, 3)
    assert.is(await balance(database.reader), 1)
    runs = 0
    const losing = database.transaction(async () => {
      runs += 1
      throw new WriteConflict('the open cycle')
    })
    assert.instance(await rejectionOf(losing), WriteConflict)
    assert.is(runs, 6)
  })

  it('do what is left for afterwards once, and only when they commit', async ({ database }) => {
    const done: string[] = []
    let runs = 0
    await database.transaction(async (tx) => {
      runs += 1
      const run = runs
      afterCommit(tx, () => done.push(`run ${run}, first`))
      await setBalance(tx, 1)
      afterCommit(tx, () => done.push(`run ${run}, second`))
      if (run === 1) throw new WriteConflict('once')
      assert.equal(done, [])
    })
    assert.equal(done, ['run 2, first', 'run 2, second'])
    await rejectionOf(
      database.transaction(async (tx) => {
        afterCommit(tx, () => done.push('never'))
        throw new Error('no')
      }),
    )
    assert.is(done.length, 2)
  })

  it('are not run again for an error in what is left for afterwards', async ({ database }) => {
    let runs = 0
    await rejectionOf(
      database.transaction(async (tx) => {
        runs += 1
        await setBalance(tx, runs)
        afterCommit(tx, () => {
          throw new WriteConflict('too late')
        })
      }),
    )
    assert.is(runs, 1)
    assert.is(await balance(database.reader), 1)
  })

  it('of one process that read and then write all count', async ({ database }) => {
    await Promise.all(
      Array.from({ length: 20 }, () =>
        database.transaction(async (tx) => {
          if (dialect === 'postgresql') await sql`select 1 from tills for update`.execute(tx)
          await setBalance(tx, (await balance(tx)) + 1)
        }),
      ),
    )
    assert.is(await balance(database.reader), 20)
  })

  it('of two processes that read and then write all count', async ({ database, other }) => {
    let runs = 0
    const increment = (db: OpenDatabase) =>
      db.transaction(async (tx) => {
        runs += 1
        // Strict enough that a reader that lost gets an error: its whole transaction has to run again.
        if (dialect === 'postgresql') await sql`set transaction isolation level serializable`.execute(tx)
        const before = await balance(tx)
        await new Promise((resolve) => setImmediate(resolve))
        await setBalance(tx, before + 1)
      })
    const withConnection = async (db: OpenDatabase) => {
      for (let time = 0; time < 15; time += 1) await increment(db)
    }
    await Promise.all([withConnection(database), withConnection(other)])
    assert.is(await balance(database.reader), 30)
    if (dialect === 'sqlite') assert.is(runs, 30, 'a transaction that had begun was refused its write')
  })

  it('commit what the work did; no reader waits, or sees it earlier', async ({ database, other }) => {
    const answer = await database.transaction(async (tx) => {
      await setBalance(tx, 7)
      const seen = [await balance(tx), await balance(database.reader), await balance(other.reader)]
      assert.equal(seen, [7, 0, 0])
      return 'done'
    })
    assert.equal([answer, await balance(database.reader), await balance(other.reader)], ['done', 7, 7])
  })

  it('refuse another one inside, and to be used when they are over', async ({ database }) => {
    let kept: Tx | undefined
    const outer = database.transaction(async (tx) => {
      kept = tx
      await database.transaction(async () => {})
    })
    assert.match(await messageOf(outer), 'nested transaction')
    await rejectionOf(setBalance(kept as Tx, 9))
    assert.is(await balance(database.reader), 0)
    assert.is(await database.transaction(async () => 'afterwards'), 'afterwards')
  })

  it('name a broken unique constraint', async ({ database }) => {
    const insert = (id: string, owner: string) =>
      rejectionOf(
        database.transaction((tx) => sql`insert into tills values (${id}, ${owner}, 0)`.execute(tx)),
      )
    const key = database.faultOf(await insert('main', 'bilal'))
    const index = database.faultOf(await insert('second', 'asma'))
    const sqlite = ['tills.id', 'tills.owner, tills.amount']
    const names = { sqlite, postgresql: ['tills_pkey', 'tills_owner'] }[dialect]
    const unique = names.map((constraint) => ({ kind: 'unique', constraint }))
    assert.equal([key, index], unique)
  })

  it('blame neither the database for a bug nor for a refused check', async ({ database }) => {
    const missing = sql`select * from nowhere`.execute(database.reader)
    const incomplete = sql`insert into tills (id, owner) values ('x', 'y')`
    const inserted = database.transaction((tx) => incomplete.execute(tx))
    const errors = [await rejectionOf(missing), await rejectionOf(inserted)]
    for (const error of [...errors, new Error('a bug'), null, 'text'])
      assert.is(database.faultOf(error), null)
  })

  it('give sums and counts as exact numbers, and as bigints beyond 2^53', async ({ database }) => {
    await database.transaction((tx) => setBalance(tx, Number.MAX_SAFE_INTEGER))
    const { rows } = await sql<{ total: number; n: number; low: number }>`
      select sum(amount) as total, count(*) as n, min(-amount) as low from tills`.execute(database.reader)
    assert.equal(rows, [{ total: Number.MAX_SAFE_INTEGER, n: 1, low: Number.MIN_SAFE_INTEGER }])
    for (const [expression, value] of [
      ['amount + 1', 2n ** 53n],
      ['sum(amount + 2)', 2n ** 53n + 1n],
      ['-amount - 2', -(2n ** 53n) - 1n],
    ] as const) {
      const wide = sql<{ n: unknown; one: unknown }>`
        select ${sql.raw(expression)} as n, 1 as one from tills group by amount`
      assert.equal((await wide.execute(database.reader)).rows, [{ n: value, one: 1 }])
    }
    assert.is(await balance(database.reader), Number.MAX_SAFE_INTEGER)
  })

  it.run()
}
