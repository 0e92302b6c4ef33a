import * as assert from 'uvu/assert'
import { applyToOffer } from '../../../applications/applications.service.ts'
import type { Platform } from '../../../platform/platform.ts'
import { addLiveOffer } from '../../../test/testkit/listings.ts'
import { marketSuites } from '../../../test/testkit/market-suites.ts'
import { outcomeOf } from '../../../test/testkit/people.ts'
import { DAY } from '../../../test/testkit/testbed.ts'
import { changePassword, login, register } from '../../../users/credentials.service.ts'
import { setPassword, suspendUser } from '../../../users/users.service.ts'
import type { MailKind } from './mail-texts.ts'
import { readNotifications, updateNotifications } from './notifications.service.ts'

/** The facts of a user's mails of one kind, oldest first. */
async function mailsOf(
  platform: Platform,
  userId: string,
  kind: MailKind,
): Promise<Record<string, unknown>[]> {
  const rows = await platform.database.reader
    .selectFrom('mails')
    .selectAll()
    .where('user_id', '=', userId)
    .where('kind', '=', kind)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return rows.map(({ facts }) => JSON.parse(facts))
}

for (const { it } of marketSuites('mails about events')) {
  it('are not written to accounts that turned them off', async ({ platform, market }) => {
    const shop = await market.addShop()
    const merchant = { userId: shop.merchantId, role: 'merchant' as const }
    assert.is((await readNotifications(platform, merchant)).email['application.created'], true)
    const changed = await updateNotifications(platform, merchant, { email: { 'application.created': false } })
    assert.equal([changed.email['application.created'], changed.email['sale.accepted']], [false, true])
    const creator = await market.addCreator('Sana', false)
    const offer = await addLiveOffer(platform, shop.actor)
    await applyToOffer(platform, creator.userId, offer.id, { message: null, promotion_url: null })
    await market.drainUntilIdle()
    assert.equal(await mailsOf(platform, shop.merchantId, 'application.created'), [])
    await updateNotifications(platform, merchant, { email: { 'application.created': true } })
    assert.is((await readNotifications(platform, merchant)).email['application.created'], true)
    const foreign = updateNotifications(platform, merchant, { email: { 'payout.paid': false } })
    assert.is(await outcomeOf(foreign), 'validation_failed')
    assert.equal(await readNotifications(platform, { ...merchant, role: 'admin' }), { email: {} })
  })

  it('about the account name each change of password and standing', async ({ platform, market, clock }) => {
    const creator = await market.addCreator()
    await setPassword(platform, creator.userId, 'another passphrase')
    const passwords = await mailsOf(platform, creator.userId, 'password_changed')
    assert.equal(passwords, [{ at: clock.now(), by: 'operator' }])
    const suspension = { userId: creator.userId, actor: 'operator', reason: null }
    await suspendUser(platform, suspension)
    await suspendUser(platform, suspension)
    assert.is((await mailsOf(platform, creator.userId, 'account_suspended')).length, 1)
  })

  it('name a log-in from an address new to the account, by its network', async ({ platform, clock }) => {
    const email = 'sana@example.pk'
    const password = 'a long passphrase'
    const opened = await register(platform, {
      ...{ email, password, role: 'creator', displayName: 'Sana', address: '203.0.113.7' },
    })
    const { userId: id } = opened
    const logins = () => mailsOf(platform, id, 'new_login')
    await login(platform, email, password, '203.0.113.7')
    assert.equal(await logins(), [])
    const agent = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0'
    await login(platform, email, password, '198.51.100.9', { agent })
    const facts = { at: clock.now(), network: '198.51.100.0/24', program: 'Firefox on Windows' }
    assert.equal(await logins(), [facts])
    await login(platform, email, password, '198.51.100.9')
    assert.is((await logins()).length, 1)
    clock.pass(91 * DAY)
    await login(platform, email, password, '203.0.113.7')
    assert.is((await logins()).length, 2)
    const actor = { userId: id, role: 'creator' as const, sessionId: platform.ids.next() }
    const change = { currentPassword: password, newPassword: 'another passphrase' }
    await changePassword(platform, actor, change)
    assert.equal(await mailsOf(platform, id, 'password_changed'), [{ at: clock.now(), by: 'owner' }])
  })

  it.run()
}
