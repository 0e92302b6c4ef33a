import * as assert from 'uvu/assert'
import { OPERATOR } from '../flags/audit.service.ts'
import { createEndpoint } from '../notifications/channels/webhooks/endpoints.service.ts'
import { publishEvents } from '../notifications/outbox.service.ts'
import { createIds } from '../platform/ids.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { MINUTE } from '../test/testkit/testbed.ts'
import { openWebhookReceiver } from '../test/testkit/webhook-receiver.ts'
import { suspendUser } from '../users/users.service.ts'
import { notificationBacklog } from './notification-backlog.ts'
import { notifyUntilIdle } from './worker.ts'

for (const { it } of marketSuites('the backlog of notifications', { idsOf: createIds })) {
  it('counts what waits, and says how long the first has been due', async ({ market, platform, clock }) => {
    const backlog = async () => {
      const rows = await notificationBacklog(platform.database.reader, clock.now())
      return Object.fromEntries(rows.map(({ kind, waiting, overdueMs }) => [kind, [waiting, overdueMs]]))
    }
    const creator = await market.addCreator(undefined, false)
    const receiver = await openWebhookReceiver()
    try {
      const fields = { url: receiver.url, events: ['payout.paid' as const], description: '' }
      await createEndpoint(platform, creator, fields)
      const publish = () => {
        const event = { type: 'payout.paid', accountId: creator.userId, data: { amount: '10.00' } } as const
        return platform.database.transaction((tx) =>
          publishEvents(platform, tx, [{ ...event, subjectId: platform.ids.next() }]),
        )
      }
      const before = await backlog()
      await publish()
      clock.pass(MINUTE)
      await publish()
      clock.pass(MINUTE)
      assert.equal((await backlog()).event, [2, 2 * MINUTE])
      receiver.answer = (response) => response.writeHead(500).end()
      await notifyUntilIdle(platform)
      assert.equal((await backlog()).event, [0, 0])
      assert.is((await backlog()).mail?.[0], (before.mail?.[0] ?? 0) + 2)
      clock.pass(MINUTE)
      // Both are due again, but their endpoint fails.
      assert.equal((await backlog()).webhook, [2, 0])
      assert.ok(((await backlog()).mail?.[1] ?? 0) >= MINUTE)
      receiver.answer = (response) => response.writeHead(204).end()
      await notifyUntilIdle(platform)
      assert.equal((await backlog()).webhook, [0, 0])
      await suspendUser(platform, { userId: creator.userId, actor: OPERATOR, reason: null })
      await publish()
      await notifyUntilIdle(platform)
      clock.pass(MINUTE)
      assert.equal((await backlog()).webhook, [1, 0])
    } finally {
      receiver.close()
    }
  })

  it.run()
}
