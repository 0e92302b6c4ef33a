// long
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openFlags } from '../../server/flags/flags.service.ts'
import { listEvents } from '../../server/inbox/events.service.ts'
import { connectStore } from '../../server/stores/stores.service.ts'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { addLink, addLiveOffer } from '../../server/test/testkit/listings.ts'
import { giveDestination } from '../../server/test/testkit/marketplace.ts'
import { orderBody, orderHeaders } from '../../server/test/testkit/orders.ts'
import { addUser } from '../../server/test/testkit/people.ts'
import { pluck, pluckAll } from '../../server/test/testkit/pluck.ts'
import { rowsOf } from '../../server/test/testkit/rows.ts'
import { call, openServiceBed, type ServiceBed } from '../../server/test/testkit/service-bed.ts'
import { verifyBooks } from '../../server/verification/verify-books.ts'
import { startAffiliate } from '../test/run-affiliate.ts'
import { runHere, typeHere } from '../test/run-here.ts'

const it = suite('replaying to a running service')
let bed: ServiceBed
let slug: string
let creatorId: string
let settings: Record<string, string>
const DOMAIN = 'chenab-lawn.myshopify.com'

const SECRET = 'a-secret-of-the-store'

it.before(async () => {
  bed = await openServiceBed('sqlite')
  const { platform } = bed.service.app
  const merchant = await addUser(platform, 'merchant', 'Chenab Lawn')
  const creator = await addUser(platform, 'creator', 'Sana Mirza')
  creatorId = creator.userId
  await connectStore(platform, merchant.userId, { shop_domain: DOMAIN, webhook_secret: SECRET })
  const terms = { commission_rate: 1250, product_ids: ['8123456789012'] }
  const offer = await addLiveOffer(platform, merchant, terms)
  slug = (await addLink(platform, merchant, creator, offer.id)).slug
  // The service has made a key of its own.
  settings = { DATABASE_URL: bed.testDatabase.url, DATA_DIR: bed.testDatabase.folder, APP_KEY: '' }
})
it.after(() => bed.close())

const replay = (...args: string[]) => runHere(['webhooks', 'replay', ...args, '--url', bed.url], settings)
/** Runs it, expects this exit code and these words on stderr. */
const refuses = async (args: string[], why: RegExp, code = 1) => {
  const ended = await replay(...args)
  assert.is(ended.code, code, ended.stderr)
  assert.match(ended.stderr, why)
}
/** Runs it with `--json`, expects exit 0, and answers its document. */
const report = async (...args: string[]) => {
  const { code, stdout, stderr } = await replay(...args, '--json')
  assert.is(code, 0, stderr)
  return JSON.parse(stdout)
}
const json = async (...args: string[]) => JSON.parse((await runHere([...args, '--json'], settings)).stdout)

/** An order that came by a link, of another shop so far. */
function pointed(id: string): string {
  const body = orderBody({ price: 250_000, createdAt: Date.now() + 60_000, click: 'of-another-shop', id })
  // Beyond what JavaScript can count exactly.
  return body.replace(String(Number(id)), id)
}

it('delivers all orders several times in any order, and expects what the terms of the link say of each, once', async () => {
  const { items, skipped, link } = await report('all', '--times', '2', '--shuffle')
  assert.ok(items.length >= 14)
  assert.equal([link.slug, link.commission_rate, link.product_ids], [slug, 12.5, ['8123456789012']])
  assert.equal(pluck(skipped, 'fixture'), ['coupon-code', 'outside-attribution-window', 'whatsapp-order'])
  const sales = new Map<string, Record<string, string>>()
  for (const { fixture, answers, as_expected, sale } of items) {
    assert.equal([answers, as_expected], [[200, 200], true], fixture)
    sales.set(fixture, sale)
  }
  const orderIds = [...sales.values()].map((sale) => sale?.order_id)
  assert.equal([new Set(orderIds).size, orderIds.includes(undefined)], [items.length, false])
  // The link covers one of its three lines.
  const { net_amount, commission } = sales.get('several-lines-with-discounts') ?? {}
  assert.equal([net_amount, commission], ['4498.20', '562.28'])
  assert.is(sales.get('gift-card')?.rejection_reason, 'product_not_in_offer')
  const flags = await openFlags(bed.service.app.database.reader, 'order_date_suspicious')
  const orders = flags.flatMap(({ evidence }) => JSON.parse(evidence).latest_orders)
  assert.ok(orders.length > 0)
  for (const { suspicious } of orders) assert.equal(suspicious, ['before_click'])
  // The fixtures' own order ids come once.
  await report('all', '--same')
  const again = await replay('draft-order', '--same', '--times', '3')
  assert.match(again.stdout, /✓\tdraft-order\t3 × 200\tignored\torder .* is recorded already/)
})

