import { setImmediate as nextTurn } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { closeFlag, openFlags, raiseFlag } from '../../flags/flags.service.ts'
import { testDialects } from '../../test/testkit/databases.ts'
import { addUser, changeUser, logIn, outcomeOf } from '../../test/testkit/people.ts'
import { rejectionOf } from '../../test/testkit/rejection.ts'
import { rowOf, rowsOf } from '../../test/testkit/rows.ts'
import { openTestbed, type Testbed } from '../../test/testkit/testbed.ts'
import { actorFromToken, endSessions, isActorActive } from '../../users/sessions.service.ts'
import { verifyBooks } from '../../verification/verify-books.ts'
import type { Actor } from '../api/procedure.ts'
import { Refusal } from '../api/refusal.ts'
import { createAppKeys } from '../crypto/key-ring.ts'
import { afterCommit, unitOfWork } from './database.ts'
import { type OpenDatabase, openDatabase } from './open-database.ts'
import {
  changeRow,
  deleteRows,
  digestOf,
  insertRow,
  lockRows,
  stateOf,
  TamperedRow,
  updateRows,
  withRowKeys,
} from './protected-rows.ts'

interface Context {
  bed: Testbed
  admin: Actor
  creator: Actor
  /** The creator's session. */
  token: string
}

for (const dialect of testDialects()) {
  const it = suite<Context>(`protected rows on ${dialect}`)

  it.before.each(async (context) => {
    context.bed = await openTestbed(dialect)
    const { platform } = context.bed
    context.admin = await addUser(platform, 'admin')
    context.creator = await addUser(platform, 'creator')
    context.token = await logIn(platform, context.creator)
  })
  it.after.each(({ bed }) => bed?.close())

  /** A statement of a database writer without APP_KEY. */
  const write = ({ bed }: Context, statement: RawBuilder<unknown>) =>
    statement.execute(bed.testDatabase.database.writer)
  const breaches = async ({ bed }: Context) =>
    (await verifyBooks(bed.platform))
      .filter((result) => result.breaches.length > 0)
      .map(({ name, breaches: [first] }) => `${name}: ${first?.subject} ${first?.detail}`)
  const flagsOf = ({ bed }: Context, subject: string) =>
    openFlags(bed.platform.database.reader, 'integrity_violation', subject)

  it('hold as the service writes, changes and deletes them', async (context) => {
    const { platform } = context.bed
    await platform.database.transaction(async (tx) => {
      const [user] = await lockRows(tx, 'users', { id: context.creator.userId })
      if (!user) throw new Error('the creator')
      await changeRow(tx, 'users', user, { display_name: 'Changed' })
      await changeRow(tx, 'users', user, { email_verified_at: 5 })
      assert.equal([user.display_name, user.email_verified_at], ['Changed', 5])
    })
    await changeUser(platform, context.creator.userId, { email_verified_at: null })
    assert.equal(await breaches(context), [])
    assert.equal((await actorFromToken(platform, context.token))?.role, 'creator')
    await platform.database.transaction((tx) => endSessions(tx, context.creator.userId))
    assert.equal(await breaches(context), [])
    assert.is(await actorFromToken(platform, context.token), null)
  })

  it('hold with text that is not well-formed, as the databases store it', async (context) => {
    const { platform } = context.bed
    const { database } = platform
    const half = 'half \ud83d'
    const kind = 'processor_event_unmapped'
    const subject = { kind, subjectType: 'inbound_event', subjectId: half } as const
    const flag = { ...subject, summary: '', evidence: {} }
    await database.transaction((tx) => raiseFlag(platform, tx, flag))
    assert.equal(await breaches(context), [])
    assert.ok(await database.transaction((tx) => closeFlag(platform, tx, subject, half)))
    assert.equal(await breaches(context), [])
  })

  it('are parts of a unit of work: what fails is undone alone, the rest commits together', async (context) => {
    const { database } = context.bed.platform
    const id = context.creator.userId
    const committed: string[] = []
    const rename = (display_name: string) =>
      database.transaction(async (tx) => {
        afterCommit(tx, () => committed.push(display_name))
        await updateRows(tx, 'users', { id }, { display_name })
        if (display_name === 'refused') throw new Refusal('conflict', 'No.')
      })
    const nameOf = async () => (await rowOf({ database }, 'users', { id })).display_name
    await unitOfWork(database, async () => {
      await rename('first')
      assert.is(await outcomeOf(rename('refused')), 'conflict')
      assert.is(await nameOf(), 'first')
      assert.equal(committed, [])
    })
    assert.equal(committed, ['first'])
    assert.equal(await breaches(context), [])
    const failing = unitOfWork(database, async () => {
      await rename('undone')
      throw new Refusal('conflict', 'No.')
    })
    assert.is(await outcomeOf(failing), 'conflict')
    assert.equal([await nameOf(), committed], ['first', ['first']])
    assert.equal(await breaches(context), [])
  })

  it('give a creator no power who is made an admin, and the flag is raised once', async (context) => {
    const { platform } = context.bed
    const { userId } = context.creator
    await write(context, sql`update users set role = 'admin' where id = ${userId}`)
    for (const _ of [1, 2]) assert.is(await actorFromToken(platform, context.token), null)
    assert.not(await isActorActive(platform, context.creator))
    assert.is((await flagsOf(context, 'users')).length, 1)
    const breach = `rows-authentic-users: users ${userId} was added or changed outside of the service`
    assert.equal(await breaches(context), [breach])
  })

  it('give no power to a session of another user, a longer one or a copied one', async (context) => {
    const { platform } = context.bed
    const { userId } = context.admin
    const statements = {
      user_id: sql`update sessions set user_id = ${userId}`,
      expires_at: sql`update sessions set expires_at = expires_at + 1`,
      'a copy': sql`insert into sessions (id, user_id, token_hash, created_at, expires_at, setup_only, row_digest)
        select ${userId}, user_id, 'other', created_at, expires_at, setup_only, row_digest from sessions`,
      'a row without a digest': sql`insert into sessions (id, user_id, token_hash, created_at, expires_at, row_digest)
        select ${userId}, ${userId}, 'other', created_at, expires_at, '' from sessions`,
    }
    for (const [what, statement] of Object.entries(statements)) {
      const before = await platform.database.reader.selectFrom('sessions').selectAll().execute()
      await write(context, statement)
      if (!what.startsWith('a ')) assert.is(await actorFromToken(platform, context.token), null, what)
      assert.ok((await breaches(context)).length > 0, what)
      await write(context, sql`delete from sessions`)
      await context.bed.testDatabase.database.writer.insertInto('sessions').values(before).execute()
    }
    assert.equal(await breaches(context), [])
    assert.is((await flagsOf(context, 'sessions')).length, 1)
  })

  it('are missed when they are deleted, and when an older form is put back', async (context) => {
    const { platform } = context.bed
    const { writer } = context.bed.testDatabase.database
    const older = await writer.selectFrom('users').selectAll().where('role', '=', 'creator').execute()
    await changeUser(platform, context.creator.userId, { email: 'new@example.com' })
    await write(
      context,
      sql`update users set email = ${older[0]?.email}, row_digest = ${older[0]?.row_digest}
      where id = ${context.creator.userId}`,
    )
    assert.equal(await breaches(context), [
      'rows-complete-users: users holds an older or a changed row in place of one that the service wrote',
    ])
    await write(context, sql`delete from sessions`)
    const missed = 'rows-complete-sessions: sessions has 0 rows, where the service wrote 1'
    assert.ok((await breaches(context)).includes(missed))
    await write(context, sql`delete from watermarks where name = 'row_heads'`)
    await changeUser(platform, context.admin.userId, { email: 'third@example.com' })
    assert.ok((await breaches(context)).some((breach) => breach.startsWith('rows-complete-users')))
  })

  it('that were changed are not given a new digest by a later change of the service', async (context) => {
    const { platform } = context.bed
    const { userId } = context.creator
    await write(context, sql`update users set role = 'admin' where id = ${userId}`)
    const setWise = changeUser(platform, userId, { display_name: 'x' })
    assert.instance(await rejectionOf(setWise), TamperedRow)
    const locked = platform.database.transaction((tx) => lockRows(tx, 'users', { id: userId }))
    assert.instance(await rejectionOf(locked), TamperedRow)
  })

  it('are counted by transactions at the same time', async (context) => {
    const { platform } = context.bed
    const people = await Promise.all(Array.from({ length: 8 }, () => addUser(platform, 'creator')))
    await Promise.all(
      people.map(({ userId }, index) =>
        index % 2 === 0
          ? changeUser(platform, userId, { display_name: 'changed' })
          : platform.database.transaction((tx) => deleteRows(tx, 'users', { id: userId })),
      ),
    )
    assert.equal(await breaches(context), [])
  })

  /** The same database as another process has it. */
  const inOtherProcess = async ({ bed }: Context, work: (other: OpenDatabase) => Promise<void>) => {
    const other = withRowKeys(await openDatabase(bed.testDatabase.url, { create: false }), bed.platform.keys)
    await work(other).finally(() => other.close())
  }

  it('lose no update when two processes change a locked row', (context) =>
    inOtherProcess(context, async (other) => {
      const { database } = context.bed.platform
      const id = context.creator.userId
      const add = ({ transaction }: Pick<OpenDatabase, 'transaction'>) =>
        transaction(async (tx) => {
          const [user] = await lockRows(tx, 'users', { id })
          await nextTurn()
          if (user) await changeRow(tx, 'users', user, { created_at: user.created_at + 1 })
        })
      const createdAt = async () => (await rowOf({ database }, 'users', { id })).created_at
      const before = await createdAt()
      await Promise.all([1, 2, 3].flatMap(() => [add(database), add(other)]))
      assert.is(await createdAt(), before + 6)
      assert.equal(await breaches(context), [])
    }))

  it('can be referred to by other transactions while they are locked', (context) =>
    inOtherProcess(context, async (other) => {
      if (dialect === 'sqlite') return
      const { database, ids } = context.bed.platform
      const id = context.creator.userId
      await database.transaction(async (tx) => {
        await lockRows(tx, 'users', { id })
        await sql`set lock_timeout = 500`.execute(other.writer)
        const session = { user_id: id, token_hash: 'hash', created_at: 1, expires_at: 2, setup_only: 0 }
        await other.transaction((theirs) => insertRow(theirs, 'sessions', { id: ids.next(), ...session }))
      })
    }))

  it('report a broken constraint, and change nothing then', async (context) => {
    const { database } = context.bed.platform
    const { userId } = context.creator
    const [admin] = await rowsOf({ database }, 'users', { role: 'admin' })
    const work = database.transaction(async (tx) => {
      const [user] = await lockRows(tx, 'users', { id: userId })
      if (user) await changeRow(tx, 'users', user, { email: admin?.email ?? '' })
    })
    const fault = database.faultOf(await rejectionOf(work))
    assert.is(fault?.kind, 'unique')
    assert.match(fault?.kind === 'unique' ? fault.constraint : '', 'email')
    assert.equal(await breaches(context), [])
  })

  it.run()
}

