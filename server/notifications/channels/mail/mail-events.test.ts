import * as assert from 'uvu/assert'
import { applyToOffer, decideOnApplication } from '../../../applications/applications.service.ts'
import { closeDueCycles } from '../../../billing/close-cycle.service.ts'
import { runPayouts } from '../../../payouts/payout-run.service.ts'
import type { Platform } from '../../../platform/platform.ts'
import { addLiveOffer } from '../../../test/testkit/listings.ts'
import { marketSuites } from '../../../test/testkit/market-suites.ts'
import { giveDestination } from '../../../test/testkit/marketplace.ts'
import { outcomeOf } from '../../../test/testkit/people.ts'
import { DAY } from '../../../test/testkit/testbed.ts'
import { changePassword, login, register } from '../../../users/credentials.service.ts'
import { setPassword, suspendUser } from '../../../users/users.service.ts'
import { watchMarketplace } from '../../../watches/watches.service.ts'
import type { MailKind } from './mails.ts'
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
  it('name the application to the merchant, and the decision with the link to the creator', async ({
    platform,
    market,
  }) => {
    const shop = await market.addShop()
    const creator = await market.addCreator('Sana', false)
    const offer = await addLiveOffer(platform, shop.actor)
    const application = { message: 'Hello', promotion_url: null }
    const { id } = await applyToOffer(platform, creator.userId, offer.id, application)
    const decided = await decideOnApplication(platform, shop.merchantId, id, {
      decision: 'approve',
      reason: 'Welcome',
    })
    await market.drainUntilIdle()
    assert.equal(await mailsOf(platform, shop.merchantId, 'application.created'), [
      { offer: offer.title, creator: 'Sana' },
    ])
    assert.equal(await mailsOf(platform, creator.userId, 'application.decided'), [
      {
        offer: offer.title,
        decision: 'approved',
        link: `http://127.0.0.1:3000/go/${decided.link?.slug}`,
        reason: 'Welcome',
      },
    ])
  })

  it('name the first sale only, the amount due with the payment link, and what became of payouts', async ({
    platform,
    market,
    clock,
  }) => {
    const shop = await market.addShop()
    const creator = await market.addCreator()
    const link = await market.addLink(shop, creator)
    await market.order(shop, link, 1_000_000)
    await market.order(shop, link, 2_000_000)
    await market.drainUntilIdle()
    await market.earn(shop, link, 2_000_000)
    for (const userId of [shop.merchantId, creator.userId]) {
      const [first, ...more] = await mailsOf(platform, userId, 'sale.accepted')
      assert.equal([first?.net_amount, more], ['10000.00', []])
    }
    const [closed, ...others] = await mailsOf(platform, shop.merchantId, 'billing_cycle.closed')
    assert.equal(others, [])
    assert.match(String(closed?.amount_due), /^\d+\.00$/)
    assert.match(String(closed?.payment_url), /^https?:/)
    for (const word of ['failed', 'confirmed'] as const) {
      await runPayouts(platform, market.processor)
      await market.drainUntilIdle()
      const payout = await platform.database.reader
        .selectFrom('payouts')
        .selectAll()
        .where('state', '=', 'submitted')
        .executeTakeFirstOrThrow()
      await market.settlePayout(payout.id, word)
      await market.drainUntilIdle()
      clock.pass(DAY)
    }
    const [failed] = await mailsOf(platform, creator.userId, 'payout.failed')
    const [paid] = await mailsOf(platform, creator.userId, 'payout.paid')
    assert.equal([failed?.reason, failed?.amount], ['returned by the bank', paid?.amount])
  })

  it('name an overdue cycle once', async ({ platform, market, clock }) => {
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    await market.order(shop, link, 2_000_000)
    await market.drainUntilIdle()
    clock.pass(40 * DAY)
    await closeDueCycles(platform)
    clock.pass(60 * DAY)
    await watchMarketplace(platform)
    await watchMarketplace(platform)
    await market.drainUntilIdle()
    const overdue = await mailsOf(platform, shop.merchantId, 'billing_cycle.overdue')
    assert.equal(
      overdue.map(({ amount_due }) => amount_due),
      ['2750.00'],
    )
  })

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
  })

  it('about the account name each change of password, payout account and standing', async ({
    platform,
    market,
    clock,
  }) => {
    const creator = await market.addCreator()
    await giveDestination(platform, creator.userId, 'PK24SCBL0000001171495101')
    await market.drainUntilIdle()
    const destinations = await mailsOf(platform, creator.userId, 'payout_destination_changed')
    assert.is(destinations.at(-1)?.iban_last4, '5101')
    assert.is(destinations.at(-1)?.effective_at, clock.now() + DAY)
    await setPassword(platform, creator.userId, 'another passphrase')
    const passwords = await mailsOf(platform, creator.userId, 'password_changed')
    assert.equal(passwords, [{ at: clock.now(), by: 'operator' }])
    const suspension = { userId: creator.userId, actor: 'operator', reason: null }
    await suspendUser(platform, suspension)
    await suspendUser(platform, suspension)
    assert.is((await mailsOf(platform, creator.userId, 'account_suspended')).length, 1)
  })

  it('name a log-in from an address that the account has not used, by its network', async ({
    platform,
    clock,
  }) => {
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
