// long
import { writeFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startExport } from '../../server/exports/exports.service.ts'
import { retryDelivery } from '../../server/notifications/channels/webhooks/deliveries.service.ts'
import { createEndpoint } from '../../server/notifications/channels/webhooks/endpoints.service.ts'
import { createOffer } from '../../server/offers/offers.service.ts'
import { connectStore } from '../../server/stores/stores.service.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { OFFER } from '../../server/test/testkit/listings.ts'
import { attemptsOf, openFlagsOf } from '../../server/test/testkit/marketplace.ts'
import { openWebhookReceiver } from '../../server/test/testkit/webhook-receiver.ts'
import { type Books, openBooks } from './books.ts'
import { openProcessorStub, type ProcessorStub } from './processor-stub.ts'

const NOBODY = '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'

for (const dialect of testDialects()) {
  const it = suite(`the operator's desk on ${dialect}`)
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
    const [all, rejected, ofCreator, ofShop, none, human, wrong] = await Promise.all([
      books.json('sales', 'list'),
      books.json('sales', 'list', '--status', 'rejected'),
      books.json('sales', 'list', '--creator', books.creatorId),
      books.json('sales', 'list', '--merchant', `${books.shop.merchantId}@example.com`, '--limit', '1'),
      books.json('sales', 'list', '--to', '2020-01-01'),
      books.affiliate(['sales', 'list', '--status', 'accepted']),
      books.affiliate(['sales', 'list', '--from', '2026-02-01', '--to', '2026-01-01']),
    ])
    assert.is(all.items.length, 3)
    assert.equal(
      rejected.items.map((sale: { rejection_reason: string }) => sale.rejection_reason),
      ['no_tracking_reference'],
    )
    assert.equal(
      ofCreator.items.map((sale: { order_name: string }) => sale.order_name),
      ['#1002', '#1001'],
    )
    assert.equal([ofShop.items.length, none.items], [1, []])
    assert.is(ofCreator.items[1].commission, '624.88')
    assert.match(human.stdout, /#1001\t.*\taccepted\t4999\.00\t624\.88\t62\.49/)
    assert.is(wrong.code, 2)
    assert.match(wrong.stderr, /--from must be before --to/)
  })

  it('shows webhook endpoints, sends events again, and disables an endpoint for good', async () => {
    const { market, creatorId } = books
    const receiver = await openWebhookReceiver()
    const owner = { userId: creatorId, role: 'creator', sessionId: creatorId } as const
    const fields = { url: `${receiver.url}?key=private`, events: ['application.decided'], description: '' }
    const { id } = await createEndpoint(market.platform, owner, fields)
    const unasked = await books.affiliate(['endpoints', 'replay', id])
    assert.equal([unasked.code, receiver.received.length], [1, 0])
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
    assert.is((await books.json('endpoints', 'replay', id, '--since', tomorrow, '--yes')).events, 0)
    assert.is((await books.json('endpoints', 'replay', id, '--since', '2020-01-01', '--yes')).events, 1)
    receiver.answer = (response) => response.writeHead(503).end()
    await drainUntilIdle()
    const failing = await books.affiliate(['endpoints', 'show', id])
    const { event_id, attempt_log } = (await books.json('endpoints', 'show', id)).deliveries[0]
    assert.equal([attempt_log.length, attempt_log[0].response_status], [1, 503])
    assert.match(failing.stdout, `Attempts at the newest delivery with a problem, event ${event_id}:`)
    assert.match(failing.stdout, /503\t\d+ ms\tThe endpoint answered 503\./)
    receiver.received.length = 0
    receiver.answer = (response) => response.writeHead(204).end()
    await retryDelivery(
      market.platform,
      creatorId,
      (await books.json('endpoints', 'show', id)).deliveries[0].id,
    )
    await drainUntilIdle()
    receiver.close()
    assert.equal(
      receiver.received.map(({ body }) => body.type),
      ['application.decided'],
    )
    const [list, show, text] = [
      await books.json('endpoints', 'list', '--user', creatorId),
      await books.json('endpoints', 'show', id),
      await books.affiliate(['endpoints', 'show', id]),
    ]
    assert.equal([list.items.length, list.items[0].user.id], [1, creatorId])
    assert.equal(show.counts, { pending: 0, delivered: 1, failed: 0 })
    assert.is(show.deliveries[0].response_status, 204)
    assert.match(text.stdout, /1 delivered, 0 pending, 0 failed/)
    assert.not.match(JSON.stringify([list, show]) + text.stdout, /private/)
    const disabled = await books.json('endpoints', 'disable', id, '--reason', 'abuse', '--yes')
    assert.equal([disabled.enabled, disabled.disabled_reason], [false, 'operator'])
    assert.is((await lastAudit()).reason, 'abuse')
    const refused = await books.affiliate(['endpoints', 'replay', id, '--yes'])
    assert.equal([refused.code, refused.stdout], [1, ''])
    assert.match(refused.stderr, /The endpoint is disabled/)
    const unknown = await books.affiliate(['endpoints', 'show', NOBODY])
    assert.match(unknown.stderr, /Webhook endpoint not found/)
  })

  it('checks a store: what arrived, what was refused, what to do', async () => {
    const domain = `s${books.shop.merchantId}.myshopify.com`
    const broken = `s${books.otherShop.merchantId}.myshopify.com`
    const [well, unwell, list, unknown] = await Promise.all([
      books.affiliate(['stores', 'check', domain, '--json']),
      books.affiliate(['stores', 'check', broken]),
      books.json('stores', 'list'),
      books.affiliate(['stores', 'check', 'nothing.myshopify.com']),
    ])
    const [store] = JSON.parse(well.stdout).stores
    assert.equal([store.status, store.tracked_30d.landing], ['receiving', 2])
    // Its orders bring their reference by the landing page only.
    assert.equal(
      [well.code, store.findings.map((one: { state: string }) => one.state)],
      [1, ['ok', 'ok', 'todo']],
    )
    assert.match(
      store.findings[2].next,
      /^Put <script src="http.*\/store\.js" async><\/script> before <\/head>/,
    )
    assert.is(unwell.code, 1)
    assert.match(unwell.stdout, /1 signed order of the last 7 days could not be read/)
    assert.match(unwell.stdout, /no_tracking_reference 1/)
    assert.match(unwell.stderr, /^affiliate: 1 to do for s.*, marked with ✗\.$/m)
    assert.equal(
      list.items.map((one: { status: string }) => one.status),
      ['receiving', 'receiving'],
    )
    assert.equal([unknown.code, unknown.stdout], [1, ''])
    assert.match(unknown.stderr, /No store in use has the domain nothing\.myshopify\.com\./)
    const all = await books.affiliate(['stores', 'check', '--json'])
    assert.equal([all.code, JSON.parse(all.stdout)], [0, { rejecting: [], unclaimed: [] }])
  })

  it('lists offers, and decides on the rate that was looked at', async () => {
    const { platform } = books.market
    const merchant = books.shop.merchantId
    const { id } = await createOffer(platform, merchant, {
      ...OFFER,
      title: 'High one',
      commission_rate: 4000,
    })
    const pending = await books.json('offers', 'list', '--vetting', 'pending')
    assert.equal([pending.items.length, pending.items[0].id, pending.items[0].commission_rate], [1, id, 40])
    assert.is(
      (await books.json('offers', 'list', '--status', 'live', '--merchant', merchant)).items.length,
      1,
    )
    const other = await books.affiliate(['offers', 'vet', id, '--approve', '--rate', '35', '--yes'])
    assert.is(other.code, 1)
    assert.match(other.stderr, /rate is now 40 %/)
    const vet = ['offers', 'vet', id, '--approve', '--reason', 'end of season', '--yes']
    const approved = await books.affiliate(vet)
    assert.match(approved.stdout, /"High one" is approved at 40 %/)
    const { action, actor, reason, after } = await lastAudit()
    assert.equal(
      [action, actor, reason, after.vetting],
      ['offer.vet', 'operator', 'end of season', 'approved'],
    )
    assert.equal((await books.json('offers', 'list', '--vetting', 'pending')).items, [])
    const [unknown, both] = await Promise.all([
      books.affiliate(['offers', 'vet', NOBODY, '--reject']),
      books.affiliate(['offers', 'vet', id, '--approve', '--reject']),
    ])
    assert.equal([unknown.code, both.code], [1, 2])
    assert.match(unknown.stderr, /Offer .*not found/)
  })

  it('lists jobs', async () => {
    const owner = { userId: books.creatorId, role: 'creator' } as const
    await startExport(books.market.platform, owner, {
      resource: 'sales',
      format: 'csv',
      from: null,
      to: null,
    })
    const [json, human] = [await books.json('jobs', 'list'), await books.affiliate(['jobs', 'list'])]
    assert.equal([json.items[0].state, json.items[0].resource], ['queued', 'sales'])
    assert.is(json.items[0].user.id, books.creatorId)
    assert.match(human.stdout, /sales as csv\tqueued\t0\t/)
  })

  it('resolves a flag once, with a note', async () => {
    const { items } = await books.json('flagged', 'list', '--kind', 'event_set_aside')
    const [flag] = items
    assert.equal([items.length, flag.severity, flag.subject_type], [1, 'high', 'store_events'])
    const resolve = (note: string) => books.affiliate(['flagged', 'resolve', flag.id, '--note', note])
    assert.match((await resolve('a test of theirs')).stdout, /event_set_aside is resolved: a test of theirs/)
    const [again, other, unknown, kind] = await Promise.all([
      resolve('a test of theirs'),
      resolve('something else'),
      books.affiliate(['flagged', 'resolve', NOBODY, '--note', 'x']),
      books.affiliate(['flagged', 'list', '--kind', 'self_purchas']),
    ])
    assert.equal([again.code, other.code, unknown.code, kind.code], [0, 1, 1, 2])
    assert.match(other.stderr, /resolved with another note/)
    assert.match(kind.stderr, /Did you mean self_purchase\?/)
    assert.match(
      (await books.affiliate(['flagged', 'list', '--status', 'resolved'])).stdout,
      /a test of theirs/,
    )
  })

  it('shows an event, and has it tried again', async () => {
    const [event] = (await books.json('webhooks', 'events', '--state', 'set_aside')).items
    const [shown, withBody, byDelivery, human] = await Promise.all([
      books.json('webhooks', 'show', event.id),
      books.json('webhooks', 'show', event.id, '--body'),
      books.json('webhooks', 'show', event.delivery_id),
      books.affiliate(['webhooks', 'show', event.id, '--body']),
    ])
    assert.equal([shown.state, shown.body], ['set_aside', undefined])
    assert.equal(shown, byDelivery)
    assert.is(withBody.body, '{"id": "no order at all"}')
    assert.match(human.stdout, /State +set_aside\n(.|\n)*malformed(.|\n)*\{"id": "no order at all"\}/)
    const retried = await books.affiliate([
      'webhooks',
      'retry',
      event.id,
      '--reason',
      'parser fixed',
      '--yes',
    ])
    assert.match(retried.stdout, /tries it again\. Last time: malformed/)
    const { action, reason, before, after } = await lastAudit()
    assert.equal([action, reason], ['event.retry', 'parser fixed'])
    assert.equal([before.state, after.state], ['set_aside', 'pending'])
    await drainUntilIdle()
    // It is still malformed, so it is set aside and flagged again.
    assert.is((await books.json('webhooks', 'show', event.id)).state, 'set_aside')
    assert.ok(
      (await openFlagsOf(books.market.platform)).includes(`event_set_aside ${event.store.id}:unreadable`),
    )
    const [done] = (await books.json('webhooks', 'events', '--state', 'done', '--limit', '1')).items
    const [settled, unknown] = await Promise.all([
      books.affiliate(['webhooks', 'retry', done.id]),
      books.affiliate(['webhooks', 'retry', 'no-such-delivery', '--json']),
    ])
    assert.equal([settled.code, unknown.code, JSON.parse(unknown.stderr).code], [1, 1, 'not_found'])
    assert.match(settled.stderr, /is done: it is never applied twice/)
  })

  it('releases one of several claims on a domain, and allows it again', async () => {
    const { platform } = books.market
    const domain = `s${books.otherShop.merchantId}.myshopify.com`
    const owner = books.shop.merchantId
    assert.is((await books.json('stores', 'list')).items.length, 2)
    assert.is((await books.json('stores', 'list', '--merchant', books.otherShop.merchantId)).items.length, 1)
    const claim = { shop_domain: domain, webhook_secret: 'secret-of-the-owner' }
    await connectStore(platform, owner, claim)
    const unnamed = await books.affiliate(['stores', 'release', domain, '--yes', '--json'])
    assert.is(unnamed.code, 1)
    assert.is(JSON.parse(unnamed.stderr).candidates.length, 2)
    const named = ['stores', 'release', domain.toUpperCase(), '--merchant', books.otherShop.merchantId]
    const unasked = await books.affiliate(named)
    assert.is(unasked.code, 1)
    assert.match(unasked.stderr, /^affiliate: Not a terminal; confirm with --yes\.\n$/)
    const release = [...named, '--reason', 'the owner proved it', '--yes']
    assert.match((await books.affiliate(release)).stdout, /^Released .*\n.*stores allow/)
    const { action, reason, before, after } = await lastAudit()
    assert.equal([action, reason], ['store.release', 'the owner proved it'])
    assert.equal([before.in_use, after.in_use, after.released], [true, false, true])
    const again = await books.affiliate(release)
    assert.is(again.code, 1)
    assert.match(again.stderr, /No store in use of .* has the domain/)
    const { items } = await books.json('stores', 'list')
    const released = items.filter((store: { released_at: string | null }) => store.released_at !== null)
    assert.equal(
      released.map((store: { merchant: { id: string } }) => store.merchant.id),
      [books.otherShop.merchantId],
    )
    const allow = ['stores', 'allow', domain, '--merchant', books.otherShop.merchantId]
    assert.match((await books.affiliate(allow)).stdout, /can connect .* again/)
    assert.is((await lastAudit()).action, 'store.allow')
    assert.is((await books.affiliate(allow)).code, 1)
    // With one claim left no one has to be named.
    const rest = await books.json('stores', 'release', domain, '--yes')
    assert.equal([rest.merchant.id, rest.offers_paused], [owner, 0])
  })

  it('shows what a suspension will do before it is done', async () => {
    const suspend = (...more: string[]) => ['users', 'suspend', books.creatorId, ...more]
    const dry = await books.affiliate(suspend('--dry-run'))
    assert.match(dry.stdout, /1 link will go on leading to the shop and earn nothing more/)
    assert.match(dry.stdout, /Rs 0\.00 released, Rs 5,624\.88 pending\.\nNothing was done\./)
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
    const reissue = (...more: string[]) => books.affiliate(['billing', 'reissue', ...more], stub.settings)
    const [open] = (await books.json('billing', 'cycles', '--state', 'open')).items
    const early = await reissue(open.id, '--yes')
    assert.match(early.stderr, /is open. It is invoiced when it closes/)
    await books.json('billing', 'close', '--as-of', open.period_end, '--yes')
    const waiting = await reissue(open.id, '--yes')
    assert.match(waiting.stderr, /under way/)
    market.processor.answers = ['refuse']
    await drainUntilIdle()
    assert.ok((await openFlagsOf(market.platform)).includes(`processor_refusal ${open.id}`))
    const listed = await books.affiliate(['billing', 'cycles', '--state', 'closed'])
    assert.match(
      listed.stdout,
      new RegExp(`refused: 422 no such account; then "affiliate billing reissue ${open.id}"`),
    )
    stub.down = true
    const down = await reissue(open.id, '--yes')
    stub.down = false
    stub.held = [{ id: 'inv_9', reference: open.id, amount: '1.00', currency: 'PKR', status: 'open' }]
    const other = await reissue(open.id, '--yes')
    // The refused one itself, which the processor has kept.
    stub.held = [{ id: 'inv_0', reference: open.id, amount: '6187.37', currency: 'PKR', status: 'rejected' }]
    assert.match(down.stderr, /processor did not answer the look-up/)
    assert.match(other.stderr, /holds Rs 1\.00 \(PKR\)/)
    const unasked = await reissue(open.id)
    assert.equal(
      [early, waiting, down, other, unasked].map(({ code }) => code),
      [1, 1, 1, 1, 1],
    )
    assert.is((await attemptsOf(market.platform, open.id)).length, 1)
    const made = await reissue(open.id, '--yes', '--reason', 'address corrected', '--json')
    assert.is(made.code, 0, made.stderr)
    const { amount_due, invoice_at_the_processor } = JSON.parse(made.stdout)
    assert.equal([amount_due, invoice_at_the_processor], ['6187.37', null])
    stub.held = []
    const { action, before, after } = await lastAudit()
    const [refused, anew] = await attemptsOf(market.platform, open.id)
    assert.equal([action, before.attempt_id, after.attempt_id], ['billing.reissue', refused?.id, anew?.id])
    assert.not((await openFlagsOf(market.platform)).includes(`processor_refusal ${open.id}`))
    await drainUntilIdle()
    const [cycle] = (await books.json('billing', 'cycles', '--state', 'closed')).items
    assert.is(cycle.processor_invoice_id, market.processor.invoices[0]?.id)
    assert.match((await reissue(open.id, '--yes')).stderr, /has it already/)
    await market.confirmPayment(open.id)
    await drainUntilIdle()
    assert.match((await reissue(open.id, '--yes')).stderr, /is paid/)
  })

  it('sends a refused payout again, or takes over what the processor holds', async () => {
    const { market } = books
    const retry = (...more: string[]) => books.affiliate(['payouts', 'retry', ...more], stub.settings)
    await books.json('payouts', 'run', '--yes')
    market.processor.answers = ['refuse']
    await drainUntilIdle()
    const [payout] = (await books.json('payouts', 'list', '--state', 'pending')).items
    assert.equal([payout.call.state, payout.call.detail], ['refused', '422 no such account'])
    const listed = await books.affiliate(['payouts', 'list'])
    assert.match(listed.stdout, new RegExp(`refused: 422 .*then "affiliate payouts retry ${payout.id}"`))
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
    const sent = await retry(payout.id, '--yes', '--reason', 'they say it is there')
    assert.match(sent.stdout, /holds payout po_7 already: the running service takes it over/)
    assert.is((await lastAudit()).action, 'payout.retry')
    const calls = market.processor.calls.length
    await drainUntilIdle()
    const [submitted] = (await books.json('payouts', 'list', '--state', 'submitted')).items
    assert.equal([submitted.processor_payout_id, market.processor.calls.length], ['po_7', calls])
    const again = await retry(payout.id, '--yes')
    assert.match(again.stderr, /is submitted/)
    await market.settlePayout(payout.id, 'failed')
    await drainUntilIdle()
    const failed = await retry(payout.id, '--yes')
    assert.match(failed.stderr, /failed and its amount is back in the balance/)
    const unknown = await retry(NOBODY, '--yes', '--json')
    assert.is(JSON.parse(unknown.stderr).code, 'not_found')
    assert.equal([again.code, failed.code, unknown.code], [1, 1, 1])
  })

  it('shows on one screen where everything stands', async () => {
    const [json, human] = [await books.json('status'), await books.affiliate(['status'])]
    const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)
    const { last_24_hours: day } = json
    assert.equal([day.clicks, day.sales_accepted, day.sales_rejected].map(sum), [2, 2, 1])
    assert.equal([day.clicks.length, day.commission], [24, '5624.88'])
    assert.equal(json.payouts.released, { creators: 1, amount: '5624.88' })
    assert.equal([json.set_aside, json.flags.high], [1, 1])
    assert.equal([json.database.dialect, json.database.pending], [dialect, []])
    assert.match(human.stdout, /Sales +·*█·* {2}2 accepted, commission Rs 5,624\.88\n/)
    assert.match(human.stdout, /Rs 5,624\.88 released to 1 creator, in no payout/)
  })

  it('says of an order that could not be read that it was set aside, and why', async () => {
    const { market, otherShop } = books
    await market.deliver(
      otherShop,
      '{"id": 820982911946154777, "name": "#5001\\u001b[2J", "currency": "PKR", "created_at": 5}',
    )
    await market.deliver(otherShop, `{"id":820982911946154778,"x":[${'{},'.repeat(100_000)}{}]}`)
    await drainUntilIdle()
    const [json, human, large, unknown] = await Promise.all([
      books.json('sales', 'explain', '#5001 [2J'),
      books.affiliate(['sales', 'explain', '820982911946154777']),
      books.json('sales', 'explain', '820982911946154778'),
      books.affiliate(['sales', 'explain', '820982911946154779']),
    ])
    const [order] = json.set_aside
    assert.equal([order.order_id, order.store.id], ['820982911946154777', otherShop.storeId])
    assert.match(order.reason, /^malformed: created_at is no RFC 3339 time/)
    assert.match(human.stdout, /Order #5001 \[2J (.|\n)*SET ASIDE(.|\n)*Reason +malformed: created_at/)
    assert.not.ok(human.stdout.includes('\u001b[2J'))
    assert.is(large.set_aside[0].reason, 'malformed: more than 150000 JSON tokens')
    assert.is(unknown.code, 1)
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
    const human = await books.affiliate(['stores', 'compare', domain, path])
    assert.match(human.stdout, /Never reported: 2\n.*\n#2001\ufffd\[2J\t6100000009001\t/)
    for (const wrong of [testDatabase.folder, `${path}.missing`, '/dev/zero']) {
      const { code, stdout, stderr } = await books.affiliate(['stores', 'compare', domain, wrong])
      assert.equal([code, stdout, stderr.trim().split('\n').length], [1, '', 1], stderr)
    }
    const unknown = await books.affiliate(['stores', 'compare', 'nothing.myshopify.com', path])
    assert.match(unknown.stderr, /Store nothing\.myshopify\.com not found/)
    assert.equal(await count(), before)
  })

  it.run()
}
