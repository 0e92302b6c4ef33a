// long
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startExport } from '../../server/exports/exports.service.ts'
import { linkOfSlug } from '../../server/links/links.service.ts'
import { retryDelivery } from '../../server/notifications/channels/webhooks/deliveries.service.ts'
import { createEndpoint } from '../../server/notifications/channels/webhooks/endpoints.service.ts'
import { createOffer } from '../../server/offers/offers.service.ts'
import { connectStore } from '../../server/stores/stores.service.ts'
import { OFFER } from '../../server/test/testkit/listings.ts'
import { attemptsOf, openFlagsOf } from '../../server/test/testkit/marketplace.ts'
import { orderBody } from '../../server/test/testkit/orders.ts'
import { assertMapped, pluck } from '../../server/test/testkit/pluck.ts'
import { proofDialects } from '../../server/test/testkit/proof-size.ts'
import { openWebhookReceiver } from '../../server/test/testkit/webhook-receiver.ts'
import { type Books, openBooks } from './books.ts'
import { openProcessorStub, type ProcessorStub } from './processor-stub.ts'

const UNKNOWN_ID = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'

for (const dialect of proofDialects()) {
  const it = suite(`the operator's commands on ${dialect}`)
  let books: Books
  let stub: ProcessorStub
  it.before(async () => {
    books = await openBooks(dialect)
    stub = await openProcessorStub()
  })
  it.after(async () => {
    await stub.close()
    await books.market.verify()
    await books.market.close()
  })

  const lastAudit = async () => {
    const row = await books.market.platform.database.reader
      .selectFrom('audit_entries')
      .selectAll()
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow()
    return { ...row, before: JSON.parse(row.before ?? 'null'), after: JSON.parse(row.after ?? 'null') }
  }
  /** What a command has written is due by the clock on the wall. */
  const drainUntilIdle = () => {
    books.market.clock.set(new Date(Date.now() + 1000).toISOString())
    return books.market.drainUntilIdle()
  }

  it('lists sales by outcome, party and time', async () => {
    const namesOf = async (...options: string[]) =>
      (await books.json('sales', 'list', ...options)).items.map(
        (sale: Record<string, string>) => sale.order_name,
      )
    assert.is((await namesOf()).length, 3)
    const [rejected] = (await books.json('sales', 'list', '--status', 'rejected')).items
    assert.is(rejected.rejection_reason, 'no_tracking_reference')
    assert.equal(await namesOf('--creator', books.creatorId), ['#1002', '#1001'])
    const merchant = `${books.shop.merchantId}@example.com`
    assert.equal(await namesOf('--merchant', merchant, '--limit', '1'), ['#1002'])
    assert.equal(await namesOf('--to', '2020-01-01'), [])
    await books.says(
      ['sales', 'list', '--status', 'accepted'],
      /#1001\taccepted\t624\.88\t.*\t4999\.00\t.*\t62\.49\t/,
    )
    const backwards = ['sales', 'list', '--from', '2026-02-01', '--to', '2026-01-01']
    await books.refuses(backwards, /--from must be before --to/, 2)
  })

  it('shows webhook endpoints, sends events again, and disables an endpoint for good', async () => {
    const { market, creatorId } = books
    const receiver = await openWebhookReceiver()
    const owner = { userId: creatorId, role: 'creator', sessionId: creatorId } as const
    const fields = { url: `${receiver.url}?key=private`, events: ['application.decided'], description: '' }
    const { id } = await createEndpoint(market.platform, owner, fields)
    await books.refuses(['endpoints', 'replay', id], /confirm with --yes/)
    assert.is(receiver.received.length, 0)
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
    assert.is((await books.json('endpoints', 'replay', id, '--since', tomorrow, '--yes')).events, 0)
    assert.is((await books.json('endpoints', 'replay', id, '--since', '2020-01-01', '--yes')).events, 1)
    receiver.answer = (response) => response.writeHead(503).end()
    await drainUntilIdle()
    const {
      id: deliveryId,
      event_id,
      attempt_log,
    } = (await books.json('endpoints', 'show', id)).deliveries[0]
    assert.equal([attempt_log.length, attempt_log[0].response_status], [1, 503])
    await books.says(
      ['endpoints', 'show', id],
      new RegExp(`Attempts at the newest delivery with a problem, event ${event_id}:`),
      /503\tThe endpoint answered 503\.\t\d+ ms/,
    )
    receiver.received.length = 0
    receiver.answer = (response) => response.writeHead(204).end()
    await retryDelivery(market.platform, creatorId, deliveryId)
    await drainUntilIdle()
    receiver.close()
    assertMapped(receiver.received, ({ body }) => body.type, ['application.decided'])
    const list = await books.json('endpoints', 'list', '--user', creatorId)
    const show = await books.json('endpoints', 'show', id)
    const text = await books.says(['endpoints', 'show', id], /1 delivered, 0 pending, 0 failed/)
    assert.equal([list.items.length, list.items[0].user.id], [1, creatorId])
    assert.equal(show.counts, { pending: 0, delivered: 1, failed: 0 })
    assert.is(show.deliveries[0].response_status, 204)
    assert.not.match(JSON.stringify([list, show]) + text, /private/)
    const disabled = await books.json('endpoints', 'disable', id, '--reason', 'abuse', '--yes')
    assert.equal([disabled.enabled, disabled.disabled_reason], [false, 'operator'])
    assert.is((await lastAudit()).reason, 'abuse')
    await books.refuses(['endpoints', 'replay', id, '--yes'], /The endpoint is disabled/)
    await books.refuses(['endpoints', 'show', UNKNOWN_ID], /Webhook endpoint not found/)
  })

  it('checks a store: what arrived, what was refused, what to do', async () => {
    const check = (...words: string[]) => ['stores', 'check', ...words]
    const well = await books.refuses(check(`s${books.shop.merchantId}.myshopify.com`, '--json'), /1 to do/)
    const [store] = JSON.parse(well.stdout).stores
    assert.equal([store.status, store.tracked_30d.landing], ['receiving', 2])
    // Its orders bring their reference by the landing page only.
    assert.equal(pluck(store.findings, 'state'), ['ok', 'ok', 'todo'])
    const script = /^Put <script src="http.*\/store\.js" async><\/script> before <\/head>/
    assert.match(store.findings[2].next, script)
    const toDo = /^affiliate: 1 to do for s.*, marked with ✗\.$/m
    const unwell = await books.refuses(check(`s${books.otherShop.merchantId}.myshopify.com`), toDo)
    assert.match(unwell.stdout, /1 signed order of the last 7 days could not be read/)
    assert.match(unwell.stdout, /no_tracking_reference 1/)
    assert.equal(pluck((await books.json('stores', 'list')).items, 'status'), ['receiving', 'receiving'])
    const none = /No store in use has the domain nothing\.myshopify\.com\./
    assert.is((await books.refuses(check('nothing.myshopify.com'), none)).stdout, '')
    assert.equal(await books.json(...check()), { rejecting: [], unclaimed: [] })
  })

  it('lists offers, and decides on the rate that was looked at', async () => {
    const merchant = books.shop.merchantId
    const high = { ...OFFER, title: 'High one', commission_rate: 4000 }
    const { id } = await createOffer(books.market.platform, merchant, high)
    const { items } = await books.json('offers', 'list', '--vetting', 'pending')
    assert.equal([items.length, items[0].id, items[0].commission_rate], [1, id, 40])
    const live = await books.json('offers', 'list', '--status', 'live', '--merchant', merchant)
    assert.is(live.items.length, 1)
    const vet = (...more: string[]) => ['offers', 'vet', ...more, '--yes']
    await books.refuses(vet(id, '--approve', '--rate', '35'), /rate is now 40 %/)
    const approve = vet(id, '--approve', '--reason', 'end of season')
    await books.says(approve, /"High one" is approved at 40 %/)
    const { action, actor, reason, after } = await lastAudit()
    assert.equal(
      [action, actor, reason, after.vetting],
      ['offer.vet', 'operator', 'end of season', 'approved'],
    )
    assert.equal((await books.json('offers', 'list', '--vetting', 'pending')).items, [])
    await books.refuses(vet(UNKNOWN_ID, '--reject'), /Offer .*not found/)
    await books.refuses(vet(id, '--approve', '--reject'), /Pass --approve or --reject/, 2)
  })

  it('lists jobs', async () => {
    const owner = { userId: books.creatorId, role: 'creator' } as const
    const request = { resource: 'sales', format: 'csv', from: null, to: null } as const
    await startExport(books.market.platform, owner, request)
    const [job] = (await books.json('jobs', 'list')).items
    assert.equal([job.state, job.resource, job.user.id], ['queued', 'sales', books.creatorId])
    await books.says(['jobs', 'list'], /sales as csv\tqueued\t.*\t0\t/)
  })

  it('writes an export to a new file, for spreadsheets if asked to', async () => {
    const file = join(books.market.bed.testDatabase.folder, 'sales.csv')
    const { rows } = await books.json('jobs', 'export', 'sales', file, '--excel')
    const lines = readFileSync(file, 'utf8').split('\r\n')
    assert.ok(lines[0]?.startsWith('\ufeffid,') && lines[0].includes('merchant_id'), lines[0])
    assert.is(lines.length, rows + 2)
    assert.match(lines[1] ?? '', /,"=""\d+""",/)
    const { action, actor, after } = await lastAudit()
    assert.equal([action, actor, after.user], ['export.file', 'operator', null])
    await books.refuses(['jobs', 'export', 'sales', file], /exists\. Name a new file/)
    const own = join(books.market.bed.testDatabase.folder, 'own.ndjson')
    const asLines = ['jobs', 'export', 'sales', own, '--user', books.creatorId, '--format', 'ndjson']
    await books.says(asLines, /Wrote \d+ rows? to /)
    for (const line of readFileSync(own, 'utf8').split('\n').slice(0, -1)) {
      assert.is(JSON.parse(line).creator_id, books.creatorId)
      assert.is(JSON.parse(line).platform_fee, undefined)
    }
    const [cycle] = (await books.json('billing', 'cycles')).items
    const invoice = join(books.market.bed.testDatabase.folder, 'invoice.csv')
    const sold = await books.json('jobs', 'export', 'sales', invoice, '--cycle', cycle.id)
    for (const line of readFileSync(invoice, 'utf8').split('\r\n').slice(1, -1)) assert.match(line, cycle.id)
    assert.ok(sold.rows > 0 && sold.rows < rows)
    await books.refuses([...asLines, '--excel'], /with the format csv only/, 2)
    await books.refuses(
      ['jobs', 'export', 'billing_cycles', file, '--user', books.creatorId],
      /Creators have no billing cycles/,
    )
    await books.refuses(['jobs', 'export', 'sales', '/dev/full/x', '--yes'], /\/dev\/full\/x: /)
  })

  it('resolves a flag once, with a note', async () => {
    const { items } = await books.json('flagged', 'list', '--kind', 'event_set_aside')
    const [flag] = items
    assert.equal([items.length, flag.severity, flag.subject_type], [1, 'high', 'store_events'])
    const resolve = (id: string, note: string) => ['flagged', 'resolve', id, '--note', note]
    const said = /event_set_aside is resolved: a test of theirs/
    // The same note again is the same resolution.
    for (const _ of [1, 2]) await books.says(resolve(flag.id, 'a test of theirs'), said)
    await books.refuses(resolve(flag.id, 'something else'), /resolved with another note/)
    await books.refuses(resolve(UNKNOWN_ID, 'x'), /not found/)
    await books.refuses(['flagged', 'list', '--kind', 'self_purchas'], /Did you mean self_purchase\?/, 2)
    await books.says(['flagged', 'list', '--status', 'resolved'], /a test of theirs/)
  })

  it('shows an event, and has it tried again', async () => {
    const [event] = (await books.json('webhooks', 'events', '--state', 'set_aside')).items
    const shown = await books.json('webhooks', 'show', event.id)
    assert.equal([shown.state, shown.body], ['set_aside', undefined])
    assert.equal(await books.json('webhooks', 'show', event.delivery_id), shown)
    const show = ['webhooks', 'show', event.id, '--body']
    assert.is((await books.json(...show)).body, '{"id": "no order at all"}')
    await books.says(show, /State +set_aside\n(.|\n)*malformed(.|\n)*\{"id": "no order at all"\}/)
    const retry = ['webhooks', 'retry', event.id, '--reason', 'parser fixed', '--yes']
    await books.says(retry, /tries it again\. Last time: malformed/)
    const { action, reason, before, after } = await lastAudit()
    assert.equal([action, reason], ['event.retry', 'parser fixed'])
    assert.equal([before.state, after.state], ['set_aside', 'pending'])
    await drainUntilIdle()
    // It is still malformed, so it is set aside and flagged again.
    assert.is((await books.json('webhooks', 'show', event.id)).state, 'set_aside')
    const flag = `event_set_aside ${event.store.id}:unreadable`
    assert.ok((await openFlagsOf(books.market.platform)).includes(flag))
    const [done] = (await books.json('webhooks', 'events', '--state', 'done', '--limit', '1')).items
    await books.refuses(['webhooks', 'retry', done.id], /is done: it is never applied twice/)
    await books.refuses(['webhooks', 'retry', 'no-such-delivery', '--json'], /"code":"not_found"/)
  })

  it('releases one of several claims on a domain, and allows it again', async () => {
    const { platform } = books.market
    const domain = `s${books.otherShop.merchantId}.myshopify.com`
    const owner = books.shop.merchantId
    assert.is((await books.json('stores', 'list')).items.length, 2)
    assert.is((await books.json('stores', 'list', '--merchant', books.otherShop.merchantId)).items.length, 1)
    const claim = { shop_domain: domain, webhook_secret: 'secret-of-the-owner' }
    await connectStore(platform, owner, claim)
    const unnamed = await books.refuses(['stores', 'release', domain, '--yes', '--json'], /merchants claim/)
    assert.is(JSON.parse(unnamed.stderr).candidates.length, 2)
    const named = ['stores', 'release', domain.toUpperCase(), '--merchant', books.otherShop.merchantId]
    await books.refuses(named, /^affiliate: Not a terminal; confirm with --yes\.\n$/)
    const release = [...named, '--reason', 'the owner proved it', '--yes']
    await books.says(release, /^Released .*\n.*stores allow/)
    const { action, reason, before, after } = await lastAudit()
    assert.equal([action, reason], ['store.release', 'the owner proved it'])
    assert.equal([before.in_use, after.in_use, after.released], [true, false, true])
    await books.refuses(release, /No store in use of .* has the domain/)
    const { items } = await books.json('stores', 'list')
    const released = items.filter((store: { released_at: string | null }) => store.released_at !== null)
    assert.equal(
      released.map((store: { merchant: { id: string } }) => store.merchant.id),
      [books.otherShop.merchantId],
    )
    const allow = ['stores', 'allow', domain, '--merchant', books.otherShop.merchantId]
    await books.says(allow, /can connect .* again/)
    assert.is((await lastAudit()).action, 'store.allow')
    await books.refuses(allow, /./)
    // With one claim left no one has to be named.
    const rest = await books.json('stores', 'release', domain, '--yes')
    assert.equal([rest.merchant.id, rest.offers_paused], [owner, 0])
  })

  it('shows what a suspension will do before it is done', async () => {
    const suspend = (...more: string[]) => ['users', 'suspend', books.creatorId, ...more]
    const stays = /Rs 0\.00 released, Rs 5,624\.88 pending\.\nNothing was done\./
    await books.says(
      suspend('--dry-run'),
      /1 link will go on leading to the shop and earn nothing more/,
      stays,
    )
    const merchant = await books.json('users', 'suspend', books.shop.merchantId, '--dry-run')
    assert.equal(merchant.effects.merchant, {
      stores: 1,
      live_offers: 1,
      links: 1,
      pending_applications: 0,
      open_cycles: { count: 1, amount: '6187.37' },
      unpaid_cycles: { count: 0, amount: '0.00' },
    })
    assert.equal([merchant.changed, merchant.suspended], [false, false])
    const done = await books.json(...suspend('--yes'))
    assert.equal([done.changed, done.effects.creator.links], [true, 1])
    assert.is((await books.json('users', 'reinstate', books.creatorId, '--yes')).changed, true)
  })

  it('has a refused invoice requested again, after a look at what the processor holds', async () => {
    const { market } = books
    const [open] = (await books.json('billing', 'cycles', '--state', 'open')).items
    const reissue = (...more: string[]) =>
      books.affiliate(['billing', 'reissue', open.id, ...more], stub.settings)
    const refuses = async (why: RegExp, ...options: string[]) => {
      const { code, stderr } = await reissue(...options)
      assert.is(code, 1)
      assert.match(stderr, why)
    }
    await refuses(/is open. It is invoiced when it closes/, '--yes')
    await books.json('billing', 'close', '--as-of', open.period_end, '--yes')
    await refuses(/under way/, '--yes')
    market.processor.answers = ['refuse']
    await drainUntilIdle()
    assert.ok((await openFlagsOf(market.platform)).includes(`processor_refusal ${open.id}`))
    const advice = `refused: 422 no such account; then "affiliate billing reissue ${open.id}"`
    await books.says(['billing', 'cycles', '--state', 'closed'], new RegExp(advice))
    stub.down = true
    await refuses(/processor did not answer the look-up/, '--yes')
    stub.down = false
    stub.held = [{ id: 'inv_9', reference: open.id, amount: '1.00', currency: 'PKR', status: 'open' }]
    await refuses(/holds Rs 1\.00 \(PKR\)/, '--yes')
    // The refused one itself, which the processor has kept.
    stub.held = [{ id: 'inv_0', reference: open.id, amount: '6187.37', currency: 'PKR', status: 'rejected' }]
    await refuses(/confirm with --yes/)
    assert.is((await attemptsOf(market.platform, open.id)).length, 1)
    const made = await reissue('--yes', '--reason', 'address corrected', '--json')
    assert.is(made.code, 0, made.stderr)
    const { amount_due, invoice_at_the_processor } = JSON.parse(made.stdout)
    assert.equal([amount_due, invoice_at_the_processor], ['6187.37', null])
    stub.held = []
    const { action, before, after } = await lastAudit()
    const [refused, repeated] = await attemptsOf(market.platform, open.id)
    assert.equal(
      [action, before.attempt_id, after.attempt_id],
      ['billing.reissue', refused?.id, repeated?.id],
    )
    assert.not((await openFlagsOf(market.platform)).includes(`processor_refusal ${open.id}`))
    await drainUntilIdle()
    const [cycle] = (await books.json('billing', 'cycles', '--state', 'closed')).items
    assert.is(cycle.processor_invoice_id, market.processor.invoices[0]?.id)
    await refuses(/has it already/, '--yes')
    await market.confirmPayment(open.id)
    await drainUntilIdle()
    await refuses(/is paid/, '--yes')
  })

  it('sends a refused payout again, or takes over what the processor holds', async () => {
    const { market } = books
    const retry = (...more: string[]) =>
      books.affiliate(['payouts', 'retry', ...more, '--yes'], stub.settings)
    const refuses = async (id: string, why: RegExp) => {
      const { code, stderr } = await retry(id)
      assert.is(code, 1)
      assert.match(stderr, why)
    }
    await books.json('payouts', 'run', '--yes')
    market.processor.answers = ['refuse']
    await drainUntilIdle()
    const [payout] = (await books.json('payouts', 'list', '--state', 'pending')).items
    assert.equal([payout.call.state, payout.call.detail], ['refused', '422 no such account'])
    const advice = `refused: 422 .*then "affiliate payouts retry ${payout.id}"`
    await books.says(['payouts', 'list'], new RegExp(advice))
    // The refusal was not the whole truth: it has the payout after all.
    stub.held = [
      { id: 'po_6', reference: payout.id, amount: payout.amount, currency: 'PKR', status: 'rejected' },
      { id: 'po_7', reference: payout.id, amount: payout.amount, currency: 'PKR', status: 'processing' },
    ]
    const held = { id: 'po_7', reference: payout.id, amount: 562_488, currency: 'PKR', status: 'processing' }
    market.processor.payouts.push(
      { ...held, attemptId: 'x', rest: null },
      { ...held, id: 'po_6', status: 'rejected', attemptId: 'w', rest: null },
    )
    const sent = await retry(payout.id, '--reason', 'they say it is there')
    assert.match(sent.stdout, /holds payout po_7 already: the running service takes it over/)
    assert.is((await lastAudit()).action, 'payout.retry')
    const calls = market.processor.calls.length
    await drainUntilIdle()
    const [submitted] = (await books.json('payouts', 'list', '--state', 'submitted')).items
    assert.equal([submitted.processor_payout_id, market.processor.calls.length], ['po_7', calls])
    await refuses(payout.id, /is submitted/)
    await market.settlePayout(payout.id, 'failed')
    await drainUntilIdle()
    await refuses(payout.id, /failed and its amount is back in the balance/)
    await refuses(UNKNOWN_ID, /Payout .* not found/)
  })

  it('shows on one screen where everything stands', async () => {
    const json = await books.json('status')
    const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)
    const { last_24_hours: day } = json
    assert.equal([day.clicks, day.sales_accepted, day.sales_rejected].map(sum), [2, 2, 1])
    assert.equal([day.clicks.length, day.commission], [24, '5624.88'])
    assert.equal(json.payouts.released, { creators: 1, amount: '5624.88' })
    assert.equal([json.set_aside, json.flags.high], [1, 1])
    assert.equal([json.database.dialect, json.database.pending], [dialect, []])
    const accepted = /Sales +·*█·* {2}2 accepted, commission Rs 5,624\.88\n/
    await books.says(['status'], accepted, /Rs 5,624\.88 released to 1 creator, in no payout/)
  })

  it('says of an order that could not be read that it was set aside, and why', async () => {
    const { market, otherShop } = books
    await market.deliver(
      otherShop,
      '{"id": 820982911946154777, "name": "#5001\\u001b[2J", "currency": "PKR", "created_at": 5}',
    )
    await market.deliver(otherShop, `{"id":820982911946154778,"x":[${'{},'.repeat(100_000)}{}]}`)
    await drainUntilIdle()
    const explain = (order: string) => ['sales', 'explain', order]
    const [order] = (await books.json(...explain('#5001 [2J'))).set_aside
    assert.equal([order.order_id, order.store.id], ['820982911946154777', otherShop.storeId])
    assert.match(order.reason, /^malformed: created_at is no RFC 3339 time/)
    const said = /Order #5001 \[2J (.|\n)*SET ASIDE(.|\n)*Reason +malformed: created_at/
    assert.not.ok((await books.says(explain('820982911946154777'), said)).includes('\u001b[2J'))
    const [large] = (await books.json(...explain('820982911946154778'))).set_aside
    assert.is(large.reason, 'malformed: more than 150000 JSON tokens')
    await books.refuses(explain('820982911946154779'), /No sale found/)
  })

  it("compares a store's own order export with its sales, and changes nothing", async () => {
    const { testDatabase } = books.market.bed
    const domain = `s${books.shop.merchantId}.myshopify.com`
    const count = () =>
      books.market.platform.database.reader
        .selectFrom('sales')
        .select((eb) => eb.fn.countAll().as('n'))
        .executeTakeFirstOrThrow()
    // It arrived, but could not be read.
    await books.market.deliver(books.shop, '{"id":6100000009004,"name":"#2004"}')
    await drainUntilIdle()
    const before = await count()
    const path = `${testDatabase.folder}/orders_export.csv`
    const time = (at: number) => `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} +0000`
    const now = time(Date.now() + 60_000)
    const row = (name: string, id: string, subtotal: string, status = 'paid', paidAt = now) =>
      `${name},${status},${paidAt},PKR,${subtotal},${now},1,Kurta,${id}`
    const file = [
      'Name,Financial Status,Paid at,Currency,Subtotal,Created at,Lineitem quantity,Lineitem name,Id',
      row('#1001', '6100000001009', '4998.00'),
      '#1001,,,,,,2,Shawl,',
      row('#2001\u001b[2J', '6100000009001', '100.00'),
      row('#2004', '6100000009004', '100.00'),
      row('#2002', '6100000009002', '100.00', 'pending'),
      row('#2003', '6100000009003', '100.00', 'paid', time(Date.parse('2020-01-01'))),
    ]
    writeFileSync(path, file.join('\n'))
    const found = await books.json('stores', 'compare', domain, path)
    assert.equal(
      [found.orders, found.not_paid, found.before_connection, found.accepted, found.rejected.count],
      [5, 1, 1, 1, 0],
    )
    const [missing, unreadable, ...more] = found.never_reported.items
    assert.equal([missing.order_id, missing.subtotal, missing.set_aside], ['6100000009001', '100.00', null])
    assert.match(unreadable.set_aside, /^malformed: /)
    assert.equal(more, [])
    const [other] = found.other_amounts.items
    assert.equal([other.order_name, other.subtotal, other.reported_subtotal], ['#1001', '4998.00', '4999.00'])
    const compare = (...words: string[]) => ['stores', 'compare', ...words]
    await books.says(compare(domain, path), /Never reported: 2\n.*\n#2001\ufffd\[2J\t6100000009001\t/)
    for (const wrong of [testDatabase.folder, `${path}.missing`, '/dev/zero']) {
      assert.is((await books.refuses(compare(domain, wrong), /^[^\n]*\n$/)).stdout, '')
    }
    const none = /Store nothing\.myshopify\.com not found/
    await books.refuses(compare('nothing.myshopify.com', path), none)
    assert.equal(await count(), before)
  })

  it('lists orders that wait for their payment, and tells their life', async () => {
    const { market, shop, slug, creatorId, otherShop } = books
    const link = await linkOfSlug(market.platform, market.platform.database.reader, slug)
    assert.ok(link)
    const click = await market.click(link)
    const placed = {
      id: '6100000007001',
      name: '#7001',
      price: 100_000,
      click,
      createdAt: market.clock.now(),
    }
    const unpaid = orderBody({ ...placed, financialStatus: 'pending' })
    await market.deliver(shop, unpaid, { topic: 'orders/create' })
    await drainUntilIdle()
    const list = ['pending-orders', 'list']
    const [row] = (await books.json(...list, '--state', 'pending')).items
    assert.equal([row.order_name, row.expected_commission, row.creator.id], ['#7001', '125.00', creatorId])
    assert.equal((await books.json(...list, '--merchant', otherShop.merchantId)).items, [])
    await books.says(list, /#7001\tpending\t125\.00\t/)
    const explain = ['sales', 'explain', '#7001']
    await books.says(explain, /PENDING: no sale was decided/, /Expected +125\.00/)
    assert.is((await books.json(...explain)).pending_order.state, 'pending')
    await market.deliver(shop, orderBody(placed))
    await drainUntilIdle()
    await books.says(explain, /not paid yet: a pending order\.(.|\n)*The store had reported it as paid/)
    assert.is((await books.json(...explain)).pending_order.state, 'became_sale')
    const [rate] = (await books.json('pending-orders', 'rates')).items
    assert.equal([rate.placed, rate.became_sales, rate.paid_rate_90d], [1, 1, null])
    await books.says(['pending-orders', 'rates'], /\t1\t1\t1\t–/)
  })

  it.run()
}
