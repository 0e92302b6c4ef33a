import * as assert from 'uvu/assert'
import type { Actor } from '../../../platform/api/procedure.ts'
import type { Platform } from '../../../platform/platform.ts'
import { marketSuites } from '../../../test/testkit/market-suites.ts'
import { openWebhookReceiver } from '../../../test/testkit/webhook-receiver.ts'
import { distributeEvents, publishEvents } from '../../outbox.service.ts'
import { webhookDeliverer } from './deliver.service.ts'
import { webhookChannel } from './deliveries.service.ts'
import { createEndpoint, MAX_ENDPOINTS } from './endpoints.service.ts'
import { createWebhookSender } from './send-webhook.ts'

const SLOW_ACCOUNTS = Number(process.env.SLOW_ACCOUNTS ?? 3)
/** With all slow endpoints of an account, more deliveries than it may take. */
const EVENTS = 90
/** What a process holds. */
const ROOM = 2000

async function publish(platform: Platform, { userId }: Actor, count: number): Promise<void> {
  const events = Array.from({ length: count }, () => ({
    type: 'payout.paid' as const,
    accountId: userId,
    subjectId: platform.ids.next(),
    data: {},
  }))
  await platform.database.transaction((tx) => publishEvents(platform, tx, events))
  while ((await distributeEvents(platform, [webhookChannel])) > 0);
}

for (const { it } of marketSuites('accounts share deliveries')) {
  it(`${SLOW_ACCOUNTS} accounts with slow endpoints hold back only themselves, and none takes more than half of the room`, async (context) => {
    const { platform, market } = context
    const slow = await openWebhookReceiver()
    slow.answer = () => {}
    const fast = await openWebhookReceiver()
    const addEndpoint = (owner: Actor, { url }: { url: string }) =>
      createEndpoint(platform, owner, { url, events: ['payout.paid'], description: '' })
    /** Publishes one event and returns how many deliveries the next claim brings; one of them reaches the fast receiver. */
    async function reach(owner: Actor): Promise<number> {
      const arrived = new Promise<void>((resolve) => {
        fast.answer = (response) => {
          response.writeHead(204).end()
          resolve()
        }
      })
      await publish(platform, owner, 1)
      const claimed = await deliverer.start()
      await arrived
      return claimed
    }
    const sender = createWebhookSender({ allowLoopback: true }, { timeoutMs: 3_600_000 })
    const deliverer = webhookDeliverer(platform, sender)
    const slowAccounts: Actor[] = []
    let free = ROOM
    let largestShare = 0
    for (let n = 0; n < SLOW_ACCOUNTS; n += 1) {
      const owner = await market.addCreator(undefined, false)
      slowAccounts.push(owner)
      for (let endpoint = 1; endpoint < MAX_ENDPOINTS; endpoint += 1) await addEndpoint(owner, slow)
      await publish(platform, owner, EVENTS)
      let taken = 0
      for (let claimed = await deliverer.start(); claimed > 0; claimed = await deliverer.start()) {
        taken += claimed
        free -= claimed
        largestShare = Math.max(largestShare, taken / free)
      }
    }

    const other = await market.addCreator(undefined, false)
    await addEndpoint(other, fast)
    assert.is(await reach(other), 1)
    for (const owner of slowAccounts) {
      await addEndpoint(owner, fast)
      assert.is(await reach(owner), 1, 'nor an endpoint its account')
    }
    assert.is(fast.received.length, 1 + SLOW_ACCOUNTS)
    const finished = await platform.database.reader
      .selectFrom('webhook_deliveries')
      .innerJoin('webhook_endpoints', 'webhook_endpoints.id', 'endpoint_id')
      .select('webhook_deliveries.id')
      .where('url', '=', slow.url)
      .where('attempted_at', 'is not', null)
      .execute()
    assert.equal(finished, [], 'all others are still held')
    for (const receiver of [slow, fast]) receiver.close()
    await deliverer.stop()
    assert.ok(largestShare < 0.51, `an account takes ${largestShare} of what is free beside it`)
  })

  it.run()
}
