import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { applyToOffer, decideOnApplication } from '../applications/applications.service.ts'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { createIds } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { addLiveOffer } from '../test/testkit/listings.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { giveDestination, type Marketplace } from '../test/testkit/marketplace.ts'
import { mailFactsOf } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { watchMarketplace } from '../watches/watches.service.ts'
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

const allEvents = (platform: Platform): Promise<OutboxEventRow[]> => rowsOf(platform, 'outbox_events')

/** The data of an account's events of one type, oldest first. */
async function dataOf(
  platform: Platform,
  account_id: string,
  type: NewEvent['type'],
): Promise<Record<string, unknown>[]> {
  return (await rowsOf(platform, 'outbox_events', { account_id, type })).map(({ data }) => JSON.parse(data))
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
  let market: Marketplace
  let platform: Platform
  let userId: string
  it.before.each(async (world) => {
    market = world.market
    platform = world.platform
    userId = (await market.addCreator(undefined, false)).userId
  })

  /** An event of the creator. */
  const event = (subjectId = platform.ids.next(), accountId = userId): NewEvent => ({
    ...{ type: 'payout.paid', accountId, subjectId, data: { subjectId } },
  })
  /** Publishes these events in one transaction, or a new one of the creator. */
  const publish = (...events: NewEvent[]) =>
    platform.database.transaction((tx) => publishEvents(platform, tx, events.length > 0 ? events : [event()]))

  it('numbers the events of a subject in the order of their transactions', async () => {
    const other = await market.addCreator(undefined, false)
    const one = platform.ids.next()
    await publish(event(one), event(), event(one))
    await publish(event(one), event(one, other.userId))
    const places = (await allEvents(platform)).map(
      (row) => `${row.account_id === userId} ${row.subject_id === one} ${row.sequence}`,
    )
    assert.equal(places.sort(), ['false true 1', 'true false 1', 'true true 1', 'true true 2', 'true true 3'])
  })

  it('gives concurrent transactions about one subject different places', async () => {
    const subject = platform.ids.next()
    const publishing = Array.from({ length: 8 }, () => publish(event(subject)))
    await Promise.all(publishing).catch(() => undefined)
    const sequences = (await allEvents(platform)).map(({ sequence }) => sequence).sort((a, b) => a - b)
    const places = sequences.map((_, index) => index + 1)
    assert.equal(sequences, places)
    assert.ok(sequences.length >= 1)
  })

  it('gives each event to every channel once, also with several workers and after a channel failed', async () => {
    const ids = await publish(...Array.from({ length: 30 }, () => event()))
    const broken: Channel = { enqueue: () => Promise.reject(new Error('broken')) }
    assert.is(await distributeEvents(platform, [broken]).catch((error: Error) => error.message), 'broken')
    const [mail, hooks] = [recorder(), recorder()]
    await Promise.all([1, 2, 3].map(() => distributeEvents(platform, [mail, hooks])))
    assert.equal(mail.seen.toSorted(), ids.toSorted())
    assert.equal(hooks.seen.toSorted(), ids.toSorted())
    assert.is(await distributeEvents(platform, [mail, hooks]), 0)
  })

  it('refuses changes to events, and removal before their distribution', async () => {
    await publish()
    for (const [statement, isTaken] of [
      ["update outbox_events set data = '{}'", false],
      ['update outbox_events set sequence = 2, distributed_at = 1', false],
      ['delete from outbox_events', false],
      ['update outbox_events set distributed_at = 1', true],
      ['update outbox_events set distributed_at = null', false],
      ['delete from outbox_events', true],
    ] as const) {
      const running = platform.database.transaction((tx) => sql.raw(statement).execute(tx))
      assert.is((await running.catch(() => null)) !== null, isTaken, statement)
    }
  })

  it('removes distributed events after their retention', async () => {
    await publish()
    await distributeEvents(platform, [])
    await publish()
    market.clock.pass(EVENT_RETENTION_MS + 1)
    const fresh = await publish()
    await distributeEvents(platform, [])
    await removeOldEvents(platform)
    assert.equal(pluck(await allEvents(platform), 'id'), fresh)
  })

  it('notifies the merchant of an application, the creator of the decision', async () => {
    const shop = await market.addShop()
    const creator = await market.addCreator('Sana', false)
    const offer = await addLiveOffer(platform, shop.actor)
    const wish = { message: 'Hello', promotion_url: null }
    const { id } = await applyToOffer(platform, creator.userId, offer.id, wish)
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
    assert.equal(await mailFactsOf(platform, shop.merchantId, 'application.created'), [
      { offer: offer.title, creator: 'Sana' },
    ])
    const url = `http://127.0.0.1:3000/go/${decided.link?.slug}`
    assert.equal(await mailFactsOf(platform, creator.userId, 'application.decided'), [
      { offer: offer.title, decision: 'approved', link: url, reason: 'Welcome' },
    ])
  })

  it('notifies of money: cycle closed and charged, balance released, payout paid and failed', async () => {
    const shop = await market.addShop()
    const creator = await market.addCreator()
    const events = ['balance.released' as const, 'sale.accepted' as const]
    await createEndpoint(platform, creator, { url: 'http://127.0.0.1:8009/', events, description: '' })
    const link = await market.addLink(shop, creator)
    await market.earn(shop, link, 2_000_000)
    await market.order(shop, link, 1_000_000)
    await market.drainUntilIdle()
    for (const userId of [shop.merchantId, creator.userId]) {
      const [first, ...more] = await mailFactsOf(platform, userId, 'sale.accepted')
      assert.equal([first?.net_amount, more], ['20000.00', []], 'the first sale only')
    }
    const [invoice, ...others] = await mailFactsOf(platform, shop.merchantId, 'billing_cycle.closed')
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
      market.clock.pass(DAY)
    }
    const [failed] = await dataOf(platform, creator.userId, 'payout.failed')
    const [paid] = await dataOf(platform, creator.userId, 'payout.paid')
    assert.equal([failed?.state, failed?.failure_reason], ['failed', 'returned by the bank'])
    assert.equal([paid?.state, paid?.amount], ['paid', '2500.00'])
    const failure = { amount: '2500.00', reason: 'returned by the bank' }
    assert.equal(await mailFactsOf(platform, creator.userId, 'payout.failed'), [failure])
    assert.equal(await mailFactsOf(platform, creator.userId, 'payout.paid'), [{ amount: '2500.00' }])
  })

  it('notifies once of an overdue cycle', async () => {
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    await market.order(shop, link, 2_000_000)
    await market.drainUntilIdle()
    market.clock.pass(40 * DAY)
    await closeDueCycles(platform)
    market.clock.pass(60 * DAY)
    await watchMarketplace(platform)
    await watchMarketplace(platform)
    await market.drainUntilIdle()
    const [mail, ...more] = await mailFactsOf(platform, shop.merchantId, 'billing_cycle.overdue')
    assert.equal([mail?.amount_due, more], ['2750.00', []])
    const overdue = await dataOf(platform, shop.merchantId, 'billing_cycle.overdue')
    assert.equal(pluck(overdue, 'state'), ['closed'])
  })

  it('notifies of each payout destination, without the IBAN', async () => {
    const creator = await market.addCreator()
    await giveDestination(platform, creator.userId, 'PK24SCBL0000001171495101')
    const [first, second] = await dataOf(platform, creator.userId, 'payout_destination.changed')
    assert.ok(first?.payout_destination)
    const upcoming = second?.upcoming_payout_destination as { iban_last4: string } | undefined
    assert.is(upcoming?.iban_last4, '5101')
    assert.not.match(JSON.stringify([first, second]), 'SCBL')
    await market.drainUntilIdle()
    const mail = (await mailFactsOf(platform, creator.userId, 'payout_destination_changed')).at(-1)
    assert.equal([mail?.iban_last4, mail?.effective_at], ['5101', market.clock.now() + DAY])
  })

  it.run()
}
