import * as assert from 'uvu/assert'
import { OPERATOR } from '../../../flags/audit.service.ts'
import { notifyUntilIdle } from '../../../jobs/worker.ts'
import type { Actor } from '../../../platform/api/procedure.ts'
import { updateRows } from '../../../platform/database/protected-rows.ts'
import { createIds } from '../../../platform/ids.ts'
import type { Platform } from '../../../platform/platform.ts'
import { marketSuites } from '../../../test/testkit/market-suites.ts'
import type { Marketplace } from '../../../test/testkit/marketplace.ts'
import { outcomeOf } from '../../../test/testkit/people.ts'
import { assertMapped, pluck, pluckAll } from '../../../test/testkit/pluck.ts'
import { auditOf, rowOf, rowsOf } from '../../../test/testkit/rows.ts'
import { onStatement } from '../../../test/testkit/statements.ts'
import { DAY, HOUR, type ManualClock, MINUTE } from '../../../test/testkit/testbed.ts'
import { openWebhookReceiver, type WebhookReceiver } from '../../../test/testkit/webhook-receiver.ts'
import { reinstateUser, suspendUser } from '../../../users/users.service.ts'
import { distributeEvents, publishEvents, removeOldEvents } from '../../outbox.service.ts'
import { webhookDeliverer } from './deliver.service.ts'
import {
  listDeliveries,
  removeOldDeliveries,
  replayEvents,
  retryDelivery,
  sendTestEvent,
  webhookChannel,
} from './deliveries.service.ts'
import { RETRY_DELAYS_MS } from './delivery-retry.rule.ts'
import { createEndpoint, getEndpoint, removeEndpoint, updateEndpoint } from './endpoints.service.ts'
import { attemptsOf } from './webhooks-wire.ts'