it('fails with ✗ where the service decides otherwise', async () => {
  const args = ['webhooks', 'replay', 'path-landing-site', '--url', bed.url]
  const { code, stdout, stderr } = await runHere(args, { ...settings, PLATFORM_FEE_RATE: '20' })
  assert.equal([code, stderr], [1, 'affiliate: Not as expected: path-landing-site.\n'])
  assert.match(stdout, /✗\tpath-landing-site\t200\tdone\t.*fee Rs 62\.49 .*\t.*, fee 124\.98\n/)
})

it('sends an order from a click, which ends as the manifest says, and under a known delivery id is set aside', async () => {
  const args = ['path-landing-site', '--link', slug, '--event-id', 'd-1']
  const [{ answer, event, sale }] = (await report(...args)).items
  assert.equal([answer.status, answer.body, event.state], [200, { received: true }, 'done'])
  const amounts = pluckAll([sale], 'acceptance_status', 'net_amount', 'commission', 'platform_fee')
  assert.equal(amounts, [['accepted', '4999.00', '624.88', '62.49']])
  const rejected = /self-purchase\t200\tdone\trejected: self_purchase \(sale .*\)\trejected: self_purchase\n/
  assert.match((await replay('self-purchase', '--link', slug)).stdout, rejected)
  const forged = await replay(...args)
  assert.is(forged.code, 1)
  assert.match(forged.stdout, /set_aside\tthis delivery id came before with another body/)
})

it('names at a terminal the command that explains the sale', async () => {
  const args = ['webhooks', 'replay', 'note-attributes-without-landing-site', '--link', slug]
  const { code, screen } = await typeHere([...args, '--url', bed.url], {
    environment: settings,
    columns: 400,
  })
  assert.is(code, 0, screen)
  const said =
    /accepted: net Rs 2,750\.00, commission Rs 343\.75, fee Rs 34\.38\s+Explain it: \.\/cli\/affiliate sales explain '(#\d+)'/
  const [, name = ''] = said.exec(stripVTControlCharacters(screen)) ?? []
  const explained = await json('sales', 'explain', name)
  assert.equal([explained.acceptance_status, explained.commission], ['accepted', '343.75'], screen)
})

it('makes the billing cycle and the payout that an event of the processor is about', async () => {
  const { platform } = bed.service.app
  await refuses(['payout-failed-after-paid'], /^affiliate: Sana Mirza has no payout destination/)
  await giveDestination(platform, creatorId)
  const [{ as_expected, event }] = (await report('payout-failed-after-paid')).items
  assert.equal([as_expected, event.state, event.reason], [true, 'set_aside', 'contradiction'])
  // Once it is no longer held, the sandbox's own word repeats what was sent in its name.
  const sandboxEvents = async () => await listEvents(platform, { source: 'processor', limit: 100 })
  const settled = await eventually(sandboxEvents, (events) =>
    events.every(({ state }) => state !== 'pending'),
  )
  assert.equal(new Set(settled.map(({ state }) => state)), new Set(['done', 'set_aside']))
  assert.equal(await brokenInvariants(), [])
})

async function brokenInvariants() {
  return (await verifyBooks(bed.service.app.platform)).filter(({ breaches }) => breaches.length > 0)
}

it('breaks signature, body or timestamp, which the service refuses', async () => {
  const order = ['path-landing-site', '--link', slug]
  const payment = ['payment-unknown-invoice']
  for (const [fixture, part] of [
    [order, 'signature'],
    [order, 'body'],
    [payment, 'signature'],
    [payment, 'body'],
    [payment, 'timestamp'],
  ] as const) {
    const { code, stdout, stderr } = await replay(...fixture, '--corrupt', part, '--times', '2')
    assert.is(code, 0, `${fixture} ${part}: ${stderr}`)
    assert.match(stdout, /✓\t.*\t2 × 401\t–\tinvalid_signature: /)
  }
  await refuses(['draft-order', '--corrupt', 'timestamp'], /Stores sign no time/, 2)
})

