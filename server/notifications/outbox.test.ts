import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { applyToOffer, decideOnApplication } from '../applications/applications.service.ts'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { createIds } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { addLiveOffer } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { giveDestination } from '../test/testkit/marketplace.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { watchMarketplace } from '../watches/watches.service.ts'
import type { MailKind } from './channels/mail/mail-texts.ts'
import { createEndpoint } from './channels/webhooks/endpoints.service.ts'
import {
  type Channel,
  distributeEvents,
  EVENT_RETENTION_MS,
  type NewEvent,
  type OutboxEventRow,
  publishEvents,
  removeOldEvents,
} from './outbox.service.ts'

async function allEvents(platform: Platform): Promise<OutboxEventRow[]> {
  return platform.database.reader
    .selectFrom('outbox_events')
    .selectAll()
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

/** The data of an account's events of one type, oldest first. */
async function dataOf(
  platform: Platform,
  accountId: string,
  type: string,
): Promise<Record<string, unknown>[]> {
  const events = await allEvents(platform)
  return events
    .filter((event) => event.account_id === accountId && event.type === type)
    .map(({ data }) => JSON.parse(data))
}

/** What the mails of one kind to an account say, oldest first. */
async function mailsOf({ database }: Platform, userId: string, kind: MailKind) {
  const mails = database.reader.selectFrom('mails').selectAll().where('user_id', '=', userId)
  const rows = await mails.where('kind', '=', kind).orderBy('id').execute()
  return rows.map(({ facts }): Record<string, unknown> => JSON.parse(facts))
}

/** A channel that keeps what it is given. */
function recorder(): Channel & { seen: string[] } {
  const seen: string[] = []
  return {
    seen,
    async enqueue(_platform, _tx, events) {
      seen.push(...events.map(({ id }) => id))
    },
  }
}

for (const { it } of marketSuites('the outbox', { idsOf: createIds })) {
  const event = (accountId: string, subjectId: string, type: NewEvent['type'] = 'payout.paid'): NewEvent => ({
    type,
    accountId,
    subjectId,
    data: { subjectId },
  })

  it('numbers the events of a subject in the order of their transactions', async ({ platform, market }) => {
    const { userId } = await market.addCreator(undefined, false)
    const other = await market.addCreator(undefined, false)
    const [one, two] = [platform.ids.next(), platform.ids.next()]
    const publish = (...events: NewEvent[]) =>
      platform.database.transaction((tx) => publishEvents(platform, tx, events))
    await publish(event(userId, one), event(userId, two), event(userId, one))
    await publish(event(userId, one), event(other.userId, one))
    const places = (await allEvents(platform)).map(
      (row) => `${row.account_id === userId} ${row.subject_id === one} ${row.sequence}`,
    )
    assert.equal(places.sort(), ['false true 1', 'true false 1', 'true true 1', 'true true 2', 'true true 3'])
  })

  it('gives concurrent transactions about one subject different places', async ({ platform, market }) => {
    const { userId } = await market.addCreator(undefined, false)
    const subject = platform.ids.next()
    await Promise.all(
      Array.from({ length: 8 }, () =>
        platform.database.transaction((tx) => publishEvents(platform, tx, [event(userId, subject)])),
      ),
    ).catch(() => undefined)
    const sequences = (await allEvents(platform)).map(({ sequence }) => sequence)
    assert.equal(
      sequences.toSorted((a, b) => a - b),
      sequences.map((_, index) => index + 1),
    )
    assert.ok(sequences.length >= 1)
  })

  it('gives each event to every channel once, also with several workers', async ({ platform, market }) => {
    const { userId } = await market.addCreator(undefined, false)
    const ids = await platform.database.transaction((tx) =>
      publishEvents(
        platform,
        tx,
        Array.from({ length: 30 }, () => event(userId, platform.ids.next())),
      ),
    )
    const [mail, hooks] = [recorder(), recorder()]
    await Promise.all([1, 2, 3].map(() => distributeEvents(platform, [mail, hooks])))
    assert.equal(mail.seen.toSorted(), ids.toSorted())
    assert.equal(hooks.seen.toSorted(), ids.toSorted())
    assert.is(await distributeEvents(platform, [mail, hooks]), 0)
  })

  it('keeps events pending when a channel fails', async ({ platform, market }) => {
    const { userId } = await market.addCreator(undefined, false)
    await platform.database.transaction((tx) =>
      publishEvents(platform, tx, [event(userId, platform.ids.next())]),
    )
    const broken: Channel = { enqueue: () => Promise.reject(new Error('broken')) }
    assert.is(await distributeEvents(platform, [broken]).catch((error: Error) => error.message), 'broken')
    const channel = recorder()
    await distributeEvents(platform, [channel])
    assert.is(channel.seen.length, 1)
  })

  it('refuses changes to events, and removal before their distribution', async ({ platform, market }) => {
    const { userId } = await market.addCreator(undefined, false)
    await platform.database.transaction((tx) =>
      publishEvents(platform, tx, [event(userId, platform.ids.next())]),
    )
    const run = (statement: string) =>
      platform.database
        .transaction((tx) => sql.raw(statement).execute(tx))
        .then(
          () => 'done',
          () => 'refused',
        )
    assert.is(await run("update outbox_events set data = '{}'"), 'refused')
    assert.is(await run('update outbox_events set sequence = 2, distributed_at = 1'), 'refused')
    assert.is(await run('delete from outbox_events'), 'refused')
    assert.is(await run('update outbox_events set distributed_at = 1'), 'done')
    assert.is(await run('update outbox_events set distributed_at = null'), 'refused')
    assert.is(await run('delete from outbox_events'), 'done')
  })

  it('removes distributed events after their retention', async ({ platform, market, clock }) => {
    const { userId } = await market.addCreator(undefined, false)
    const publish = () =>
      platform.database.transaction((tx) => publishEvents(platform, tx, [event(userId, platform.ids.next())]))
    await publish()
    await distributeEvents(platform, [])
    const [pending] = await publish()
    clock.pass(EVENT_RETENTION_MS + 1)
    const [fresh] = await publish()
    await distributeEvents(platform, [])
    await removeOldEvents(platform)
    assert.equal(pluck(await allEvents(platform), 'id'), [fresh])
    assert.not.equal(pending, fresh)
  })

  it('notifies the merchant of an application, the creator of the decision', async ({ platform, market }) => {
    const shop = await market.addShop()
    const creator = await market.addCreator('Sana', false)
    const offer = await addLiveOffer(platform, shop.actor)
    const { id } = await applyToOffer(platform, creator.userId, offer.id, {
      message: 'Hello',
      promotion_url: null,
    })
    const answer = { decision: 'approve', reason: 'Welcome' } as const
    const decided = await decideOnApplication(platform, shop.merchantId, id, answer)
    await decideOnApplication(platform, shop.merchantId, id, answer)
    const [created] = await dataOf(platform, shop.merchantId, 'application.created')
    assert.is(created?.status, 'pending')
    assert.equal(created?.creator, { id: creator.userId, display_name: 'Sana' })
    const decisions = await dataOf(platform, creator.userId, 'application.decided')
    assert.is(decisions.length, 1, 'a repeated decision is no event')
    assert.is(decisions[0]?.status, 'approved')
    const link = decisions[0]?.affiliate_link as { slug: string } | undefined
    assert.is(link?.slug, decided.link?.slug)
    await market.drainUntilIdle()
    assert.equal(await mailsOf(platform, shop.merchantId, 'application.created'), [
      { offer: offer.title, creator: 'Sana' },
    ])
    const url = `http://127.0.0.1:3000/go/${decided.link?.slug}`
    assert.equal(await mailsOf(platform, creator.userId, 'application.decided'), [
      { offer: offer.title, decision: 'approved', link: url, reason: 'Welcome' },
    ])
  })

  it('notifies of money: cycle closed and charged, balance released, payout paid and failed', async (context) => {
    const { platform, market, clock } = context
    const shop = await market.addShop()
    const creator = await market.addCreator()
    await createEndpoint(platform, creator, {
      url: 'http://127.0.0.1:8009/',
      events: ['balance.released', 'sale.accepted'],
      description: '',
    })
    const link = await market.addLink(shop, creator)
    await market.earn(shop, link, 2_000_000)
    await market.order(shop, link, 1_000_000)
    await market.drainUntilIdle()
    for (const userId of [shop.merchantId, creator.userId]) {
      const [first, ...more] = await mailsOf(platform, userId, 'sale.accepted')
      assert.equal([first?.net_amount, more], ['20000.00', []], 'the first sale only')
    }
    const [invoice, ...others] = await mailsOf(platform, shop.merchantId, 'billing_cycle.closed')
    assert.equal([invoice?.amount_due, others], ['2750.00', []])
    assert.match(String(invoice?.payment_url), /^https?:/)
    const [closed] = await dataOf(platform, shop.merchantId, 'billing_cycle.closed')
    const [charged] = await dataOf(platform, shop.merchantId, 'billing_cycle.charged')
    assert.equal([closed?.state, closed?.amount_due], ['closed', '2750.00'])
    assert.equal([charged?.state, charged?.id], ['charged', closed?.id])
    assert.equal(await dataOf(platform, creator.userId, 'balance.released'), [
      { billing_cycle_id: closed?.id, amount: '2500.00', currency: 'PKR' },
    ])
    assert.equal(await dataOf(platform, shop.merchantId, 'sale.accepted'), [], 'the merchant has no endpoint')
    const [sale] = await dataOf(platform, creator.userId, 'sale.accepted')
    assert.is(sale?.affiliate_link_slug, link.slug)
    assert.is(sale?.platform_fee, undefined)
    for (const word of ['failed', 'confirmed'] as const) {
      await market.payOut(word)
      clock.pass(DAY)
    }
    const [failed] = await dataOf(platform, creator.userId, 'payout.failed')
    const [paid] = await dataOf(platform, creator.userId, 'payout.paid')
    assert.equal([failed?.state, failed?.failure_reason], ['failed', 'returned by the bank'])
    assert.equal([paid?.state, paid?.amount], ['paid', '2500.00'])
    const failure = { amount: '2500.00', reason: 'returned by the bank' }
    assert.equal(await mailsOf(platform, creator.userId, 'payout.failed'), [failure])
    assert.equal(await mailsOf(platform, creator.userId, 'payout.paid'), [{ amount: '2500.00' }])
  })

  it('notifies once of an overdue cycle', async ({ platform, market, clock }) => {
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
    const [mail, ...more] = await mailsOf(platform, shop.merchantId, 'billing_cycle.overdue')
    assert.equal([mail?.amount_due, more], ['2750.00', []])
    const overdue = await dataOf(platform, shop.merchantId, 'billing_cycle.overdue')
    assert.equal(pluck(overdue, 'state'), ['closed'])
  })

  it('notifies of each payout destination, without the IBAN', async ({ platform, market, clock }) => {
    const creator = await market.addCreator()
    await giveDestination(platform, creator.userId, 'PK24SCBL0000001171495101')
    const [first, second] = await dataOf(platform, creator.userId, 'payout_destination.changed')
    assert.ok(first?.payout_destination)
    const upcoming = second?.upcoming_payout_destination as { iban_last4: string } | undefined
    assert.is(upcoming?.iban_last4, '5101')
    assert.not.match(JSON.stringify([first, second]), 'SCBL')
    await market.drainUntilIdle()
    const mail = (await mailsOf(platform, creator.userId, 'payout_destination_changed')).at(-1)
    assert.equal([mail?.iban_last4, mail?.effective_at], ['5101', clock.now() + DAY])
  })

  it.run()
}
