import * as assert from 'uvu/assert'
import { applyToOffer } from '../../../applications/applications.service.ts'
import { addLiveOffer } from '../../../test/testkit/listings.ts'
import { marketSuites } from '../../../test/testkit/market-suites.ts'
import { mailFactsOf, outcomeOf } from '../../../test/testkit/people.ts'
import { DAY } from '../../../test/testkit/testbed.ts'
import { changePassword, login, register } from '../../../users/credentials.service.ts'
import { setPassword, suspendUser } from '../../../users/users.service.ts'
import { readNotifications, updateNotifications } from './notifications.service.ts'

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
    assert.equal(await mailFactsOf(platform, shop.merchantId, 'application.created'), [])
    await updateNotifications(platform, merchant, { email: { 'application.created': true } })
    assert.is((await readNotifications(platform, merchant)).email['application.created'], true)
    const foreign = updateNotifications(platform, merchant, { email: { 'payout.paid': false } })
    assert.is(await outcomeOf(foreign), 'validation_failed')
    assert.equal(await readNotifications(platform, { ...merchant, role: 'admin' }), { email: {} })
  })

  it('about the account name each change of password and standing', async ({ platform, market, clock }) => {
    const creator = await market.addCreator()
    await setPassword(platform, creator.userId, 'another passphrase')
    const passwords = await mailFactsOf(platform, creator.userId, 'password_changed')
    assert.equal(passwords, [{ at: clock.now(), by: 'operator' }])
    for (const _ of ['once', 'and again'])
      await suspendUser(platform, { userId: creator.userId, actor: 'operator', reason: null })
    assert.is((await mailFactsOf(platform, creator.userId, 'account_suspended')).length, 1)
  })

  it('name a log-in from an address new to the account, by its network', async ({ platform, clock }) => {
    const email = 'sana@example.pk'
    const password = 'a long passphrase'
    const account = { email, password, role: 'creator', displayName: 'Sana' } as const
    const { userId: id } = await register(platform, { ...account, address: '203.0.113.7' })
    const logins = () => mailFactsOf(platform, id, 'new_login')
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
    assert.equal(await mailFactsOf(platform, id, 'password_changed'), [{ at: clock.now(), by: 'owner' }])
  })

  it.run()
}
