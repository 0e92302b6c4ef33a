// long
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { startExport } from '../../server/exports/exports.service.ts'
import { noteFailed, noteFinished, noteStarted } from '../../server/jobs/schedule-runs.service.ts'
import { linkOfSlug } from '../../server/links/links.service.ts'
import { createEndpoint } from '../../server/notifications/channels/webhooks/endpoints.service.ts'
import { createOffer } from '../../server/offers/offers.service.ts'
import { systemClock } from '../../server/platform/clock.ts'
import { joinProcesses } from '../../server/processes/processes.service.ts'
import { connectStore } from '../../server/stores/stores.service.ts'
import { OFFER } from '../../server/test/testkit/listings.ts'
import { openFlagsOf } from '../../server/test/testkit/marketplace.ts'
import { orderBody } from '../../server/test/testkit/orders.ts'
import { assertMapped, pluck } from '../../server/test/testkit/pluck.ts'
import { proofDialects } from '../../server/test/testkit/proof-size.ts'
import { rowsOf } from '../../server/test/testkit/rows.ts'
import { openWebhookReceiver } from '../../server/test/testkit/webhook-receiver.ts'
import { EXAMPLE_ID } from '../command.ts'
import { suiteOverBooks } from './books.ts'
import { openProcessorStub, type ProcessorStub } from './processor-stub.ts'