it('sends a file or stdin, pointed at a link', async () => {
  const file = join(bed.testDatabase.folder, 'order.json')
  writeFileSync(file, pointed('9007199254740995'))
  const [{ sale, event }] = (await report('--body', file, '--link', slug)).items
  assert.is(event.state, 'done', event.reason)
  assert.equal([sale.order_id, sale.rejection_reason, sale.commission], ['9007199254740995', null, '312.50'])
  const unpointed = orderBody({ price: 250_000, createdAt: Date.now() })
  const args = ['webhooks', 'replay', '--body', '-', '--store', DOMAIN, '--url', bed.url]
  const piped = await runHere(args, settings, { input: unpointed })
  assert.is(piped.code, 0, piped.stderr)
  assert.match(piped.stdout, /^–\tstdin\t200\tdone\trejected: no_tracking_reference/m)
  writeFileSync(file, unpointed)
  await refuses(['--body', file, '--link', slug], /holds no aff_ref that could be pointed/)
  await refuses(['--body', `${file}.no`], /cannot read .*order\.json\.no: ENOENT/)
  await refuses(['draft-order', '--body', file], /not both/, 2)
  await refuses([], /Name a fixture/, 2)
  await refuses(['draft-ordr'], /no fixture draft-ordr\. Did you mean draft-order\?/, 2)
})

it('sends a recorded event once more', async () => {
  const [event] = (await json('webhooks', 'events', '--state', 'done', '--limit', '1')).items
  const again = await replay(event.id)
  assert.is(again.code, 0, again.stderr)
  assert.match(again.stdout, new RegExp(`^–\t${event.id}\t200\tignored\torder .* is recorded already`, 'm'))
  // Under its own delivery id it is the same event.
  const same = await replay(event.id, '--event-id', event.delivery_id)
  assert.match(same.stdout, /\t200\tdone\t/)
  await refuses(['019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e'], /There is no event/)
})

