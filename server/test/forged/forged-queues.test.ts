import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { openExportFile, startExport } from '../../exports/exports.service.ts'
import { runNextExport } from '../../exports/run-export.service.ts'
import { isReconciliationDue, RECONCILIATION } from '../../jobs/reconciliation.ts'
import { noteFinished, noteStarted } from '../../jobs/schedule-runs.service.ts'
import { notifyUntilIdle } from '../../jobs/worker.ts'
import { mailDeliverer } from '../../notifications/channels/mail/deliver-mails.service.ts'
import { sendMail } from '../../notifications/channels/mail/mail.service.ts'
import { createEndpoint } from '../../notifications/channels/webhooks/endpoints.service.ts'
import { publishEvents } from '../../notifications/outbox.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import { dataFolder } from '../../platform/config.ts'
import type { Schema } from '../../platform/database/schema.ts'
import type { Platform } from '../../platform/platform.ts'
import { openFolder } from '../../platform/storage/storage.ts'
import { marketSuites } from '../testkit/market-suites.ts'
import { brokenRows, type Marketplace, openFlagsOf } from '../testkit/marketplace.ts'
import { outcomeOf } from '../testkit/people.ts'
import { rowOf } from '../testkit/rows.ts'
import { removeTriggers } from '../testkit/tamper.ts'
import { openWebhookReceiver, type WebhookReceiver } from '../testkit/webhook-receiver.ts'

interface Context {
  /** Of the account whose data is wanted, and of the one that a database writer owns. */
  ayesha: Actor
  eve: Actor
  receiver: WebhookReceiver
}

const NEVER = new AbortController().signal

