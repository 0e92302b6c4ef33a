import * as assert from 'uvu/assert'
import { OPERATOR } from '../../../flags/audit.service.ts'
import { notifyUntilIdle } from '../../../jobs/worker.ts'
import type { Actor } from '../../../platform/api/procedure.ts'
import { updateRows } from '../../../platform/database/protected-rows.ts'
import { createIds } from '../../../platform/ids.ts'
import type { Platform } from '../../../platform/platform.ts'
import { marketSuites } from '../../../test/testkit/market-suites.ts'
import { outcomeOf } from '../../../test/testkit/people.ts'
import { assertMapped, pluck, pluckAll } from '../../../test/testkit/pluck.ts'
import { columnsOf, rowOf } from '../../../test/testkit/rows.ts'
import { onStatement } from '../../../test/testkit/statements.ts'
import { DAY, HOUR, MINUTE } from '../../../test/testkit/testbed.ts'
import { openWebhookReceiver, type WebhookReceiver } from '../../../test/testkit/webhook-receiver.ts'
import { reinstateUser, suspendUser } from '../../../users/users.service.ts'
import { distributeEvents, type NewEvent, publishEvents, removeOldEvents } from '../../outbox.service.ts'
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

interface Context {
  creator: Actor
  receivers: WebhookReceiver[]
  open(): Promise<WebhookReceiver>
  /** An endpoint of the creator at a receiver. */
  addEndpoint(receiver: WebhookReceiver, owner?: Actor): Promise<string>
  /** One event of the creator about each of these subjects, in one transaction each. */
  publish(...subjects: string[]): Promise<string[]>
  deliveries(endpointId: string): ReturnType<typeof listDeliveries>
}

function auditOf(platform: Platform, subjectId: string) {
  return columnsOf(platform, 'audit_entries', ['actor', 'action'], { subject_id: subjectId })
}

