import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Selectable, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, type TestDatabase, testDialects } from '../../test/testkit/databases.ts'
import { TESTBED_KEY } from '../../test/testkit/testbed.ts'
import { createAppKeys } from '../crypto/key-ring.ts'
import { afterCommit, type Queries, WriteConflict } from './database.ts'
import { entities, LOCK } from './entities.ts'
import { type OpenDatabase, openDatabase } from './open-database.ts'
import { insertRows, type NewRow, updateRows, withRowKeys } from './protected-rows.ts'
import type { Schema } from './schema.ts'

interface Context {
  testDatabase: TestDatabase
  database: OpenDatabase
  /** The same database over other connections, as another process has it. */
  other: OpenDatabase
}

const KEYS = createAppKeys(TESTBED_KEY)
const ASMA = '01890000-0000-7000-8000-000000000001'
const BILAL = '01890000-0000-7000-8000-000000000002'

function user(id: string, name: string): NewRow<'users'> & { row_digest: string } {
  const email = `${name.toLowerCase()}@example.pk`
  return {
    ...{ id, email, password_hash: 'hash', role: 'merchant', display_name: name },
    ...{ suspended_at: null, created_at: 1_790_000_000_000 },
    ...{ email_verified_at: null, row_digest: '' },
  }
}

async function names(db: Queries): Promise<string[]> {
  const rows = await db.selectFrom('users').select('display_name').orderBy('id').execute()
  return rows.map((row) => row.display_name)
}