for (const { it } of marketSuites('webhook deliveries', { idsOf: createIds })) {
  let market: Marketplace
  let platform: Platform
  let clock: ManualClock
  let creator: Actor
  const receivers: WebhookReceiver[] = []
  it.before.each(async (world) => {
    market = world.market
    platform = world.platform
    clock = world.clock
    creator = await market.addCreator(undefined, false)
  })
  it.after.each(() => {
    for (const receiver of receivers.splice(0)) receiver.close()
  })

  async function open(): Promise<WebhookReceiver> {
    const receiver = await openWebhookReceiver()
    receivers.push(receiver)
    return receiver
  }
  /** An endpoint of the creator at a receiver. */
  async function addEndpoint({ url }: WebhookReceiver, owner = creator): Promise<string> {
    const events =
      owner.role === 'creator' ? ['payout.paid', 'sale.accepted'] : ['sale.accepted', 'sale.rejected']
    return (await createEndpoint(platform, owner, { url, events, description: '' })).id
  }
  /** One event of the creator about each of these subjects, or a new one, in one transaction each. */
  async function publish(...subjects: string[]): Promise<string[]> {
    const ids: string[] = []
    for (const subjectId of subjects.length > 0 ? subjects : [platform.ids.next()]) {
      const event = { accountId: creator.userId, subjectId, data: { number: ids.length } }
      const published = platform.database.transaction((tx) =>
        publishEvents(platform, tx, [{ ...event, type: 'payout.paid' }]),
      )
      ids.push(...(await published))
    }
    return ids
  }
  const deliveries = async (endpointId: string) =>
    (await listDeliveries(platform, creator.userId, endpointId, { limit: 100 })).items
  const deliver = () => notifyUntilIdle(platform)

  it('bring a sale to its merchant and its creator, each as their API shows it', async () => {
    const shop = await market.addShop()
    const [theirs, creators, others] = [await open(), await open(), await open()]
    await addEndpoint(theirs, shop.actor)
    await addEndpoint(creators)
    await addEndpoint(others, await market.addCreator())
    const link = await market.addLink(shop, creator)
    await market.order(shop, link, 100_000)
    await market.drainUntilIdle()
    const [merchant] = theirs.received
    const [own] = creators.received
    assert.is(merchant?.body.type, 'sale.accepted')
    assert.is(merchant?.body.data.platform_fee, '12.50')
    assert.is(merchant?.body.data.affiliate_link_slug, link.slug)
    assert.is(own?.body.data.id, merchant?.body.data.id)
    assert.is(own?.body.data.platform_fee, undefined)
    assert.is.not(own?.id, merchant?.id)
    assert.not.match(`${merchant?.text}${own?.text}`, '@')
    await market.deliver(shop, await market.order(shop, link, 100_000, { test: true }))
    await market.drainUntilIdle()
    assertMapped(theirs.received, ({ body }) => body.type, ['sale.accepted', 'sale.rejected'])
    assert.equal([creators.received.length, others.received.length], [1, 0])
  })

  it('are tried again on schedule under the same id, then fail', async () => {
    const receiver = await open()
    receiver.answer = (response) => response.writeHead(500).end('broken')
    const endpointId = await addEndpoint(receiver)
    const [eventId] = await publish()
    await deliver()
    for (const [index, delay] of RETRY_DELAYS_MS.entries()) {
      const [item] = await deliveries(endpointId)
      assert.equal([item?.state, item?.attempts], ['pending', index + 1])
      assert.equal([item?.response_status, item?.response_body], [500, 'broken'])
      clock.pass(delay - 1)
      await deliver()
      assert.is(receiver.received.length, index + 1, 'too early')
      clock.pass(delay * 0.1 + 1)
      await deliver()
    }
    const all = RETRY_DELAYS_MS.length + 1
    const [item] = await deliveries(endpointId)
    assert.equal([item?.state, item?.attempts], ['failed', all])
    const log = item ? attemptsOf(item) : []
    assert.equal(pluckAll(log, 'status', 'error'), Array(all).fill([500, 'The endpoint answered 500.']))
    const times = log.map(({ at }) => at)
    assert.equal(
      times,
      times.toSorted((a, b) => a - b),
    )
    assert.ok(log.every(({ durationMs }) => durationMs >= 0 && durationMs < 15_000))
    receiver.answer = (response) => response.writeHead(200).end()
    await retryDelivery(platform, creator.userId, item?.id ?? '')
    await deliver()
    const [again] = await deliveries(endpointId)
    const kept = again ? attemptsOf(again) : []
    assert.equal([kept.length, kept.at(-1)?.status, kept.at(-1)?.error], [10, 200, null])
    assert.equal(new Set(receiver.received.map(({ id }) => id)), new Set([eventId]))
  })

  it('wait while their account is suspended', async () => {
    const receiver = await open()
    const other = await open()
    const endpointId = await addEndpoint(receiver)
    const shop = await market.addShop()
    const theirs = await addEndpoint(other, shop.actor)
    const [first] = await publish()
    await distributeEvents(platform, [webhookChannel])
    const change = { userId: creator.userId, actor: OPERATOR, reason: null }
    await suspendUser(platform, change)
    const [second] = await publish()
    await sendTestEvent(platform, shop.actor.userId, theirs)
    await deliver()
    assert.equal([receiver.received.length, other.received.length], [0, 1])
    const waiting = pluckAll(await deliveries(endpointId), 'state', 'attempts')
    assert.equal(waiting, Array(2).fill(['pending', 0]))
    clock.pass(6 * DAY)
    await deliver()
    await reinstateUser(platform, change)
    await deliver()
    assert.equal(new Set(receiver.received.map(({ id }) => id)), new Set([first, second]))
    assert.is((await getEndpoint(platform, creator.userId, endpointId)).disabled_at, null)
  })

  it('keep the order of each subject, as long as Retry-After asks, while other subjects go on', async () => {
    const receiver = await open()
    const [one, two] = [platform.ids.next(), platform.ids.next()]
    await addEndpoint(receiver)
    const [first, second, other] = await publish(one, one, two)
    receiver.answer = (response, { id }) =>
      (id === first ? response.writeHead(503, { 'retry-after': '60' }) : response.writeHead(204)).end()
    await deliver()
    assert.equal(pluck(receiver.received, 'id').sort(), [first, other].sort())
    clock.pass(MINUTE - 1)
    await deliver()
    assert.is(receiver.received.length, 2, 'too early')
    receiver.answer = (response) => response.writeHead(204).end()
    clock.pass(1)
    await deliver()
    assert.equal(pluck(receiver.received.slice(2), 'id'), [first, second])
  })

  it('go on when an address answers 410 that was replaced meanwhile', async () => {
    const former = await open()
    const present = await open()
    const endpointId = await addEndpoint(former)
    former.answer = async (response) => {
      await updateEndpoint(platform, creator, endpointId, { url: present.url })
      response.writeHead(410).end()
    }
    await publish()
    await deliver()
    const { disabled_at, failing_since } = await getEndpoint(platform, creator.userId, endpointId)
    assert.equal([former.received.length, disabled_at, failing_since], [1, null, null])
    await publish()
    await deliver()
    assert.is(present.received.length, 1)
  })

  it('end with 410: the endpoint is disabled, on record, and its owner is notified', async () => {
    const receiver = await open()
    receiver.answer = (response) => response.writeHead(410).end()
    const endpointId = await addEndpoint(receiver)
    const subject = platform.ids.next()
    await publish(subject, subject)
    await deliver()
    assert.is(receiver.received.length, 1)
    const endpoint = await getEndpoint(platform, creator.userId, endpointId)
    assert.is(endpoint.disabled_reason, 'gone')
    assert.equal(pluck(await deliveries(endpointId), 'state'), ['failed', 'failed'])
    const last = (await auditOf(platform, { subject_id: endpointId })).at(-1)
    assert.equal([last?.actor, last?.action], ['service', 'webhook_endpoint.disable'])
    const notice = await rowOf(platform, 'outbox_events', { type: 'webhook_endpoint.disabled' })
    assert.is(notice.account_id, creator.userId)
    assert.is(JSON.parse(notice.data).disabled_reason, 'gone')
    await publish()
    await deliver()
    assert.is(receiver.received.length, 1, 'a disabled endpoint gets nothing')
    assert.is(await outcomeOf(sendTestEvent(platform, creator.userId, endpointId)), 'conflict')
    await updateEndpoint(platform, creator, endpointId, { enabled: true })
    receiver.answer = (response) => response.writeHead(204).end()
    await publish()
    await deliver()
    assert.is(receiver.received.length, 2)
  })

  it('disable an endpoint that has failed for five days, and not one that succeeded meanwhile', async () => {
    const [dead, shaky] = [await open(), await open()]
    dead.answer = (response) => response.writeHead(500).end()
    const [deadId, shakyId] = [await addEndpoint(dead), await addEndpoint(shaky)]
    for (let day = 0; day < 6; day += 1) {
      shaky.answer = (response) => response.writeHead(day === 3 ? 200 : 500).end()
      await publish()
      await deliver()
      clock.pass(DAY + HOUR)
    }
    assert.is((await getEndpoint(platform, creator.userId, deadId)).disabled_reason, 'failing')
    const kept = await getEndpoint(platform, creator.userId, shakyId)
    assert.is(kept.disabled_reason, null)
    assert.is.not(kept.failing_since, null)
  })

  it('are made again after their worker died, and only once when several workers run', async () => {
    const receiver = await open()
    await addEndpoint(receiver)
    const hung = Promise.withResolvers<void>()
    receiver.answer = () => hung.resolve()
    const [eventId] = await publish()
    await distributeEvents(platform, [webhookChannel])
    const dying = webhookDeliverer(platform)
    assert.is(await dying.start(), 1)
    await hung.promise
    receiver.answer = (response) => response.writeHead(204).end()
    await deliver()
    assert.is(receiver.received.length, 1, 'the lease holds')
    clock.pass(61_000)
    await Promise.all([1, 2, 3].map(() => notifyUntilIdle(platform)))
    assert.equal(pluck(receiver.received, 'id'), [eventId, eventId])
    receiver.close()
    await dying.stop()
    const row = await rowOf(platform, 'webhook_deliveries')
    assert.equal([row.state, row.attempts], ['delivered', 2], 'a stale worker changes nothing')
  })

  it('that wait behind slow ones are not sent once their endpoint is disabled', async () => {
    const receiver = await open()
    const endpointId = await addEndpoint(receiver)
    const held: (() => void)[] = []
    const begun = Promise.withResolvers<void>()
    receiver.answer = (response) => {
      held.push(() => response.writeHead(204).end())
      if (held.length === 20) begun.resolve()
    }
    await publish(...Array.from({ length: 30 }, () => platform.ids.next()))
    await distributeEvents(platform, [webhookChannel])
    const deliverer = webhookDeliverer(platform)
    await deliverer.start()
    await begun.promise
    await updateEndpoint(platform, creator, endpointId, { enabled: false })
    clock.pass(5001)
    for (const answer of held) answer()
    await deliverer.idle()
    await deliverer.stop()
    await deliver()
    assert.is(receiver.received.length, 20)
    assert.equal(new Set(pluck(await deliveries(endpointId), 'state')), new Set(['failed']))
  })

  it('are due again immediately when they could not be loaded after their claim', async () => {
    const receiver = await open()
    const endpointId = await addEndpoint(receiver)
    await publish()
    await distributeEvents(platform, [webhookChannel])
    const { database } = platform
    const { reader } = database
    const fail = onStatement(({ node }) => {
      if (JSON.stringify(node).includes('webhook_secrets')) throw new Error('away')
    })
    const readBy = (value: typeof reader) =>
      Object.defineProperty(database, 'reader', { value, configurable: true })
    readBy(reader.withPlugin(fail))
    const deliverer = webhookDeliverer(platform)
    const failure = await deliverer.start().catch((error: Error) => error.message)
    readBy(reader)
    assert.is(failure, 'away')
    await deliverer.start()
    await deliverer.idle()
    await deliverer.stop()
    assert.is(receiver.received.length, 1)
    const [delivery] = await deliveries(endpointId)
    assert.equal([delivery?.state, delivery?.attempts], ['delivered', 1])
  })

  it('leave their outcome out when the endpoint was removed meanwhile', async () => {
    const receiver = await open()
    const endpointId = await addEndpoint(receiver)
    let removal: Promise<void> = Promise.resolve()
    receiver.answer = (response) => {
      removal = removeEndpoint(platform, creator, endpointId)
      void removal.then(() => response.writeHead(204).end())
    }
    await publish()
    await deliver()
    await removal
    const row = await rowOf(platform, 'webhook_deliveries')
    assert.equal([row.state, row.error], ['failed', 'The endpoint was removed.'])
    assert.equal(await rowsOf(platform, 'webhook_secrets'), [])
  })

  it('fail when they were queued while their endpoint was being disabled', async () => {
    const receiver = await open()
    const endpointId = await addEndpoint(receiver)
    await publish()
    await distributeEvents(platform, [webhookChannel])
    const disabled = { disabled_at: platform.clock.now(), disabled_reason: 'owner' } as const
    await platform.database.transaction((tx) =>
      updateRows(tx, 'webhook_endpoints', { id: endpointId }, disabled),
    )
    await deliver()
    assert.equal(pluckAll(await deliveries(endpointId), 'state', 'error'), [
      ['failed', 'The endpoint was disabled.'],
    ])
    assert.is((await getEndpoint(platform, creator.userId, endpointId)).failing_since, null)
    assert.is(receiver.received.length, 0)
  })

  it('are repeated on request and in a replay, with their ids', async () => {
    const receiver = await open()
    const early = await publish()
    await deliver()
    clock.pass(HOUR)
    const since = clock.now()
    const missed = await publish()
    await deliver()
    const endpointId = await addEndpoint(receiver)
    const sent = await publish()
    await deliver()
    const [delivery] = await deliveries(endpointId)
    const again = await retryDelivery(platform, creator.userId, delivery?.id ?? '')
    assert.equal([again.state, again.attempts], ['pending', 0])
    const stranger = await market.addCreator()
    assert.is(await outcomeOf(retryDelivery(platform, stranger.userId, delivery?.id ?? '')), 'not_found')
    await deliver()
    assert.equal(pluck(receiver.received, 'id'), [...sent, ...sent])
    assert.equal(await replayEvents(platform, endpointId, { since, actor: OPERATOR }), { events: 2 })
    assert.equal(await replayEvents(platform, endpointId, { since, actor: OPERATOR }), { events: 0 })
    await deliver()
    assert.equal(pluck(receiver.received.slice(2), 'id').sort(), [...missed, ...sent].sort())
    assert.not.ok(receiver.received.some(({ id }) => id === early[0]))
    const last = (await auditOf(platform, { subject_id: endpointId })).at(-1)
    assert.is(last?.action, 'webhook_endpoint.replay')
  })

  it('are queued once by replays that run together', async () => {
    const missed = await publish(...Array.from({ length: 20 }, () => platform.ids.next()))
    await deliver()
    // The first round opens the connections.
    for (let round = 0; round < 4; round += 1) {
      const endpointId = await addEndpoint(await open())
      const replay = () => replayEvents(platform, endpointId, { since: 0, actor: OPERATOR })
      const replays = await Promise.all([replay(), replay(), replay()])
      const replayed = replays.reduce((sum, { events }) => sum + events, 0)
      assert.is(replayed, missed.length)
      assert.equal(pluck(await deliveries(endpointId), 'event_id').sort(), missed.toSorted())
    }
  })

  it('are forgotten after 30 days', async () => {
    const endpointId = await addEndpoint(await open())
    await publish()
    await deliver()
    clock.pass(30 * DAY + 1)
    await publish()
    await deliver()
    await removeOldDeliveries(platform)
    await removeOldEvents(platform)
    assert.is((await deliveries(endpointId)).length, 1)
  })

  it.run()
}
