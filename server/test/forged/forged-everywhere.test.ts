// long

import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Insertable, sql } from 'kysely'
import * as assert from 'uvu/assert'
import { startExport } from '../../exports/exports.service.ts'
import { RECONCILIATION } from '../../jobs/reconciliation.ts'
import { startScheduler } from '../../jobs/scheduler.ts'
import { startWorker } from '../../jobs/worker.ts'
import { createEndpoint } from '../../notifications/channels/webhooks/endpoints.service.ts'
import { dataFolder } from '../../platform/config.ts'
import { sha256 } from '../../platform/crypto/vault.ts'
import type { Schema } from '../../platform/database/schema.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../../processor/events.settings.ts'
import { verifyBooks } from '../../verification/verify-books.ts'
import { eventually } from '../testkit/eventually.ts'
import { marketSuites } from '../testkit/market-suites.ts'
import { type Marketplace, openFlagsOf } from '../testkit/marketplace.ts'
import { orderBody } from '../testkit/orders.ts'
import { removeTriggers } from '../testkit/tamper.ts'
import { openWebhookReceiver } from '../testkit/webhook-receiver.ts'

const VICTIM = 'victim@example.com'

type Table = keyof Schema

/** A running service, with its worker and its scheduler, over a database into which someone has copied rows of every queue. */
for (const { it } of marketSuites('a service whose database someone writes to')) {
  it('does nothing for forged rows in any queue, and verification names them', async ({
    market,
    platform,
    clock,
  }) => {
    const receiver = await openWebhookReceiver()
    const { writer } = market.bed.testDatabase.database
    const shop = await market.addShop('shop')
    const ayesha = await market.addCreator('Ayesha')
    const eve = await market.addCreator('Eve')
    const link = await market.addLink(shop, ayesha)
    for (const actor of [ayesha, eve])
      await createEndpoint(platform, actor, { url: receiver.url, events: ['payout.paid'], description: '' })
    await market.earn(shop, link, 800_000)
    await market.payOut('confirmed')
    const [payout] = await writer.selectFrom('payouts').selectAll().execute()
    assert.ok(payout)
    const request = { resource: 'sales', format: 'csv', from: null, to: null } as const
    const genuineExport = await startExport(platform, ayesha, request)
    const body = orderBody({ price: 900_000, click: await market.click(link), createdAt: clock.now() })
    await removeTriggers(market.bed.testDatabase.database)

    const forged = new Map<Table, string>()
    /** Adds a copy of a row with another id. */
    const copy = async <Name extends Table>(
      table: Name,
      condition: string,
      change: Partial<Insertable<Schema[Name]>>,
    ) => {
      const { rows } = await sql<object>`
        select * from ${sql.table(table)} where ${sql.raw(condition)} limit 1`.execute(writer)
      assert.ok(rows[0], table)
      const row = { ...rows[0], id: platform.ids.next(), ...change }
      await writer
        .insertInto(table)
        .values(row as never)
        .execute()
      forged.set(table, row.id)
      return row.id
    }
    const pending = { state: 'pending', attempts: 0, finished_at: null } as const
    for (const [source, text] of [
      ['store', body],
      [
        'processor',
        JSON.stringify({ type: 'payout.failed', data: { payout_id: payout.processor_payout_id } }),
      ],
    ] as const) {
      const change = { ...pending, delivery_id: randomUUID(), body_hash: sha256(text), result: null }
      const id = await copy('inbound_events', `source = '${source}'`, change)
      await writer
        .insertInto('inbound_bodies')
        .values({ event_id: id, encoding: 'utf8', body: text })
        .execute()
    }
    const payoutId = await copy('payouts', 'true', { state: 'pending', processor_payout_id: null })
    await copy('processor_attempts', "kind = 'payout'", {
      ...{ subject_id: payoutId, state: 'waiting', tries: 0, processor_id: null, settled_at: null },
    })
    await copy('outbox_events', "type = 'payout.paid'", { subject_id: randomUUID(), distributed_at: null })
    const endpoints = await writer.selectFrom('webhook_endpoints').selectAll().execute()
    const endpoint_id = endpoints.find(({ account_id }) => account_id === eve.userId)?.id ?? ''
    await copy('webhook_deliveries', 'true', { ...pending, endpoint_id })
    await copy('mails', "kind = 'payout.paid'", {
      ...{ state: 'queued', address: VICTIM, event_key: randomUUID(), finished_at: null, attempts: 0 },
    })
    await copy('export_jobs', 'true', { user_id: eve.userId, role: 'admin' })
    const future = clock.now() + 86_400_000
    const run = { started_at: future, finished_at: future, outcome: '{}', row_digest: '' }
    await writer
      .insertInto('schedule_runs')
      .values({ name: RECONCILIATION, ...run })
      .execute()

    const found = async () => {
      const results = await verifyBooks(platform)
      return results.flatMap(({ name, breaches }) =>
        name.startsWith('rows-authentic-') ? breaches.map(({ subject }) => subject) : [],
      )
    }
    const subjects = await found()
    assert.is(subjects.length, 8, subjects.join('\n'))
    for (const [table, id] of forged)
      if (table !== 'payouts')
        assert.ok(
          subjects.some((subject) => subject.endsWith(id)),
          table,
        )

    const before = await stateOf(market)
    const exportsFolder = join(dataFolder(platform.config), 'exports')
    const filesBefore = filesOf(exportsFolder)
    const parts = { platform, processor: market.processor, eventRules: GENERIC_PROCESSOR_EVENTS }
    const worker = startWorker(parts)
    const scheduler = startScheduler(platform, market.processor)
    try {
      const tables = [
        'inbound_events',
        'processor_attempts',
        'outbox_events',
        'webhook_deliveries',
        'mails',
        'export_jobs',
        'schedule_runs',
      ]
      await eventually(
        async () => (await openFlagsOf(platform)).filter((flag) => flag.startsWith('integrity_violation')),
        (flags) => tables.every((table) => flags.includes(`integrity_violation ${table}`)),
      )
      await eventually(
        () =>
          writer
            .selectFrom('export_jobs')
            .select('state')
            .where('id', '=', genuineExport.id)
            .executeTakeFirst(),
        (job) => job?.state === 'succeeded',
      )
    } finally {
      await scheduler.stop()
      await worker.stop()
      receiver.close()
    }
    assert.equal(await stateOf(market), before)
    assert.equal(receiver.received.length, 1, 'the genuine payout.paid')
    assert.equal(mailsTo(join(dataFolder(platform.config), 'mail'), VICTIM), [])
    const files = filesOf(exportsFolder).filter((file) => !filesBefore.includes(file))
    assert.equal(files, [`${genuineExport.id}-1.csv`])
    // The scheduler has noted a run of its own in place of the forged one.
    assert.equal(
      (await found()).toSorted(),
      subjects.filter((subject) => !subject.endsWith(RECONCILIATION)).toSorted(),
    )
  })

  it.run()
}

/** What must stay as it is: sales, the journal, the honest payout and the calls to the processor. */
async function stateOf({ platform, processor }: Marketplace) {
  const { reader } = platform.database
  const ids = async (table: 'sales' | 'ledger_entries') =>
    (await reader.selectFrom(table).select('id').orderBy('id').execute()).map(({ id }) => id)
  return { sales: await ids('sales'), entries: await ids('ledger_entries'), calls: [...processor.calls] }
}

function mailsTo(folder: string, address: string): string[] {
  return filesOf(folder).filter((file) => readFileSync(join(folder, file), 'utf8').includes(address))
}

function filesOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : []
}