const FIRST = Buffer.alloc(32, 1)
const SECOND = Buffer.alloc(32, 2)
const digests = suite('row digests')
const ROW = { id: 'u1', role: 'creator', suspended_at: null }

digests('hold for the same table and values only', () => {
  const keys = createAppKeys(FIRST)
  const row_digest = digestOf(keys, 'users', ROW)
  assert.is(stateOf(keys, 'users', { ...ROW, row_digest }), 'holds')
  assert.is(stateOf(keys, 'users', { ...ROW, row_digest, added_later: null }), 'holds', 'a new column')
  assert.is(stateOf(keys, 'users', { ...ROW, row_digest, role: 'admin' }), 'changed')
  assert.is(stateOf(keys, 'applications', { ...ROW, row_digest }), 'changed')
  assert.is(stateOf(keys, 'users', { ...ROW, row_digest, suspended_at: '' }), 'changed')
  for (const bad of [null, '', 'x', '.', `${row_digest}0`, row_digest.slice(0, -2)])
    assert.is(stateOf(keys, 'users', { ...ROW, row_digest: bad }), 'changed', String(bad))
})

digests('of a former key of the ring still hold; another key is named unknown', () => {
  const row = { ...ROW, row_digest: digestOf(createAppKeys(FIRST), 'users', ROW) }
  assert.is(stateOf(createAppKeys(SECOND, [FIRST]), 'users', row), 'holds')
  assert.is(stateOf(createAppKeys(SECOND), 'users', row), 'unknown_key')
})

digests.run()