for (const { it } of marketSuites<Context>('queues that a database writer adds to')) {
  it.before.each(async (context) => {
    const { market, platform } = context
    context.receiver = await openWebhookReceiver()
    context.ayesha = await market.addCreator('Ayesha', false)
    context.eve = await market.addCreator('Eve', false)
    for (const actor of [context.ayesha, context.eve]) {
      const events = ['payout.paid']
      await createEndpoint(platform, actor, { url: context.receiver.url, events, description: '' })
    }
    await removeTriggers(market.bed.testDatabase.database)
    await mailed(platform)
    await notifyUntilIdle(platform)
  })
  it.after.each(({ receiver }) => receiver?.close())

  const writer = (market: Marketplace) => market.bed.testDatabase.database.writer

  /** Sends all due mails; returns their addresses and kinds. */
  const mailed = async (platform: Platform): Promise<string[]> => {
    const sent: string[] = []
    const transport = {
      async send({ to, kind }: { to: { address: string }; kind: string }) {
        sent.push(`${kind} to ${to.address}`)
        return { kind: 'sent' as const }
      },
      close() {},
    }
    await mailDeliverer(platform, transport).untilIdle()
    return sent
  }

  const idsAt = ({ received }: WebhookReceiver) => received.map(({ id }) => id)
  const publish = (platform: Platform, accountId: string) =>
    platform.database.transaction((tx) =>
      publishEvents(platform, tx, [
        { type: 'payout.paid', accountId, subjectId: platform.ids.next(), data: { amount: '1.00' } },
      ]),
    )

  const assertFound = async (platform: Platform, table: keyof Schema, invariant: string, id: string) => {
    assert.ok((await openFlagsOf(platform)).includes(`integrity_violation ${table}`))
    assert.equal(await brokenRows(platform, invariant), [`${table} ${id}`])
  }

  it('tell no channel of an added outbox event', async ({ market, platform, ayesha, receiver }) => {
    const [genuine = ''] = await publish(platform, ayesha.userId)
    const row = await rowOf(platform, 'outbox_events', { id: genuine })
    const forged = { ...row, id: platform.ids.next(), subject_id: randomUUID(), data: '{"amount":"9.00"}' }
    await writer(market).insertInto('outbox_events').values(forged).execute()
    await notifyUntilIdle(platform)
    assert.equal(idsAt(receiver), [genuine])
    assert.equal((await mailed(platform)).length, 1)
    await assertFound(platform, 'outbox_events', 'rows-authentic-outbox-events', forged.id)
  })

  it('send no added delivery to another one', async ({ market, platform, ayesha, eve, receiver }) => {
    const [genuine = ''] = await publish(platform, ayesha.userId)
    await notifyUntilIdle(platform)
    const delivery = await rowOf(platform, 'webhook_deliveries', { event_id: genuine })
    const endpoint = await rowOf(platform, 'webhook_endpoints', { account_id: eve.userId })
    const forged: typeof delivery = {
      ...{ ...delivery, id: platform.ids.next(), endpoint_id: endpoint.id },
      ...{ state: 'pending', attempts: 0, finished_at: null },
    }
    await writer(market).insertInto('webhook_deliveries').values(forged).execute()
    const [next = ''] = await publish(platform, eve.userId)
    await notifyUntilIdle(platform)
    assert.equal(idsAt(receiver), [genuine, next])
    assert.is((await rowOf(platform, 'webhook_deliveries', { id: forged.id })).state, 'failed')
    await assertFound(platform, 'webhook_deliveries', 'rows-authentic-webhook-deliveries', forged.id)
  })

  it('send nothing to an endpoint moved or copied', async ({ market, platform, ayesha, eve, receiver }) => {
    const moved = await openWebhookReceiver()
    const theirs = await rowOf(platform, 'webhook_endpoints', { account_id: ayesha.userId })
    await sql`update webhook_endpoints set url = ${moved.url} where id = ${theirs.id}`.execute(writer(market))
    const copy = { ...theirs, id: platform.ids.next(), url: moved.url }
    await writer(market).insertInto('webhook_endpoints').values(copy).execute()
    const secret = await rowOf(platform, 'webhook_secrets', { endpoint_id: theirs.id })
    const copiedSecret = { ...secret, id: platform.ids.next(), endpoint_id: copy.id }
    await writer(market).insertInto('webhook_secrets').values(copiedSecret).execute()
    await publish(platform, ayesha.userId)
    const [genuine = ''] = await publish(platform, eve.userId)
    await notifyUntilIdle(platform)
    assert.equal(moved.received, [])
    assert.equal(idsAt(receiver), [genuine])
    assert.ok((await openFlagsOf(platform)).includes('integrity_violation webhook_endpoints'))
    assert.equal(
      await brokenRows(platform, 'rows-authentic-webhook-endpoints'),
      [theirs.id, copy.id].map((id) => `webhook_endpoints ${id}`),
    )
    moved.close()
  })

  it('send no added mail', async ({ market, platform, ayesha }) => {
    const send = () =>
      platform.database.transaction((tx) =>
        sendMail(platform, tx, { userId: ayesha.userId, kind: 'payout.paid', facts: { amount: '1.00' } }),
      )
    await send()
    const genuine = await rowOf(platform, 'mails', { state: 'queued' })
    const forged = { ...genuine, id: platform.ids.next(), address: 'victim@example.com' }
    await writer(market).insertInto('mails').values(forged).execute()
    assert.equal(await mailed(platform), [`payout.paid to ${genuine.address}`])
    assert.is((await rowOf(platform, 'mails', { id: forged.id })).state, 'failed')
    await assertFound(platform, 'mails', 'rows-authentic-mails', forged.id)
  })

  it("write no added export and give no one another's file", async ({ market, platform, ayesha, eve }) => {
    const storage = openFolder(`${dataFolder(platform.config)}/exports`)
    const request = { resource: 'sales', format: 'csv', from: null, to: null } as const
    const genuine = await startExport(platform, ayesha, request)
    assert.ok(await runNextExport(platform, storage, NEVER))
    const written = await rowOf(platform, 'export_jobs', { id: genuine.id })
    const admin = { ...genuine, id: platform.ids.next(), user_id: eve.userId, role: 'admin' as const }
    await writer(market).insertInto('export_jobs').values(admin).execute()
    assert.ok(await runNextExport(platform, storage, NEVER))
    const { state, file_key } = await rowOf(platform, 'export_jobs', { id: admin.id })
    assert.equal([state, file_key], ['failed', null])
    await assertFound(platform, 'export_jobs', 'rows-authentic-export-jobs', admin.id)
    await writer(market).deleteFrom('export_jobs').where('id', '=', admin.id).execute()
    const copied = { ...written, id: platform.ids.next(), user_id: eve.userId }
    await writer(market).insertInto('export_jobs').values(copied).execute()
    assert.is(await outcomeOf(openExportFile(platform, eve.userId, copied.id)), 'not_found')
    const own = await startExport(platform, eve, request)
    assert.ok(await runNextExport(platform, storage, NEVER))
    await sql`update export_jobs set file_key = ${written.file_key} where id = ${own.id}`.execute(
      writer(market),
    )
    assert.is(await outcomeOf(openExportFile(platform, eve.userId, own.id)), 'not_found')
  })

  it('keep no scheduled job from running', async ({ market, platform, clock }) => {
    const run = { started_at: clock.now() + 1000, finished_at: clock.now() + 1000, outcome: '{}' }
    const forged = { name: RECONCILIATION, ...run, row_digest: '' }
    await writer(market).insertInto('schedule_runs').values(forged).execute()
    assert.ok(await isReconciliationDue(platform))
    const broken = await brokenRows(platform, 'rows-authentic-schedule-runs')
    assert.equal(broken, [`schedule_runs ${RECONCILIATION}`])
    assert.ok(await noteStarted(platform, RECONCILIATION, clock.now()))
    assert.not(await noteStarted(platform, RECONCILIATION, clock.now()))
    await noteFinished(platform, RECONCILIATION, {})
    await market.verify()
    assert.ok((await openFlagsOf(platform)).includes('integrity_violation schedule_runs'))
  })

  it.run()
}