it('audits each delivery, and shows the origin of its event and sale', async () => {
  const file = join(bed.testDatabase.folder, 'audited.json')
  writeFileSync(file, pointed('9007199254740997'))
  const [{ delivery_id, event, sale }] = (await report('--body', file, '--link', slug)).items
  const audits = await rowsOf(bed.service.app, 'audit_entries', { action: 'webhook.replay' })
  const { actor, subject_id, after } = audits.at(-1) ?? {}
  assert.equal([actor, subject_id, JSON.parse(after ?? '').fixture], ['operator', delivery_id, file])
  assert.is((await json('webhooks', 'show', event.id)).origin, 'operator')
  assert.is((await json('webhooks', 'events', '--limit', '1')).items[0].origin, 'operator')
  assert.is((await json('sales', 'explain', sale.id)).event_origin, 'operator')
  assert.ok((await json('ledger', 'verify')).operator_events.sales.includes(sale.id))
  for (const [words, said] of [
    [['webhooks', 'show', event.id], /^Origin +operator \(webhooks replay\)$/m],
    [['sales', 'explain', sale.id], /An operator sent it in the store's name/],
    [['ledger', 'verify'], /From events that an operator sent .*: \d+ sales?.*\(--all names them\)/],
  ] as const)
    assert.match((await runHere(words, settings)).stdout, said)
})

it('does not give a delivery of the store the origin of its redelivery by an operator', async () => {
  const rawBody = Buffer.from(orderBody({ price: 100_000, createdAt: Date.now() }))
  const headers = orderHeaders({ domain: DOMAIN, secret: SECRET }, 'of-the-store', rawBody)
  assert.is((await call(bed.url, 'POST', '/webhooks/store-sales', { raw: rawBody, headers })).status, 200)
  const show = () => json('webhooks', 'show', 'of-the-store')
  const { id } = await eventually(show, ({ state }) => state !== 'pending')
  await report(id, '--event-id', 'of-the-store')
  assert.is((await show()).origin, 'store')
})

it('refuses another machine, a service of production, and recorded events for another machine', async () => {
  const before = await eventCount()
  const run = (url: string, ...args: string[]) =>
    runHere(['webhooks', 'replay', ...args, '--url', url], settings)
  const remote = await run('http://192.0.2.1:3000', 'draft-order')
  assert.equal([remote.code, /Pass --allow-remote/.test(remote.stderr)], [2, true])
  const [event] = await listEvents(bed.service.app.platform, { limit: 1 })
  const recorded = await run('http://192.0.2.1:3000', event?.id ?? '', '--allow-remote')
  assert.equal([recorded.code, /stay on this machine/.test(recorded.stderr)], [1, true])
  for (const [environment, why] of [
    ['production', /the service at .* is production\./],
    [undefined, /does not say that it is not production\./],
  ] as const) {
    const posted: string[] = []
    const other = createServer((request, response) => {
      if (request.method === 'POST') posted.push(request.url ?? '')
      response.end(JSON.stringify({ status: 'ready', environment }))
    })
    await once(other.listen(0, '127.0.0.1'), 'listening')
    const { port } = other.address() as AddressInfo
    const refused = await run(`http://127.0.0.1:${port}`, 'draft-order')
    other.close()
    assert.equal([refused.code, posted], [1, []])
    assert.match(refused.stderr, why)
  }
  assert.is(await eventCount(), before)
})

it('refuses a database of production, until a copy is marked as one of development', async () => {
  const { database } = bed.service.app
  const mark = (value: string) =>
    database.transaction((tx) => tx.insertInto('watermarks').values({ name: 'production', value }).execute())
  await mark('inode 1')
  const before = await eventCount()
  const why = /^affiliate: Refused: this is a database of production\. .*mark-development/
  await refuses(['draft-order'], why)
  assert.is(await eventCount(), before)
  const unmark = (...args: string[]) => runHere(['db', 'mark-development', ...args], settings)
  assert.match((await unmark()).stderr, /^affiliate: Not a terminal; confirm with --yes\.\n$/)
  assert.equal(JSON.parse((await unmark('--yes', '--json')).stdout), { changed: true })
  assert.match((await unmark('--yes')).stdout, /is not marked as production; nothing changed/)
  assert.is((await replay('draft-order')).code, 0)
})

const eventCount = async () => (await listEvents(bed.service.app.platform, { limit: 1000 })).length

/** So many rounds that their end is far away. */
const TIMES = 500

it('is ended by Ctrl-C, leaves sound books, and does it all when run again', async () => {
  const { database } = bed.service.app
  const events = async () =>
    pluck(await database.reader.selectFrom('inbound_events').select('state').execute(), 'state')
  const before = (await events()).length
  const args = ['webhooks', 'replay', 'all', '--link', slug, '--url', bed.url]
  const command = startAffiliate([...args, '--times', `${TIMES}`, '--json'], { environment: settings })
  await command.until(async () => (await events()).length > before + 1)
  const { code, stdout, stderr } = await command.interrupt()
  assert.equal([code, stdout, stderr], [130, '', ''])
  assert.ok((await events()).length < before + TIMES, 'it was at its end already')
  // Each body that the service has taken is decided, as though no one had been interrupted.
  await eventually(events, (states) => !states.includes('pending'))
  await report('all', '--link', slug)
  assert.equal(await brokenInvariants(), [])
})

it('is heard by those who listen, until Ctrl-C', async () => {
  const listen = (...args: string[]) => startAffiliate(['webhooks', ...args], { environment: settings })
  const people = listen('events', '--follow', '--store', DOMAIN, '--limit', '1')
  await people.until(() => people.printed.stderr.includes('Ctrl-C'))
  assert.is(people.printed.stdout.split('\n').length, 2, 'the newest one, at once')
  const scripts = listen('listen', '--json', '--source', 'store', '--count', '1')
  // It says nothing before it hears something, so events are sent until it has.
  await eventually(async () => {
    await replay('test-order', '--link', slug)
    return scripts.child.exitCode !== null
  })
  const heard = await scripts.ended
  const lines = heard.stdout.trim().split('\n')
  assert.equal([heard.code, lines.length, heard.stderr], [0, 1, ''])
  assert.is(JSON.parse(lines[0] ?? '').store.shop_domain, DOMAIN)
  const said = /(done|ignored) +chenab-lawn\.myshopify\.com, sent by an operator {2}orders\/paid {2}/
  await people.until(() => said.test(people.printed.stdout))
  assert.is((await people.interrupt()).code, 0)
})

// Last: this event stays pending.
it('signs an event of the processor with the secret of the sandbox, which is tried again for an unknown invoice', async () => {
  const [{ as_expected, event }] = (await report('payment-unknown-invoice')).items
  assert.equal([as_expected, event.state], [true, 'pending'])
  assert.match(event.reason, /no billing cycle has invoice/)
  const nowhere = ['webhooks', 'replay', 'draft-order', '--url', 'http://127.0.0.1:9']
  assert.match((await runHere(nowhere, settings)).stderr, /No service answers at http:\/\/127\.0\.0\.1:9 /)
})

it.run()