for (const { it } of marketSuites<Context>('webhook deliveries', { idsOf: createIds })) {
  it.before.each(async (context) => {
    const { market, platform } = context
    context.receivers = []
    context.creator = await market.addCreator(undefined, false)
    context.open = async () => {
      const receiver = await openWebhookReceiver()
      context.receivers.push(receiver)
      return receiver
    }
    context.addEndpoint = async ({ url }, owner = context.creator) => {
      const events =
        owner.role === 'creator' ? ['payout.paid', 'sale.accepted'] : ['sale.accepted', 'sale.rejected']
      return (await createEndpoint(platform, owner, { url, events, description: '' })).id
    }
    context.publish = async (...subjects) => {
      const ids: string[] = []
      for (const subjectId of subjects) {
        const event: NewEvent = {
          type: 'payout.paid',
          accountId: context.creator.userId,
          subjectId,
          data: { number: ids.length },
        }
        ids.push(...(await platform.database.transaction((tx) => publishEvents(platform, tx, [event]))))
      }
      return ids
    }
    context.deliveries = (endpointId) =>
      listDeliveries(platform, context.creator.userId, endpointId, { limit: 100 })
  })
  it.after.each(({ receivers }) => {
    for (const receiver of receivers ?? []) receiver.close()
  })

  it('bring a sale to its merchant and its creator, each as their API shows it', async (context) => {
    const { market, open, addEndpoint, creator } = context
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

  it('are tried again on schedule under the same id, then fail', async (context) => {
    const { platform, clock, creator, open, addEndpoint, publish, deliveries } = context
    const receiver = await open()
    receiver.answer = (response) => response.writeHead(500).end('broken')
    const endpointId = await addEndpoint(receiver)
    const [eventId] = await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    for (const [index, delay] of RETRY_DELAYS_MS.entries()) {
      const { items } = await deliveries(endpointId)
      assert.equal([items[0]?.state, items[0]?.attempts], ['pending', index + 1])
      assert.equal([items[0]?.response_status, items[0]?.response_body], [500, 'broken'])
      clock.pass(delay - 1)
      await notifyUntilIdle(platform)
      assert.is(receiver.received.length, index + 1, 'too early')
      clock.pass(delay * 0.1 + 1)
      await notifyUntilIdle(platform)
    }
    const { items } = await deliveries(endpointId)
    assert.equal([items[0]?.state, items[0]?.attempts], ['failed', RETRY_DELAYS_MS.length + 1])
    const log = items[0] ? attemptsOf(items[0]) : []
    assert.equal(
      log.map(({ status, error }) => [status, error]),
      Array.from({ length: RETRY_DELAYS_MS.length + 1 }, () => [500, 'The endpoint answered 500.']),
    )
    assert.equal(
      pluck(log, 'at'),
      log.map(({ at }) => at).sort((a, b) => a - b),
    )
    assert.ok(log.every(({ durationMs }) => durationMs >= 0 && durationMs < 15_000))
    receiver.answer = (response) => response.writeHead(200).end()
    await retryDelivery(platform, creator.userId, items[0]?.id ?? '')
    await notifyUntilIdle(platform)
    const [again] = (await deliveries(endpointId)).items
    const kept = again ? attemptsOf(again) : []
    assert.equal([kept.length, kept.at(-1)?.status, kept.at(-1)?.error], [10, 200, null])
    assert.equal(new Set(receiver.received.map(({ id }) => id)), new Set([eventId]))
  })

  it('wait while their account is suspended', async (context) => {
    const { platform, clock, creator, open, addEndpoint, publish, deliveries } = context
    const receiver = await open()
    const other = await open()
    const endpointId = await addEndpoint(receiver)
    const shop = await context.market.addShop()
    const theirs = await addEndpoint(other, shop.actor)
    const [first] = await publish(platform.ids.next())
    await distributeEvents(platform, [webhookChannel])
    const change = { userId: creator.userId, actor: OPERATOR, reason: null }
    await suspendUser(platform, change)
    const [second] = await publish(platform.ids.next())
    await sendTestEvent(platform, shop.actor.userId, theirs)
    await notifyUntilIdle(platform)
    assert.equal([receiver.received.length, other.received.length], [0, 1])
    assert.equal(pluckAll((await deliveries(endpointId)).items, 'state', 'attempts'), [
      ['pending', 0],
      ['pending', 0],
    ])
    clock.pass(6 * DAY)
    await notifyUntilIdle(platform)
    await reinstateUser(platform, change)
    await notifyUntilIdle(platform)
    assert.equal(new Set(receiver.received.map(({ id }) => id)), new Set([first, second]))
    assert.is((await getEndpoint(platform, creator.userId, endpointId)).disabled_at, null)
  })

  it('wait as long as Retry-After asks', async ({ platform, clock, open, addEndpoint, publish }) => {
    const receiver = await open()
    receiver.answer = (response) => response.writeHead(429, { 'retry-after': '60' }).end()
    await addEndpoint(receiver)
    await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    clock.pass(59_999)
    await notifyUntilIdle(platform)
    assert.is(receiver.received.length, 1)
    receiver.answer = (response) => response.writeHead(200).end()
    clock.pass(1)
    await notifyUntilIdle(platform)
    assert.is(receiver.received.length, 2)
  })

  it('keep the order of each subject, while other subjects go on', async (context) => {
    const { platform, clock, open, addEndpoint, publish } = context
    const receiver = await open()
    const [one, two] = [platform.ids.next(), platform.ids.next()]
    await addEndpoint(receiver)
    const [first, second, other] = await publish(one, one, two)
    receiver.answer = (response, { id }) => response.writeHead(id === first ? 503 : 204).end()
    await notifyUntilIdle(platform)
    assert.equal(receiver.received.map(({ id }) => id).toSorted(), [first, other].toSorted())
    clock.pass(MINUTE)
    receiver.answer = (response) => response.writeHead(204).end()
    await notifyUntilIdle(platform)
    assert.equal(pluck(receiver.received.slice(2), 'id'), [first, second])
  })

  it('go on when an address answers 410 that was replaced meanwhile', async (context) => {
    const { platform, creator, open, addEndpoint, publish } = context
    const former = await open()
    const present = await open()
    const endpointId = await addEndpoint(former)
    former.answer = async (response) => {
      await updateEndpoint(platform, creator, endpointId, { url: present.url })
      response.writeHead(410).end()
    }
    await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    const { disabled_at, failing_since } = await getEndpoint(platform, creator.userId, endpointId)
    assert.equal([former.received.length, disabled_at, failing_since], [1, null, null])
    await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    assert.is(present.received.length, 1)
  })

  it('end with 410: the endpoint is disabled, on record, and its owner is notified', async (context) => {
    const { platform, creator, open, addEndpoint, publish, deliveries } = context
    const receiver = await open()
    receiver.answer = (response) => response.writeHead(410).end()
    const endpointId = await addEndpoint(receiver)
    const subject = platform.ids.next()
    await publish(subject, subject)
    await notifyUntilIdle(platform)
    assert.is(receiver.received.length, 1)
    const endpoint = await getEndpoint(platform, creator.userId, endpointId)
    assert.is(endpoint.disabled_reason, 'gone')
    assert.equal(pluck((await deliveries(endpointId)).items, 'state'), ['failed', 'failed'])
    assert.equal((await auditOf(platform, endpointId)).at(-1), {
      actor: 'service',
      action: 'webhook_endpoint.disable',
    })
    const notice = await rowOf(platform, 'outbox_events', { type: 'webhook_endpoint.disabled' })
    assert.is(notice.account_id, creator.userId)
    assert.is(JSON.parse(notice.data).disabled_reason, 'gone')
    await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    assert.is(receiver.received.length, 1, 'a disabled endpoint gets nothing')
    assert.is(await outcomeOf(sendTestEvent(platform, creator.userId, endpointId)), 'conflict')
    await updateEndpoint(platform, creator, endpointId, { enabled: true })
    receiver.answer = (response) => response.writeHead(204).end()
    await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    assert.is(receiver.received.length, 2)
  })

  it('disable an endpoint that has failed for five days, and not one that succeeded meanwhile', async (context) => {
    const { platform, clock, creator, open, addEndpoint, publish } = context
    const [dead, shaky] = [await open(), await open()]
    dead.answer = (response) => response.writeHead(500).end()
    const [deadId, shakyId] = [await addEndpoint(dead), await addEndpoint(shaky)]
    for (let day = 0; day < 6; day += 1) {
      shaky.answer = (response) => response.writeHead(day === 3 ? 200 : 500).end()
      await publish(platform.ids.next())
      await notifyUntilIdle(platform)
      clock.pass(DAY + HOUR)
    }
    assert.is((await getEndpoint(platform, creator.userId, deadId)).disabled_reason, 'failing')
    const kept = await getEndpoint(platform, creator.userId, shakyId)
    assert.is(kept.disabled_reason, null)
    assert.is.not(kept.failing_since, null)
  })

  it('are made again after their worker died, and only once when several workers run', async (context) => {
    const { platform, clock, open, addEndpoint, publish } = context
    const receiver = await open()
    await addEndpoint(receiver)
    const hung = Promise.withResolvers<void>()
    receiver.answer = () => hung.resolve()
    const [eventId] = await publish(platform.ids.next())
    await distributeEvents(platform, [webhookChannel])
    const dying = webhookDeliverer(platform)
    assert.is(await dying.start(), 1)
    await hung.promise
    receiver.answer = (response) => response.writeHead(204).end()
    await notifyUntilIdle(platform)
    assert.is(receiver.received.length, 1, 'the lease holds')
    clock.pass(61_000)
    await Promise.all([1, 2, 3].map(() => notifyUntilIdle(platform)))
    assert.equal(pluck(receiver.received, 'id'), [eventId, eventId])
    receiver.close()
    await dying.stop()
    const row = await rowOf(platform, 'webhook_deliveries')
    assert.equal([row.state, row.attempts], ['delivered', 2], 'a stale worker changes nothing')
  })

  it('that wait behind slow ones are not sent once their endpoint is disabled', async (context) => {
    const { platform, clock, creator, open, addEndpoint, publish, deliveries } = context
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
    await notifyUntilIdle(platform)
    assert.is(receiver.received.length, 20)
    const { items } = await deliveries(endpointId)
    assert.equal(new Set(items.map(({ state }) => state)), new Set(['failed']))
  })

  it('are due again immediately when they could not be loaded after their claim', async (context) => {
    const { platform, open, addEndpoint, publish, deliveries } = context
    const receiver = await open()
    const endpointId = await addEndpoint(receiver)
    await publish(platform.ids.next())
    await distributeEvents(platform, [webhookChannel])
    const { database } = platform
    const { reader } = database
    const broken = reader.withPlugin(
      onStatement(({ node }) => {
        if (JSON.stringify(node).includes('webhook_secrets')) throw new Error('away')
      }),
    )
    Object.defineProperty(database, 'reader', { value: broken, configurable: true })
    const deliverer = webhookDeliverer(platform)
    const failure = await deliverer.start().catch((error: Error) => error.message)
    Object.defineProperty(database, 'reader', { value: reader, configurable: true })
    assert.is(failure, 'away')
    await deliverer.start()
    await deliverer.idle()
    await deliverer.stop()
    assert.is(receiver.received.length, 1)
    const [delivery] = (await deliveries(endpointId)).items
    assert.equal([delivery?.state, delivery?.attempts], ['delivered', 1])
  })

  it('leave their outcome out when the endpoint was removed meanwhile', async (context) => {
    const { platform, creator, open, addEndpoint, publish } = context
    const receiver = await open()
    const endpointId = await addEndpoint(receiver)
    let removal: Promise<void> = Promise.resolve()
    receiver.answer = (response) => {
      removal = removeEndpoint(platform, creator, endpointId)
      void removal.then(() => response.writeHead(204).end())
    }
    await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    await removal
    const row = await rowOf(platform, 'webhook_deliveries')
    assert.equal([row.state, row.error], ['failed', 'The endpoint was removed.'])
    const secrets = await platform.database.reader.selectFrom('webhook_secrets').selectAll().execute()
    assert.equal(secrets, [])
  })

  it('fail when they were queued while their endpoint was being disabled', async (context) => {
    const { platform, creator, open, addEndpoint, publish, deliveries } = context
    const receiver = await open()
    const endpointId = await addEndpoint(receiver)
    await publish(platform.ids.next())
    await distributeEvents(platform, [webhookChannel])
    await platform.database.transaction((tx) =>
      updateRows(
        tx,
        'webhook_endpoints',
        { id: endpointId },
        { disabled_at: platform.clock.now(), disabled_reason: 'owner' },
      ),
    )
    await notifyUntilIdle(platform)
    const { items } = await deliveries(endpointId)
    assert.equal([items[0]?.state, items[0]?.error], ['failed', 'The endpoint was disabled.'])
    assert.is((await getEndpoint(platform, creator.userId, endpointId)).failing_since, null)
    assert.is(receiver.received.length, 0)
  })

  it('are repeated on request and in a replay, with their ids', async (context) => {
    const { platform, clock, creator, market, open, addEndpoint, publish, deliveries } = context
    const receiver = await open()
    const early = await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    clock.pass(HOUR)
    const since = clock.now()
    const missed = await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    const endpointId = await addEndpoint(receiver)
    const sent = await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    const [delivery] = (await deliveries(endpointId)).items
    const again = await retryDelivery(platform, creator.userId, delivery?.id ?? '')
    assert.equal([again.state, again.attempts], ['pending', 0])
    const stranger = await market.addCreator()
    assert.is(await outcomeOf(retryDelivery(platform, stranger.userId, delivery?.id ?? '')), 'not_found')
    await notifyUntilIdle(platform)
    assert.equal(pluck(receiver.received, 'id'), [...sent, ...sent])
    assert.equal(await replayEvents(platform, endpointId, { since, actor: OPERATOR }), { events: 2 })
    assert.equal(await replayEvents(platform, endpointId, { since, actor: OPERATOR }), { events: 0 })
    await notifyUntilIdle(platform)
    assert.equal(
      receiver.received
        .slice(2)
        .map(({ id }) => id)
        .toSorted(),
      [...missed, ...sent].toSorted(),
    )
    assert.not.ok(receiver.received.some(({ id }) => id === early[0]))
    assert.equal((await auditOf(platform, endpointId)).at(-1)?.action, 'webhook_endpoint.replay')
  })

  it('are queued once by replays that run together', async (context) => {
    const { platform, open, addEndpoint, publish, deliveries } = context
    const missed = await publish(...Array.from({ length: 20 }, () => platform.ids.next()))
    await notifyUntilIdle(platform)
    // The first round opens the connections.
    for (let round = 0; round < 4; round += 1) {
      const endpointId = await addEndpoint(await open())
      const replays = await Promise.all(
        [1, 2, 3].map(() => replayEvents(platform, endpointId, { since: 0, actor: OPERATOR })),
      )
      assert.is(
        replays.reduce((sum, { events }) => sum + events, 0),
        missed.length,
      )
      const queued = (await deliveries(endpointId)).items.map(({ event_id }) => event_id)
      assert.equal(queued.toSorted(), missed.toSorted())
    }
  })

  it('include test events, which wait for nothing', async (context) => {
    const { platform, creator, open, addEndpoint } = context
    const receiver = await open()
    const endpointId = await addEndpoint(receiver)
    const shown = await sendTestEvent(platform, creator.userId, endpointId)
    assert.equal([shown.event_type, shown.state], ['webhook.test', 'pending'])
    await notifyUntilIdle(platform)
    assert.equal(receiver.received[0]?.body.data, { endpoint_id: endpointId })
    assert.is(receiver.received[0]?.id, shown.event_id)
  })

  it('are forgotten after 30 days', async (context) => {
    const { platform, clock, open, addEndpoint, publish, deliveries } = context
    const endpointId = await addEndpoint(await open())
    await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    clock.pass(30 * DAY + 1)
    await publish(platform.ids.next())
    await notifyUntilIdle(platform)
    await removeOldDeliveries(platform)
    await removeOldEvents(platform)
    assert.is((await deliveries(endpointId)).items.length, 1)
  })

  it.run()
}