for (const dialect of testDialects()) {
  const it = suite<Context>(`entities on ${dialect}`)

  it.before.each(async (context) => {
    context.testDatabase = await openTestDatabase(dialect)
    context.database = withRowKeys(context.testDatabase.database, KEYS)
    context.other = withRowKeys(await openDatabase(context.testDatabase.url, { create: false }), KEYS)
    await context.database.transaction(async (tx) => {
      await insertRows(tx, 'users', [user(ASMA, 'Asma')])
    })
  })

  it.after.each(async ({ other, testDatabase }) => {
    await other.close()
    await testDatabase.close()
  })

  it('are saved when the transaction commits', async ({ database, other }) => {
    await database.transaction(async (tx) => {
      const { em, User } = await entities(tx)
      const asma = await em.findOneOrFail(User, ASMA)
      asma.display_name = "Asma O'Hara? \\ \u{1F600}"
      em.create(User, user(BILAL, 'Bilal'))
    })
    assert.equal(await names(other.reader), ["Asma O'Hara? \\ \u{1F600}", 'Bilal'])
  })

  it('are saved through a copy of the transaction that has plugins, too', async ({ database, other }) => {
    let committed = 0
    await database.transaction(async (tx) => {
      const copy = tx.withoutPlugins()
      afterCommit(copy, () => {
        committed += 1
      })
      const { em, User } = await entities(copy)
      Object.assign(await em.findOneOrFail(User, ASMA), { display_name: 'Asma Bibi' })
    })
    assert.equal([await names(other.reader), committed], [['Asma Bibi'], 1])
  })

  it('read like rows of the query builder', async ({ database }) => {
    await database.transaction(async (tx) => {
      const { em, User } = await entities(tx)
      const loaded: Selectable<Schema['users']> = await em.findOneOrFail(User, { email: 'asma@example.pk' })
      assert.equal({ ...loaded, row_digest: '' }, user(ASMA, 'Asma'))
      assert.equal(await em.find(User, { id: { $in: [ASMA, BILAL] }, suspended_at: null }), [loaded])
    })
  })

  it('keep a reference to another row as its id', async ({ database }) => {
    await database.transaction(async (tx) => {
      const { em, Session, User } = await entities(tx)
      em.create(Session, { id: ASMA, user_id: BILAL, token_hash: 'hash', created_at: 1, expires_at: 2 })
      em.create(User, user(BILAL, 'Bilal'))
    })
    const rows = await database.reader.selectFrom('sessions').select(['id', 'user_id']).execute()
    assert.equal(rows, [{ id: ASMA, user_id: BILAL }])
  })

  it('are saved several at a time, and removed', async ({ database }) => {
    await database.transaction(async (tx) => {
      const { em, User } = await entities(tx)
      em.create(User, user(BILAL, 'Bilal'))
      await em.flush()
      const [asma, bilal] = await em.find(User, {}, { orderBy: { id: 'asc' } })
      if (!asma || !bilal) throw new Error('two users')
      Object.assign(asma, { display_name: 'A', suspended_at: 5 })
      Object.assign(bilal, { display_name: 'B' })
      await em.flush()
      assert.equal(await names(tx), ['A', 'B'])
      em.remove(asma)
    })
    assert.equal(await names(database.reader), ['B'])
  })

  it('are the same objects for everything in one transaction', async ({ database }) => {
    await database.transaction(async (tx) => {
      const [one, other] = await Promise.all([entities(tx), entities(tx)])
      assert.is(one, other)
      assert.is(await one.em.findOne(one.User, ASMA), await other.em.findOne(one.User, ASMA))
    })
  })

  it('are seen by the query builder once they are flushed', async ({ database }) => {
    await database.transaction(async (tx) => {
      const { em, User } = await entities(tx)
      const asma = await em.findOneOrFail(User, ASMA)
      asma.display_name = 'Asma B'
      assert.equal(await names(tx), ['Asma'])
      await em.flush()
      assert.equal(await names(tx), ['Asma B'])
    })
  })

  it('change nothing when the transaction rolls back', async ({ database }) => {
    const failure = new Error('refused')
    const work = database.transaction(async (tx) => {
      const { em, User } = await entities(tx)
      const asma = await em.findOneOrFail(User, ASMA)
      asma.display_name = 'Asma B'
      await em.flush()
      throw failure
    })
    assert.is(await work.catch((error) => error), failure)
    assert.equal(await names(database.reader), ['Asma'])
  })

  it('are loaded again when the transaction is repeated', async ({ database }) => {
    const seen: string[] = []
    await database.transaction(async (tx) => {
      const { em, User } = await entities(tx)
      const asma = await em.findOneOrFail(User, ASMA)
      seen.push(asma.display_name)
      asma.display_name += ' B'
      if (seen.length < 3) throw new WriteConflict('a test')
    })
    assert.equal(seen, ['Asma', 'Asma', 'Asma'])
    assert.equal(await names(database.reader), ['Asma B'])
  })

  it('report a broken constraint as the query builder does', async ({ database }) => {
    const work = database.transaction(async (tx) => {
      const { em, User } = await entities(tx)
      em.create(User, { ...user(BILAL, 'Bilal'), email: 'asma@example.pk' })
    })
    const fault = database.faultOf(await work.catch((error) => error))
    assert.is(fault?.kind, 'unique')
    assert.match(fault?.kind === 'unique' ? fault.constraint : '', 'email')
  })

  it('lose no update when two processes change a locked row', async ({ database, other }) => {
    const add = (process: OpenDatabase) =>
      process.transaction(async (tx) => {
        const { em, User } = await entities(tx)
        const asma = await em.findOneOrFail(User, ASMA, LOCK)
        await nextTurn()
        asma.created_at += 1
      })
    const before = user(ASMA, 'Asma').created_at
    await Promise.all([1, 2, 3].flatMap(() => [add(database), add(other)]))
    const { created_at } = await database.reader
      .selectFrom('users')
      .select('created_at')
      .executeTakeFirstOrThrow()
    assert.is(created_at, before + 6)
  })

  it('are read again when they are locked after they were loaded', async ({ database, other }) => {
    if (dialect === 'sqlite') return
    await database.transaction(async (tx) => {
      const { em, User } = await entities(tx)
      await em.findOneOrFail(User, ASMA)
      await other.transaction((theirs) =>
        updateRows(theirs, 'users', { id: ASMA }, { display_name: 'Asma B' }),
      )
      const locked = await em.findOneOrFail(User, ASMA, LOCK)
      assert.is(locked.display_name, 'Asma B')
    })
  })

  it('can be referred to by other transactions while they are locked', async ({ database, other }) => {
    if (dialect === 'sqlite') return
    await database.transaction(async (tx) => {
      const { em, User } = await entities(tx)
      await em.findOneOrFail(User, ASMA, LOCK)
      await sql`set lock_timeout = 500`.execute(other.writer)
      await other.transaction((theirs) =>
        insertRows(theirs, 'sessions', [
          { id: BILAL, user_id: ASMA, token_hash: 'hash', created_at: 1, expires_at: 2, setup_only: 0 },
        ]),
      )
    })
  })

  it.run()
}
