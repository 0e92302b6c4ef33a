import { Webhook } from 'standardwebhooks'
import * as assert from 'uvu/assert'
import { OPERATOR } from '../../../flags/audit.service.ts'
import { notifyUntilIdle } from '../../../jobs/worker.ts'
import type { Actor } from '../../../platform/api/procedure.ts'
import type { Logger } from '../../../platform/log.ts'
import type { Platform } from '../../../platform/platform.ts'
import { marketSuites } from '../../../test/testkit/market-suites.ts'
import { outcomeOf, requestOf } from '../../../test/testkit/people.ts'
import { rowsOf } from '../../../test/testkit/rows.ts'
import { HOUR, MINUTE } from '../../../test/testkit/testbed.ts'
import { openWebhookReceiver, type ReceivedWebhook } from '../../../test/testkit/webhook-receiver.ts'
import { disableByOperator, MAX_ENDPOINTS } from './endpoints.service.ts'
import { webhooksRouter } from './webhooks.procedures.ts'

const URL = 'https://shop.example.com/hooks?key=1'

const as = (platform: Platform, actor: Actor) => webhooksRouter.createCaller(requestOf(platform, actor))

for (const { it } of marketSuites('webhook endpoints')) {
  it('are added, listed, changed and removed', async ({ platform, market }) => {
    const own = as(platform, await market.addCreator())
    const { secret, ...created } = await own.create({ url: ` ${URL}`, events: ['payout.paid'] })
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.equal([created.url, created.enabled, created.description], [URL, true, ''])
    assert.equal(await own.get({ id: created.id }), created)
    assert.equal((await own.list({})).items, [created])
    const changed = await own.update({ id: created.id, events: ['sale.accepted'], description: 'Desk' })
    assert.equal([changed.events, changed.description], [['sale.accepted'], 'Desk'])
    const delivery = await own.test({ id: created.id })
    assert.equal([delivery.event_type, delivery.state], ['webhook.test', 'pending'])
    assert.equal((await own.retry({ id: delivery.id })).id, delivery.id)
    await own.remove({ id: created.id })
    assert.equal((await own.list({})).items, [])
    assert.is(await outcomeOf(own.remove({ id: created.id })), 'not_found')
  })

  it('refuse events of the other role, and addresses that are not https', async ({ platform, market }) => {
    const creator = as(platform, await market.addCreator())
    const ofMerchant = creator.create({ url: URL, events: ['store.silent'] })
    assert.is(await outcomeOf(ofMerchant), 'validation_failed')
    const merchant = as(platform, (await market.addShop()).actor)
    for (const odd of [
      { events: ['payout.paid'] },
      { events: [] },
      { events: ['sale.accepted', 'sale.accepted'] },
      { url: 'http://shop.example.com/' },
      { url: 'https://10.0.0.1/' },
      { url: 'https://a.example.com/\nX: 1' },
      { description: 'one\r\ntwo' },
    ]) {
      const fields = { url: URL, events: ['sale.accepted'], ...odd } as Parameters<typeof merchant.create>[0]
      const outcome = await outcomeOf(merchant.create(fields))
      assert.is(outcome, 'validation_failed', JSON.stringify(odd))
    }
  })

  it(`are at most ${MAX_ENDPOINTS} for one account, also if added together`, async ({ platform, market }) => {
    const own = as(platform, await market.addCreator())
    const add = () => outcomeOf(own.create({ url: URL, events: ['payout.paid'] }))
    const outcomes = await Promise.all(Array.from({ length: MAX_ENDPOINTS + 5 }, add))
    const refused = outcomes.filter((outcome) => outcome === 'quota_exceeded')
    assert.equal([refused.length, outcomes.length], [5, MAX_ENDPOINTS + 5])
    const { items } = await own.list({ limit: 100 })
    await own.remove({ id: items[0]?.id ?? '' })
    assert.is(await add(), 'ok')
  })

  it('sign with both secrets for a day after a rotation, encrypted', async ({ platform, market, clock }) => {
    const receiver = await openWebhookReceiver()
    const own = as(platform, await market.addCreator())
    const { id, secret: first } = await own.create({ url: receiver.url, events: ['payout.paid'] })
    const { secret: second, former_secret_valid_until: until } = await own.rotate({ id })
    assert.is(Date.parse(until ?? ''), clock.now() + 24 * HOUR)
    const stored = await rowsOf(platform, 'webhook_secrets')
    assert.is(stored.length, 2)
    for (const secret of [first, second]) assert.not.match(JSON.stringify(stored), secret.slice(6))
    const isSignedWith = (
      secret: string,
      { headers, text } = receiver.received.at(-1) as ReceivedWebhook,
    ) => {
      try {
        return Boolean(new Webhook(secret).verify(text, headers as Record<string, string>))
      } catch {
        return false
      }
    }
    const signedWith = async (secrets: string[]) => {
      await own.test({ id })
      await notifyUntilIdle(platform)
      // The library refuses signatures of another time than now.
      const realTime = Date.now
      Date.now = () => clock.now()
      try {
        return secrets.map((secret) => isSignedWith(secret))
      } finally {
        Date.now = realTime
      }
    }
    clock.pass(MINUTE)
    const { secret: third } = await own.rotate({ id })
    assert.equal(await signedWith([first, second, third]), [true, true, true], 'the deployed one too')
    const { secret: repeated } = await own.rotate({ id })
    assert.is(repeated, third, 'a retried request rotates once')
    clock.pass(MINUTE)
    const { secret: fourth } = await own.rotate({ id })
    assert.equal(await signedWith([first, second, third, fourth]), [false, true, true, true])
    clock.pass(24 * HOUR)
    assert.equal(await signedWith([first, second, third, fourth]), [false, false, false, true])
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
      const theirSecret = tx.updateTable('webhook_secrets').where('endpoint_id', '=', other.id)
      await theirSecret.set({ endpoint_id: mine.id }).execute()
    })
    await own.test({ id: mine.id })
    const lines: unknown[] = []
    const error = ({ err, endpoint }: { err: Error; endpoint: string }) => lines.push([err.message, endpoint])
    await notifyUntilIdle({ ...platform, log: { ...platform.log, error } as unknown as Logger })
    assert.is(receiver.received.length, 0)
    assert.equal(lines, [['does not open: it was changed or moved', mine.id]])
    const { items } = await own.deliveries({ id: mine.id })
    assert.is(items[0]?.error, 'The secret of the endpoint cannot be opened. Rotate it.')
    receiver.close()
  })

  it.run()
}
