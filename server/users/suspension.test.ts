import * as assert from 'uvu/assert'
import { OPERATOR } from '../flags/audit.service.ts'
import { appRouter } from '../http/router.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { addUser, logIn, outcomeOf, requestOf } from '../test/testkit/people.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { auditOf } from '../test/testkit/rows.ts'
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
    const audit = await auditOf(platform, { subject_id: id })
    const ended = { suspended: true, api_keys_ended: 0 }
    assert.equal(pluckAll(audit, 'actor', 'action', 'reason', 'before', 'after'), [
      [OPERATOR, 'user.suspend', 'self-clicks', { suspended: false }, ended],
      [OPERATOR, 'user.reinstate', null, { suspended: true }, { suspended: false }],
    ])
    assert.is(await outcomeOf(suspendUser(platform, { ...change, userId: platform.ids.next() })), 'not_found')
  })

  it('keeps one active admin, also when two suspend each other at once', async ({ bed }) => {
    const { platform } = bed
    const one = await createAdmin(platform, 'one@example.pk', PASSWORD, 'One')
    const suspend = (userId: string, actor: string) =>
      outcomeOf(suspendUser(platform, { userId, actor, reason: null }))
    assert.is(await suspend(one.id, one.id), 'conflict')
    const two = await createAdmin(platform, 'two@example.pk', PASSWORD, 'Two')
    const outcomes = await Promise.all([suspend(two.id, one.id), suspend(one.id, two.id)])
    assert.equal(outcomes.sort(), ['conflict', 'ok'])
    const active = await listUsers(platform, { role: 'admin', suspended: false, limit: 10 })
    assert.is(active.items.length, 1)
    const [suspended] = (await listUsers(platform, { role: 'admin', suspended: true, limit: 10 })).items
    assert.is(await suspend(suspended?.id ?? '', OPERATOR), 'ok', 'again changes nothing')
  })

  it('makes admins from the command line, with the rules of every account', async ({ bed }) => {
    const { platform } = bed
    const admin = await createAdmin(platform, ' Boss@Example.PK', PASSWORD, 'Boss')
    assert.equal([admin.email, admin.role], ['boss@example.pk', 'admin'])
    assert.equal(await findUser(platform, 'BOSS@example.pk'), admin)
    assert.equal(await findUser(platform, admin.id), admin)
    assert.is(await outcomeOf(findUser(platform, 'unknown@example.pk')), 'not_found')
    assert.is(await outcomeOf(createAdmin(platform, 'boss@example.pk', PASSWORD, 'Boss')), 'email_taken')
    assert.is(await outcomeOf(createAdmin(platform, 'x', PASSWORD, 'Boss')), 'validation_failed')
    assert.is(await outcomeOf(createAdmin(platform, 'x@example.pk', 'short', 'Boss')), 'validation_failed')
    assert.equal(pluck(await auditOf(platform, { subject_id: admin.id }), 'action'), ['user.create_admin'])
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
    for (const email of emails) ids.push((await newCreator(bed, email)).userId)
    const first = await listUsers(platform, { limit: 2 })
    assert.equal(pluck(first.items, 'email'), ['c@example.pk', 'b@example.pk'])
    const second = await listUsers(platform, { limit: 2, cursor: first.next_cursor ?? '' })
    assert.equal(pluck(second.items, 'email'), ['a@example.pk'])
    assert.is(second.next_cursor, null)
    const encoded = ['"x"', '{}'].map((text) => Buffer.from(text).toString('base64url'))
    for (const cursor of ['', 'x', ...encoded])
      assert.is(await outcomeOf(listUsers(platform, { limit: 2, cursor })), 'validation_failed')
    const { reader } = platform.database
    const people = await peopleOf(reader, [...ids, null, ids[0] ?? ''])
    assert.equal([...people.values()].map(({ email }) => email).sort(), emails)
    assert.is(people.get(ids[0] ?? '')?.display_name, 'Creator')
    assert.is((await peopleOf(reader, [])).size, 0)
  })

  it('is foretold to admins, who find accounts by role, standing and a part of name or e-mail', async (world) => {
    const { market, platform } = world
    const shop = await market.addShop()
    const creator = await market.addCreator('Sana')
    await market.earn(shop, await market.addLink(shop, creator), 100_000)
    const as = (actor: Actor) => appRouter.createCaller(requestOf(platform, actor))
    const { admin } = as(await addUser(platform, 'admin'))
    const found = async (filter: Parameters<typeof admin.listUsers>[0]) =>
      pluck((await admin.listUsers(filter)).items, 'id')
    const [listed] = (await admin.listUsers({ role: 'creator' })).items
    assert.equal([listed?.id, listed?.role, listed?.suspended], [creator.userId, 'creator', false])
    assert.not.ok(listed && ('balance' in listed || 'payout_destination' in listed))
    for (const q of [listed?.email, listed?.email.slice(2, -2).toUpperCase(), 'Sana'])
      assert.equal(await found({ q, role: 'creator' }), [creator.userId], q)
    for (const q of ['%', '_\\', 'no such account']) assert.equal(await found({ q }), [], q)

    await logIn(platform, creator)
    const preview = (id: string) => admin.previewSuspension({ id })
    const { balance } = await as(creator).users.me({})
    const ofCreator = await preview(creator.userId)
    assert.equal([ofCreator.sessions, ofCreator.api_keys, ofCreator.merchant], [1, 0, null])
    assert.equal(
      [ofCreator.creator?.links, ofCreator.creator?.balance_pending, ofCreator.creator?.balance_released],
      [1, balance?.pending, balance?.released],
    )
    const { creator: none, merchant } = await preview(shop.merchantId)
    assert.equal([none, merchant?.stores, merchant?.live_offers], [null, 1, 1])
    assert.is(await outcomeOf(preview(platform.ids.next())), 'not_found')

    await admin.suspendUser({ id: creator.userId, reason: 'a test' })
    assert.equal(await found({ suspended: true }), [creator.userId])
    assert.not((await found({ suspended: false })).includes(creator.userId))
    assert.is((await preview(creator.userId)).sessions, 0)
    assert.is((await admin.reinstateUser({ id: creator.userId })).suspended, false)
  })

  it.run()
}
