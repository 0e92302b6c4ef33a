import * as assert from 'uvu/assert'
import { OPERATOR } from '../flags/audit.service.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { outcomeOf } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import type { Testbed } from '../test/testkit/testbed.ts'
import { login, register } from './credentials.service.ts'
import { actorFromToken } from './sessions.service.ts'
import {
  createAdmin,
  findUser,
  isSuspended,
  listUsers,
  peopleOf,
  reinstateUser,
  setPassword,
  suspendUser,
} from './users.service.ts'

const PASSWORD = 'a long passphrase'

for (const { it } of marketSuites('accounts and suspension')) {
  const email = 'creator@example.pk'
  const newCreator = (bed: Testbed, given = email) =>
    register(bed.platform, { email: given, password: PASSWORD, role: 'creator', displayName: 'Creator' })
  const auditOf = (bed: Testbed, id: string) => rowsOf(bed.platform, 'audit_entries', { subject_id: id })

  it('suspends once, ends all sessions and notes who did it', async ({ bed }) => {
    const { platform } = bed
    const { userId: id, token } = await newCreator(bed)
    const change = { userId: id, actor: OPERATOR, reason: 'self-clicks' }
    assert.is((await suspendUser(platform, change)).suspended_at, bed.clock.now())
    assert.is(await actorFromToken(platform, token), null)
    bed.clock.pass(1000)
    assert.is((await suspendUser(platform, change)).suspended_at, bed.clock.now() - 1000)
    assert.is(await outcomeOf(login(platform, email, PASSWORD)), 'account_suspended')
    assert.is(await outcomeOf(login(platform, email, 'another passphrase')), 'invalid_credentials')
    assert.equal(await isSuspended(platform.database.reader, [id, platform.ids.next()]), new Set([id]))

    assert.is((await reinstateUser(platform, { ...change, reason: null })).suspended_at, null)
    assert.is((await reinstateUser(platform, change)).suspended_at, null)
    assert.is(await actorFromToken(platform, token), null, 'the old session stays ended')
    assert.is(await outcomeOf(login(platform, email, PASSWORD)), 'ok')
    const audit = await auditOf(bed, id)
    assert.equal(
      audit.map(({ actor, action, reason, before, after }) => ({ actor, action, reason, before, after })),
      [
        {
          actor: OPERATOR,
          action: 'user.suspend',
          reason: 'self-clicks',
          before: '{"suspended":false}',
          after: '{"suspended":true,"api_keys_ended":0}',
        },
        {
          actor: OPERATOR,
          action: 'user.reinstate',
          reason: null,
          before: '{"suspended":true}',
          after: '{"suspended":false}',
        },
      ],
    )
    assert.is(await outcomeOf(suspendUser(platform, { ...change, userId: platform.ids.next() })), 'not_found')
  })

  it('keeps one active admin, also when two suspend each other at once', async ({ bed }) => {
    const { platform } = bed
    const one = await createAdmin(platform, 'one@example.pk', PASSWORD, 'One')
    assert.is(
      await outcomeOf(suspendUser(platform, { userId: one.id, actor: one.id, reason: null })),
      'conflict',
    )
    const two = await createAdmin(platform, 'two@example.pk', PASSWORD, 'Two')
    const outcomes = await Promise.all([
      outcomeOf(suspendUser(platform, { userId: two.id, actor: one.id, reason: null })),
      outcomeOf(suspendUser(platform, { userId: one.id, actor: two.id, reason: null })),
    ])
    assert.equal(outcomes.sort(), ['conflict', 'ok'])
    const active = await listUsers(platform, { role: 'admin', suspended: false, limit: 10 })
    assert.is(active.items.length, 1)
    const [suspended] = (await listUsers(platform, { role: 'admin', suspended: true, limit: 10 })).items
    assert.ok(suspended)
    const again = { userId: suspended.id, actor: OPERATOR, reason: null }
    assert.is(await outcomeOf(suspendUser(platform, again)), 'ok', 'again changes nothing')
  })

  it('makes admins from the command line, with the rules of every account', async ({ bed }) => {
    const { platform } = bed
    const admin = await createAdmin(platform, ' Boss@Example.PK', PASSWORD, 'Boss')
    assert.is(admin.email, 'boss@example.pk')
    assert.is(admin.role, 'admin')
    assert.equal(await findUser(platform, 'BOSS@example.pk'), admin)
    assert.equal(await findUser(platform, admin.id), admin)
    assert.is(await outcomeOf(findUser(platform, 'unknown@example.pk')), 'not_found')
    assert.is(await outcomeOf(createAdmin(platform, 'boss@example.pk', PASSWORD, 'Boss')), 'email_taken')
    assert.is(await outcomeOf(createAdmin(platform, 'x', PASSWORD, 'Boss')), 'validation_failed')
    assert.is(await outcomeOf(createAdmin(platform, 'x@example.pk', 'short', 'Boss')), 'validation_failed')
    assert.equal(pluck(await auditOf(bed, admin.id), 'action'), ['user.create_admin'])
  })

  it('sets a password and ends all sessions', async ({ bed }) => {
    const { platform } = bed
    const { userId, token } = await newCreator(bed)
    await setPassword(platform, email, 'the second passphrase')
    assert.is(await actorFromToken(platform, token), null)
    assert.is(await outcomeOf(login(platform, email, PASSWORD)), 'invalid_credentials')
    assert.is(await outcomeOf(login(platform, email, 'the second passphrase')), 'ok')
    assert.is(await outcomeOf(setPassword(platform, userId, 'short')), 'validation_failed')
    assert.is(await outcomeOf(setPassword(platform, 'unknown@example.pk', PASSWORD)), 'not_found')
  })

  it('lists by pages, newest first', async ({ bed }) => {
    const { platform } = bed
    const emails = ['a@example.pk', 'b@example.pk', 'c@example.pk']
    const ids: string[] = []
    for (const email of emails) {
      ids.push((await newCreator(bed, email)).userId)
    }
    const first = await listUsers(platform, { limit: 2 })
    assert.equal(pluck(first.items, 'email'), ['c@example.pk', 'b@example.pk'])
    const second = await listUsers(platform, { limit: 2, cursor: first.next_cursor ?? '' })
    assert.equal(pluck(second.items, 'email'), ['a@example.pk'])
    assert.is(second.next_cursor, null)
    for (const cursor of [
      '',
      'x',
      Buffer.from('"x"').toString('base64url'),
      Buffer.from('{}').toString('base64url'),
    ]) {
      assert.is(await outcomeOf(listUsers(platform, { limit: 2, cursor })), 'validation_failed')
    }
    const { reader } = platform.database
    const people = await peopleOf(reader, [...ids, null, ids[0] ?? ''])
    assert.equal([...people.values()].map(({ email }) => email).sort(), emails)
    assert.is(people.get(ids[0] ?? '')?.display_name, 'Creator')
    assert.is((await peopleOf(reader, [])).size, 0)
  })

  it.run()
}