for (const dialect of proofDialects()) {
  const { it, books } = suiteOverBooks(`the operator's commands on ${dialect}`, dialect)
  let stub: ProcessorStub
  it.before(async () => {
    stub = await openProcessorStub()
  })
  it.after(() => stub.close())

  /** What a command has written is due by the clock on the wall. */
  const drainUntilIdle = () => {
    books.market.clock.set(new Date(Date.now() + 1000).toISOString())
    return books.market.drainUntilIdle()
  }

  it('lists sales by outcome, party and time', async () => {
    const namesOf = async (...options: string[]) =>
      pluck((await books.json('sales', 'list', ...options)).items, 'order_name')
    assert.is((await namesOf()).length, 3)
    const [rejected] = (await books.json('sales', 'list', '--status', 'rejected')).items
    assert.is(rejected.rejection_reason, 'no_tracking_reference')
    assert.equal(await namesOf('--creator', books.creatorId), ['#1002', '#1001'])
    const merchant = `${books.shop.merchantId}@example.com`
    assert.equal(await namesOf('--merchant', merchant, '--limit', '1'), ['#1002'])
    assert.equal(await namesOf('--to', '2020-01-01'), [])
    const row = /#1001\taccepted\t624\.88\t.*\t4999\.00\t.*\t62\.49\t/
    await books.says(['sales', 'list', '--status', 'accepted'], row)
    const backwards = ['sales', 'list', '--from', '2026-02-01', '--to', '2026-01-01']
    await books.refuses(backwards, /--from must be before --to/, 2)
  })

  it('shows webhook endpoints, sends events again, and disables an endpoint for good', async () => {
    const { market, creatorId } = books
    const receiver = await openWebhookReceiver()
    receiver.answer = (response) => response.writeHead(503).end()
    const owner = { userId: creatorId, role: 'creator', sessionId: creatorId } as const
    const fields = { url: `${receiver.url}?key=private`, events: ['application.decided'], description: '' }
    const { id } = await createEndpoint(market.platform, owner, fields)
    const replay = (since: string) => books.json('endpoints', 'replay', id, '--since', since, '--yes')
    assert.equal([(await replay('2100-01-01')).events, (await replay('2020-01-01')).events], [0, 1])
    await drainUntilIdle()
    receiver.close()
    assertMapped(receiver.received, ({ body }) => body.type, ['application.decided'])
    const list = await books.json('endpoints', 'list', '--user', creatorId)
    const show = await books.json('endpoints', 'show', id)
    assert.equal([list.items.length, list.items[0].user.id], [1, creatorId])
    const [{ event_id, attempt_log }] = show.deliveries
    assert.equal([show.counts.pending, attempt_log.length, attempt_log[0].response_status], [1, 1, 503])
    const text = await books.says(
      ['endpoints', 'show', id],
      /0 delivered, 1 pending, 0 failed/,
      new RegExp(`Attempts at the newest delivery with a problem, event ${event_id}:`),
      /503\tThe endpoint answered 503\.\t\d+ ms/,
    )
    assert.not.match(JSON.stringify([list, show]) + text, /private/)
    const disabled = await books.json('endpoints', 'disable', id, '--reason', 'abuse', '--yes')
    assert.equal([disabled.enabled, disabled.disabled_reason], [false, 'operator'])
    await books.refuses(['endpoints', 'show', EXAMPLE_ID], /Webhook endpoint not found/)
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
    assert.equal((await books.json('offers', 'list', '--vetting', 'pending')).items, [])
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
    const exportTo = (name: string, ...options: string[]) => {
      const file = join(books.market.bed.testDatabase.folder, name)
      return { file, words: ['jobs', 'export', 'sales', file, ...options] }
    }
    const linesOf = (file: string) => readFileSync(file, 'utf8').trimEnd().split(/\r?\n/)
    const sheet = exportTo('sales.csv', '--excel')
    const { rows } = await books.json(...sheet.words)
    const [titles = '', first = '', ...others] = linesOf(sheet.file)
    assert.ok(titles.startsWith('\ufeffid,') && titles.includes('merchant_id'), titles)
    assert.match(first, /,"=""\d+""",/)
    assert.is(others.length, rows - 1)
    await books.refuses(sheet.words, /exists\. Name a new file/)
    const own = exportTo('own.ndjson', '--user', books.creatorId, '--format', 'ndjson')
    await books.says(own.words, /Wrote \d+ rows? to /)
    for (const line of linesOf(own.file).map((text) => JSON.parse(text)))
      assert.equal([line.creator_id, line.platform_fee], [books.creatorId, undefined])
    const [cycle] = (await books.json('billing', 'cycles')).items
    const invoice = exportTo('invoice.csv', '--cycle', cycle.id)
    const sold = await books.json(...invoice.words)
    for (const line of linesOf(invoice.file).slice(1)) assert.match(line, cycle.id)
    assert.ok(sold.rows > 0 && sold.rows < rows)
    await books.refuses([...own.words, '--excel'], /with the format csv only/, 2)
    const cycles = ['jobs', 'export', 'billing_cycles', sheet.file, '--user', books.creatorId]
    await books.refuses(cycles, /Creators have no billing cycles/)
    await books.refuses(['jobs', 'export', 'sales', '/dev/full/x', '--yes'], /\/dev\/full\/x: /)
  })

  it('resolves a flag once, with a note', async () => {
    const { items } = await books.json('flagged', 'list', '--kind', 'event_set_aside')
    const [flag] = items
    assert.equal([items.length, flag.severity, flag.subject_type], [1, 'high', 'store_events'])
    const resolve = (id: string, note: string) => ['flagged', 'resolve', id, '--note', note]
    const said = /event_set_aside is resolved: a test of theirs/
    await books.says(resolve(flag.id, 'a test of theirs'), said)
    await books.refuses(resolve(flag.id, 'something else'), /resolved with another note/)
    await books.refuses(resolve(EXAMPLE_ID, 'x'), /not found/)
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
    // It is still malformed.
    await drainUntilIdle()
    assert.is((await books.json('webhooks', 'show', event.id)).state, 'set_aside')
    const [done] = (await books.json('webhooks', 'events', '--state', 'done', '--limit', '1')).items
    await books.refuses(['webhooks', 'retry', done.id], /is done: it is never applied twice/)
    await books.refuses(['webhooks', 'retry', 'no-such-delivery', '--json'], /"code":"not_found"/)
  })

  it('releases one of several claims on a domain, and allows it again', async () => {
    const domain = `s${books.otherShop.merchantId}.myshopify.com`
    const claim = { shop_domain: domain, webhook_secret: 'secret-of-the-owner' }
    await connectStore(books.market.platform, books.shop.merchantId, claim)
    const unnamed = await books.refuses(['stores', 'release', domain, '--yes', '--json'], /merchants claim/)
    assert.is(JSON.parse(unnamed.stderr).candidates.length, 2)
    const merchant = ['--merchant', books.otherShop.merchantId]
    const release = ['stores', 'release', domain.toUpperCase(), ...merchant, '--yes']
    await books.says(release, /^Released .*\n.*stores allow/)
    await books.refuses(release, /No store in use of .* has the domain/)
    await books.says(['stores', 'list'], new RegExp(`^${domain}\treleased `, 'm'))
    assert.equal((await books.json('stores', 'list', ...merchant)).items, [])
    const allow = ['stores', 'allow', domain, ...merchant]
    await books.says(allow, /can connect .* again/)
    await books.refuses(allow, /./)
    // With one claim left no one has to be named.
    const rest = await books.json('stores', 'release', domain, '--yes')
    assert.equal([rest.merchant.id, rest.offers_paused], [books.shop.merchantId, 0])
  })

  it('shows what a suspension will do before it is done', async () => {
    const suspend = (id: string, ...more: string[]) => ['users', 'suspend', id, ...more]
    await books.says(
      suspend(books.creatorId, '--dry-run'),
      /1 link will go on leading to the shop and earn nothing more/,
      /Rs 0\.00 released, Rs 5,624\.88 pending\.\nNothing was done\./,
    )
    const { changed, effects } = await books.json(...suspend(books.shop.merchantId, '--dry-run'))
    assert.equal([changed, effects.merchant.open_cycles.amount], [false, '6187.37'])
    const done = await books.json(...suspend(books.creatorId, '--yes'))
    assert.equal([done.changed, done.effects.creator.links], [true, 1])
    assert.is((await books.json('users', 'reinstate', books.creatorId, '--yes')).changed, true)
  })

  it('has a refused invoice requested again, after a look at what the processor holds', async () => {
    const { market } = books
    const [open] = (await books.json('billing', 'cycles', '--state', 'open')).items
    const reissue = (...more: string[]) =>
      books.affiliate(['billing', 'reissue', open.id, ...more], stub.settings)
    assert.match((await reissue('--yes')).stderr, /is open. It is invoiced when it closes/)
    await books.json('billing', 'close', '--as-of', open.period_end, '--yes')
    market.processor.answers = ['refuse']
    await drainUntilIdle()
    const advice = `refused: 422 no such account; then "affiliate billing reissue ${open.id}"`
    await books.says(['billing', 'cycles', '--state', 'closed'], new RegExp(advice))
    stub.down = true
    assert.match((await reissue('--yes')).stderr, /processor did not answer the look-up/)
    stub.down = false
    // The refused one itself, which the processor has kept.
    stub.held = [{ id: 'inv_0', reference: open.id, amount: '6187.37', currency: 'PKR', status: 'rejected' }]
    const made = await reissue('--yes', '--json')
    assert.is(made.code, 0, made.stderr)
    const { amount_due, invoice_at_the_processor } = JSON.parse(made.stdout)
    assert.equal([amount_due, invoice_at_the_processor], ['6187.37', null])
    assert.not((await openFlagsOf(market.platform)).includes(`processor_refusal ${open.id}`))
    stub.held = []
    await drainUntilIdle()
    const [cycle] = (await books.json('billing', 'cycles', '--state', 'closed')).items
    assert.is(cycle.processor_invoice_id, market.processor.invoices[0]?.id)
    await market.confirmPayment(open.id)
    await drainUntilIdle()
    assert.match((await reissue('--yes')).stderr, /is paid/)
  })

  it('sends a refused payout again, or takes over what the processor holds', async () => {
    const { market } = books
    await books.json('payouts', 'run', '--yes')
    market.processor.answers = ['refuse']
    await drainUntilIdle()
    const [payout] = (await books.json('payouts', 'list', '--state', 'pending')).items
    assert.equal([payout.call.state, payout.call.detail], ['refused', '422 no such account'])
    const advice = `refused: 422 .*then "affiliate payouts retry ${payout.id}"`
    await books.says(['payouts', 'list'], new RegExp(advice))
    // The refusal was not the whole truth: it has the payout after all.
    const held = { id: 'po_7', reference: payout.id, currency: 'PKR', status: 'processing' }
    stub.held = [{ ...held, amount: payout.amount }]
    market.processor.payouts.push({ ...held, amount: 562_488, attemptId: 'x', rest: null })
    const retry = () => books.affiliate(['payouts', 'retry', payout.id, '--yes'], stub.settings)
    assert.match((await retry()).stdout, /holds payout po_7 already: the running service takes it over/)
    const calls = market.processor.calls.length
    await drainUntilIdle()
    const [submitted] = (await books.json('payouts', 'list', '--state', 'submitted')).items
    assert.equal([submitted.processor_payout_id, market.processor.calls.length], ['po_7', calls])
    assert.match((await retry()).stderr, /is submitted/)
    await market.settlePayout(payout.id, 'failed')
    await drainUntilIdle()
    assert.match((await retry()).stderr, /failed and its amount is back in the balance/)
  })

  it('shows on one screen where everything stands', async () => {
    const { platform } = books.market
    for (const name of ['billing', 'payouts', 'reconciliation']) await noteStarted(platform, name)
    await noteFinished(platform, 'billing', { closed: 1, digest: 'long' })
    await noteFailed(platform, 'payouts', 'no answer')
    const found = { compared: 3, differing: 1, unanswered: 2, complete: false }
    await noteFinished(platform, 'reconciliation', found)
    const json = await books.json('status')
    const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)
    const { last_24_hours: day } = json
    assert.equal([day.clicks, day.sales_accepted, day.sales_rejected].map(sum), [2, 2, 1])
    assert.equal([day.clicks.length, day.commission], [24, '5624.88'])
    assert.equal(json.payouts.released, { creators: 1, amount: '5624.88' })
    assert.equal([json.set_aside, json.flags.high], [1, 1])
    assert.equal([json.database.dialect, json.database.pending], [dialect, []])
    const accepted = /Sales +·*█·* {2}2 accepted, commission Rs 5,624\.88\n/
    await books.says(
      ['status'],
      accepted,
      /Rs 5,624\.88 released to 1 creator, in no payout/,
      /billing: .*: closed 1\n/,
      /payouts: failed .* and is repeated: no answer\n/,
      /reconciliation: .*: 3 compared, 1 differ, 2 unanswered, not complete\n/,
    )
  })

  it('says of an order that could not be read that it was set aside, and why', async () => {
    const { market, otherShop } = books
    const untimed =
      '{"id": 820982911946154777, "name": "#5001\\u001b[2J", "currency": "PKR", "created_at": 5}'
    await market.deliver(otherShop, untimed)
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

  it("compares a store's own order export with its sales", async () => {
    const { folder } = books.market.bed.testDatabase
    // It arrived, but could not be read.
    await books.market.deliver(books.shop, '{"id":6100000009004,"name":"#2004"}')
    await drainUntilIdle()
    const path = join(folder, 'orders_export.csv')
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
    const compare = (domain: string, from: string) => ['stores', 'compare', domain, from]
    const domain = `s${books.shop.merchantId}.myshopify.com`
    const found = await books.json(...compare(domain, path))
    assert.equal(
      [found.orders, found.not_paid, found.before_connection, found.accepted, found.rejected.count],
      [5, 1, 1, 1, 0],
    )
    const [missing, unreadable] = found.never_reported.items
    assert.equal([missing.order_id, missing.subtotal, missing.set_aside], ['6100000009001', '100.00', null])
    assert.match(unreadable.set_aside, /^malformed: /)
    const [other] = found.other_amounts.items
    assert.equal([other.order_name, other.subtotal, other.reported_subtotal], ['#1001', '4998.00', '4999.00'])
    await books.says(compare(domain, path), /Never reported: 2\n.*\n#2001\ufffd\[2J\t6100000009001\t/)
    for (const wrong of [folder, `${path}.missing`, '/dev/zero'])
      assert.is((await books.refuses(compare(domain, wrong), /^[^\n]*\n$/)).stdout, '')
    const none = /Store nothing\.myshopify\.com not found/
    await books.refuses(compare('nothing.myshopify.com', path), none)
  })

  it('lists orders that wait for their payment, and tells their life', async () => {
    const { market, shop, slug, creatorId, otherShop } = books
    const link = await linkOfSlug(market.platform, market.platform.database.reader, slug)
    assert.ok(link)
    const click = await market.click(link)
    const createdAt = market.clock.now()
    const placed = { id: '6100000007001', name: '#7001', price: 100_000, click, createdAt }
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

  it('moves no money with other settings than a running process, and audits a change of them', async () => {
    const { platform } = books.market
    const changed = (...words: string[]) => books.affiliate(words, { PAYOUT_THRESHOLD: '1.00' })
    const changes = () => rowsOf(platform, 'audit_entries', { action: 'settings.change' })
    const running = await joinProcesses({ ...platform, clock: systemClock })
    const refused = /setting PAYOUT_THRESHOLD: is 1\.00 here and 1000\.00 in process \d+/
    for (const words of [
      ['payouts', 'run', '--yes'],
      ['billing', 'close', '--yes'],
    ]) {
      assert.match((await changed(...words)).stderr, refused)
      await books.says(words)
    }
    assert.is((await changed('payouts', 'list')).code, 0)
    await running.stop()
    assert.is((await changed('payouts', 'run', '--dry-run')).code, 0)
    assert.equal(await changes(), [])
    for (const words of ['payouts run', 'billing close'])
      assert.is((await changed(...words.split(' '), '--yes')).code, 0)
    assertMapped(await changes(), ({ after }) => JSON.parse(after ?? '{}').PAYOUT_THRESHOLD, [100])
  })

  it('leaves the books in order', () => books.market.verify())

  it.run()
}
