import { Webhook } from 'standardwebhooks'
import * as assert from 'uvu/assert'
import { OPERATOR } from '../../../flags/audit.service.ts'
import { notifyUntilIdle } from '../../../jobs/worker.ts'
import type { Actor } from '../../../platform/api/procedure.ts'
import type { Logger } from '../../../platform/log.ts'
import type { Platform } from '../../../platform/platform.ts'
import { marketSuites } from '../../../test/testkit/market-suites.ts'
import { outcomeOf, requestOf } from '../../../test/testkit/people.ts'
import { HOUR, MINUTE } from '../../../test/testkit/testbed.ts'
import { openWebhookReceiver } from '../../../test/testkit/webhook-receiver.ts'
import { disableByOperator, MAX_ENDPOINTS } from './endpoints.service.ts'
import { webhooksRouter } from './webhooks.procedures.ts'

const URL = 'https://shop.example.com/hooks?key=1'

const as = (platform: Platform, actor: Actor) => webhooksRouter.createCaller(requestOf(platform, actor))

for (const { it } of marketSuites('webhook endpoints')) {
  it('are added, listed, changed and removed by their owner only', async ({ platform, market }) => {
    const [owner, stranger] = [await market.addCreator(), await market.addCreator()]
    const own = as(platform, owner)
    const { secret, ...created } = await own.create({ url: ` ${URL}`, events: ['payout.paid'] })
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.equal([created.url, created.enabled, created.description], [URL, true, ''])
    assert.equal(await own.get({ id: created.id }), created)
    assert.equal((await own.list({})).items, [created])
    const changed = await own.update({ id: created.id, events: ['sale.accepted'], description: 'Desk' })
    assert.equal([changed.events, changed.description], [['sale.accepted'], 'Desk'])
    const delivery = await own.test({ id: created.id })
    assert.equal((await own.retry({ id: delivery.id })).id, delivery.id)
    const theirs = as(platform, stranger)
    for (const work of [
      () => theirs.get({ id: created.id }),
      () => theirs.update({ id: created.id, enabled: false }),
      () => theirs.rotate({ id: created.id }),
      () => theirs.deliveries({ id: created.id }),
      () => theirs.test({ id: created.id }),
      () => theirs.retry({ id: delivery.id }),
      () => theirs.remove({ id: created.id }),
    ])
      assert.is(await outcomeOf(work()), 'not_found')
    await own.remove({ id: created.id })
    assert.equal((await own.list({})).items, [])
    assert.is(await outcomeOf(own.remove({ id: created.id })), 'not_found')
  })

  it('refuse events of the other role, and addresses that are not https', async ({ platform, market }) => {
    const creator = as(platform, await market.addCreator())
    const merchant = as(platform, (await market.addShop()).actor)
    assert.is(await outcomeOf(creator.create({ url: URL, events: ['store.silent'] })), 'validation_failed')
    assert.is(await outcomeOf(merchant.create({ url: URL, events: ['payout.paid'] })), 'validation_failed')
    assert.is(await outcomeOf(merchant.create({ url: URL, events: [] })), 'validation_failed')
    assert.is(
      await outcomeOf(merchant.create({ url: URL, events: ['sale.accepted', 'sale.accepted'] })),
      'validation_failed',
    )
    for (const url of ['http://shop.example.com/', 'https://10.0.0.1/', 'https://a.example.com/\nX: 1'])
      assert.is(await outcomeOf(merchant.create({ url, events: ['sale.accepted'] })), 'validation_failed')
    const description = 'one\r\ntwo'
    assert.is(
      await outcomeOf(merchant.create({ url: URL, events: ['sale.accepted'], description })),
      'validation_failed',
    )
  })

  it(`are at most ${MAX_ENDPOINTS} for one account, also if added together`, async ({ platform, market }) => {
    const own = as(platform, await market.addCreator())
    const add = () => outcomeOf(own.create({ url: URL, events: ['payout.paid'] }))
    const outcomes = await Promise.all(Array.from({ length: MAX_ENDPOINTS + 5 }, add))
    assert.is(outcomes.filter((outcome) => outcome === 'ok').length, MAX_ENDPOINTS)
    assert.is(outcomes.filter((outcome) => outcome === 'quota_exceeded').length, 5)
    const { items } = await own.list({ limit: 100 })
    await own.remove({ id: items[0]?.id ?? '' })
    assert.is(await add(), 'ok')
  })

  it('sign with both secrets for a day after a rotation, encrypted', async ({ platform, market, clock }) => {
    // The library refuses signatures of another time than now.
    clock.set(new Date().toISOString())
    const receiver = await openWebhookReceiver()
    const own = as(platform, await market.addCreator())
    const { id, secret: first } = await own.create({ url: receiver.url, events: ['payout.paid'] })
    const { secret: second, former_secret_valid_until: until } = await own.rotate({ id })
    assert.is(Date.parse(until ?? ''), clock.now() + 24 * HOUR)
    const stored = await platform.database.reader.selectFrom('webhook_secrets').selectAll().execute()
    assert.is(stored.length, 2)
    for (const secret of [first, second]) assert.not.match(JSON.stringify(stored), secret.slice(6))
    const signedWith = async (secrets: string[]) => {
      await own.test({ id })
      await notifyUntilIdle(platform)
      const { headers, text } = receiver.received.at(-1) ?? { headers: {}, text: '' }
      return secrets.map((secret) => {
        try {
          new Webhook(secret).verify(text, headers as Record<string, string>)
          return true
        } catch {
          return false
        }
      })
    }
    clock.pass(MINUTE)
    const { secret: third } = await own.rotate({ id })
    assert.equal(await signedWith([first, second, third]), [true, true, true], 'the deployed one too')
    const { secret: repeated } = await own.rotate({ id })
    assert.is(repeated, third, 'a retried request rotates once')
    clock.pass(MINUTE)
    const { secret: fourth } = await own.rotate({ id })
    const realTime = Date.now
    Date.now = () => clock.now()
    try {
      assert.equal(await signedWith([first, second, third, fourth]), [false, true, true, true])
    } finally {
      Date.now = realTime
    }
    clock.pass(24 * HOUR)
    const realNow = Date.now
    Date.now = () => clock.now()
    try {
      assert.equal(await signedWith([first, second, third, fourth]), [false, false, false, true])
    } finally {
      Date.now = realNow
    }
    assert.is((await own.get({ id })).former_secret_valid_until, null)
    receiver.close()
  })

  it('stay disabled when an operator disabled them', async ({ platform, market }) => {
    const own = as(platform, await market.addCreator())
    const { id } = await own.create({ url: URL, events: ['payout.paid'] })
    assert.is((await own.update({ id, enabled: false })).disabled_reason, 'owner')
    assert.is((await own.update({ id, enabled: true })).enabled, true)
    const disabling = { actor: OPERATOR, note: 'abuse' }
    assert.is((await disableByOperator(platform, id, disabling)).changed, true)
    assert.is((await disableByOperator(platform, id, disabling)).changed, false)
    assert.is(await outcomeOf(own.update({ id, enabled: true })), 'conflict')
    assert.is((await own.get({ id })).disabled_reason, 'operator')
  })

  it('do not send with a secret that was moved from another endpoint', async ({ platform, market }) => {
    const receiver = await openWebhookReceiver()
    const [own, theirs] = [as(platform, await market.addCreator()), as(platform, await market.addCreator())]
    const mine = await own.create({ url: receiver.url, events: ['payout.paid'] })
    const other = await theirs.create({ url: URL, events: ['payout.paid'] })
    await platform.database.transaction(async (tx) => {
      await tx.deleteFrom('webhook_secrets').where('endpoint_id', '=', mine.id).execute()
      await tx
        .updateTable('webhook_secrets')
        .set({ endpoint_id: mine.id })
        .where('endpoint_id', '=', other.id)
        .execute()
    })
    await own.test({ id: mine.id })
    const lines: { err: Error; endpoint: string }[] = []
    const log = {
      ...platform.log,
      error: (facts: (typeof lines)[0]) => lines.push(facts),
    } as unknown as Logger
    await notifyUntilIdle({ ...platform, log })
    assert.is(receiver.received.length, 0)
    assert.equal(
      lines.map(({ err, endpoint }) => [err.message, endpoint]),
      [['does not open: it was changed or moved', mine.id]],
    )
    const { items } = await own.deliveries({ id: mine.id })
    assert.is(items[0]?.error, 'The secret of the endpoint cannot be opened. Rotate it.')
    receiver.close()
  })

  it.run()
}
