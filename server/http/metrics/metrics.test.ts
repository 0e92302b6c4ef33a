import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PRODUCTION } from '../../../cli/test/run-affiliate.ts'
import { createInboxRecorder } from '../../inbox/intake.service.ts'
import { noteFinished, noteStarted } from '../../jobs/schedule-runs.service.ts'
import type { Database } from '../../platform/database/database.ts'
import { createIds } from '../../platform/ids.ts'
import { liveStreams } from '../../reports/live-streams.ts'
import { eventually } from '../../test/testkit/eventually.ts'
import { accessOf, addLink, addLiveOffer, addMerchant } from '../../test/testkit/listings.ts'
import { follow, openWebSide } from '../../test/testkit/live-followers.ts'
import { openMarketplace } from '../../test/testkit/marketplace.ts'
import { orderBody, orderHeaders } from '../../test/testkit/orders.ts'
import { addUser, logIn } from '../../test/testkit/people.ts'
import { proofDialects } from '../../test/testkit/proof-size.ts'
import { call, openServiceBed, type ServiceBed } from '../../test/testkit/service-bed.ts'
import { onStatement } from '../../test/testkit/statements.ts'
import { openWebTestbed, type WebTestbed, webSuite } from '../../test/testkit/web.ts'
import { isRefused } from '../../test/testkit/web-people.ts'

const TOKEN = 'a-token-for-prometheus'

async function read(base: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await fetch(`${base}/metrics`, { headers })
  const text = await answer.text()
  assert.is(answer.status, 200, text)
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4; charset=utf-8/)
  return text
}

/** Asserts the values of series, given by their whole names without `affiliate_`. */
function hasFigures(text: string, expected: Record<string, number>): void {
  for (const [series, value] of Object.entries(expected))
    assert.is(figureOf(text, `affiliate_${series}`), value, series)
}

/** The value of one series, by its whole name; `undefined` when it is not there. */
function figureOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

for (const dialect of proofDialects()) {
  const it = suite<{ bed: ServiceBed }>(`figures on ${dialect}`)

  it.before(async (world) => {
    world.bed = await openServiceBed(dialect)
  })
  it.after(({ bed }) => bed.close())

  it('show state, work and the process', async ({ bed }) => {
    const text = await read(bed.url)
    for (const source of ['store', 'processor']) {
      hasFigures(text, {
        [`inbox_waiting{source="${source}"}`]: 0,
        [`inbox_oldest_seconds{source="${source}"}`]: 0,
        [`events_applied_total{source="${source}",outcome="set_aside"}`]: 0,
      })
    }
    for (const kind of ['event', 'webhook', 'mail'])
      for (const figure of ['waiting', 'overdue_seconds'])
        hasFigures(text, { [`notifications_${figure}{kind="${kind}"}`]: 0 })
    hasFigures(text, {
      database_up: 1,
      'sales_total{acceptance_status="accepted"}': 0,
      'flags_open{kind="integrity_violation",severity="high"}': 0,
      'group_commit_waiting{group="clicks"}': 0,
      'group_commit_waiting{group="inbox"}': 0,
    })
    assert.ok((figureOf(text, 'process_resident_memory_bytes') ?? 0) > 10_000_000)
    assert.match(text, /^nodejs_eventloop_lag_p99_seconds /m)
    const most = figureOf(text, 'affiliate_database_connections{state="most"}')
    assert.is(most !== undefined && most > 0, dialect === 'postgresql')
  })

  it('time requests by route, whatever is asked for', async ({ bed }) => {
    for (let index = 0; index < 20; index += 1) {
      await call(bed.url, 'GET', `/go/slug${index}`)
      await call(bed.url, 'GET', `/nothing/${index}`)
      await call(bed.url, 'GET', `/trpc/nothing.${index}`)
      await call(bed.url, 'GET', `/offers?q=word${index}`)
    }
    const text = await read(bed.url)
    const name = 'affiliate_http_request_duration_seconds'
    const labelsOf = (route: string, status: number) => `method="GET",route="${route}",status="${status}"`
    for (const route of ['/go/:slug', 'unknown', '/trpc/:path'])
      assert.is(figureOf(text, `${name}_count{${labelsOf(route, 404)}}`), 20, route)
    assert.is(figureOf(text, `${name}_count{${labelsOf('/offers', 200)}}`), 20)
    const labels = labelsOf('/go/:slug', 404)
    assert.match(text, new RegExp(`^# TYPE ${name} histogram$`, 'm'))
    const upTo = (bound: string) => figureOf(text, `${name}_bucket{le="${bound}",${labels}}`) ?? -1
    assert.is(upTo('+Inf'), 20)
    const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    const counts = [...bounds.map((bound) => upTo(String(bound))), upTo('+Inf')]
    const sorted = counts.toSorted((a, b) => a - b)
    assert.equal(counts, sorted)
    assert.ok((counts[0] ?? -1) >= 0)
    const sum = figureOf(text, `${name}_sum{${labels}}`) ?? 0
    assert.ok(sum > 0 && sum < 20 * 10, String(sum))
    assert.not.match(text, /slug1|word1|nothing/)
    const series = text.split('\n').filter((line) => line.startsWith(`${name}_count`))
    assert.ok(series.length < 10, series.join('\n'))
  })

  it('count events as they come in and as they are applied, clicks and sales', async ({ bed }) => {
    const { platform, processorSignature } = bed.service.app
    const rawBody = Buffer.from(JSON.stringify({ type: 'nothing.we.know', data: {} }))
    const [secret = ''] = processorSignature.secrets
    const sign = { deliveryId: 'delivery-1', rawBody, secret, now: platform.clock.now() }
    const headers = { 'content-type': 'application/json', ...processorSignature.scheme.sign(sign) }
    for (let times = 0; times < 2; times += 1) {
      const answer = await call(bed.url, 'POST', '/webhooks/processor', { raw: rawBody, headers })
      assert.is(answer.status, 200)
    }
    const merchant = await addMerchant(platform)
    const offer = await addLiveOffer(platform, merchant)
    const { slug } = await addLink(platform, merchant, await addUser(platform, 'creator'), offer.id)
    for (const method of ['GET', 'HEAD']) assert.is((await call(bed.url, method, `/go/${slug}`)).status, 302)
    // No one's link led to this order.
    const raw = orderBody({ price: 100_000, createdAt: Date.now() })
    const signed = { raw, headers: orderHeaders(accessOf(merchant), 'order-1', raw) }
    assert.is((await call(bed.url, 'POST', '/webhooks/store-sales', signed)).status, 200)
    const sales = 'affiliate_sales_total{acceptance_status="rejected"}'
    const setAside = 'affiliate_events_applied_total{source="processor",outcome="set_aside"}'
    const text = await eventually(
      () => read(bed.url),
      (now) => figureOf(now, sales) === 1 && figureOf(now, setAside) === 1,
    )
    hasFigures(text, {
      'events_applied_total{source="store",outcome="done"}': 1,
      'events_received_total{source="processor",receipt="stored"}': 1,
      'events_received_total{source="processor",receipt="known"}': 1,
      'clicks_total{kind="head",tracked="true"}': 1,
    })
    const visits = text.split('\n').filter((line) => /^affiliate_clicks_total.*tracked="true"/.test(line))
    assert.is(visits.length, 2, visits.join('\n'))
  })

  it.run()

  const streams = suite(`figures of streams on ${dialect}`)

  streams('tell how many are open, and time none of them', async () => {
    const market = await openMarketplace(dialect, {}, createIds)
    const web = await openWebSide(market.platform)
    const open = async () => figureOf(await read(web.base), 'affiliate_event_streams_open')
    try {
      assert.is(await open(), 0)
      const shop = await market.addShop()
      const follower = follow(web.base, await logIn(market.platform, shop.actor))
      await follower.until(() => follower.events.length > 0)
      assert.is(await open(), 1)
      follower.stop()
      // The server ends this one itself.
      const refused = follow(web.base, 'x'.repeat(43))
      await refused.until(() => refused.refusal() !== null)
      await liveStreams(market.platform).idle()
      const text = await eventually(
        () => read(web.base),
        (now) => figureOf(now, 'affiliate_event_streams_open') === 0,
      )
      assert.not.match(text, /request_duration_seconds_count\{[^}]*trpc/)
      await call(web.base, 'GET', '/trpc/offers.list')
      assert.match(await read(web.base), /request_duration_seconds_count\{[^}]*trpc/)
    } finally {
      await web.close()
      await market.close()
    }
  })

  streams.run()

  const waiting = webSuite(`figures of what waits on ${dialect}`, dialect)

  waiting("tell the inbox's depth and age, asking the database once for many readers", async ({ bed }) => {
    const inbox = createInboxRecorder(bed.platform)
    const event = { source: 'store', scope: 'a-store', topic: null, rawBody: Buffer.from('{}') } as const
    await inbox.record({ ...event, deliveryId: 'first' })
    await noteStarted(bed.platform, 'billing')
    await noteStarted(bed.platform, 'payouts')
    await noteFinished(bed.platform, 'payouts', {})
    const started = bed.clock.now() / 1000
    bed.clock.pass(90_000)
    await inbox.record({ ...event, deliveryId: 'second' })
    let asked = 0
    const { database } = bed.platform
    Object.defineProperty(database, 'reader', {
      value: database.reader.withPlugin(onStatement(() => (asked += 1))),
    })
    const texts = await Promise.all(Array.from({ length: 20 }, () => read(bed.base)))
    for (const text of texts) {
      hasFigures(text, {
        'inbox_waiting{source="store"}': 2,
        'inbox_oldest_seconds{source="store"}': 90,
        'inbox_waiting{source="processor"}': 0,
        'schedule_started_timestamp_seconds{schedule="billing"}': started,
        'schedule_finished{schedule="billing"}': 0,
        'schedule_finished{schedule="payouts"}': 1,
      })
    }
    // One question a source, six for notifications, one for the schedule and one for the flags.
    assert.is(asked, 10)
  })

  waiting.run()
}

const down = webSuite('figures without a database')

down('are given anyway', async ({ bed }) => {
  const { database } = bed.platform
  const reader = { getExecutor: () => assert.unreachable('away') } as unknown as Database['reader']
  Object.assign(bed.platform, { database: { ...database, reader } })
  const text = await read(bed.base)
  assert.is(figureOf(text, 'affiliate_database_up'), 0)
  assert.not.match(text, /^affiliate_inbox_waiting\{/m)
  assert.match(text, /^process_cpu_seconds_total /m)
  Object.assign(bed.platform, { database })
})

down.run()

const readers = suite<{ bed: WebTestbed }>('who may read figures')
readers.after.each(({ bed }) => bed.close())

readers('this machine, unless the request was passed on', async (world) => {
  world.bed = await openWebTestbed('sqlite', { TRUST_PROXY: 'loopback' })
  await read(world.bed.base)
  const passedOn: Record<string, string>[] = [
    { 'x-forwarded-for': '203.0.113.9' },
    { 'x-forwarded-for': '127.0.0.1' },
    { forwarded: 'for=203.0.113.9' },
    { 'x-real-ip': '127.0.0.1' },
    { via: '1.1 proxy' },
  ]
  for (const headers of passedOn) {
    isRefused(await world.bed.ask('GET', '/metrics', { headers }), 403, 'forbidden')
  }
})

/** Calls an address by another name than its own, as a page does whose name resolves to loopback. */
async function readAs(base: string, host: string): Promise<{ status: number | undefined; body: string }> {
  const asking = request(`${base}/metrics`, { headers: { host } }).end()
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  return { status: answer.statusCode, body: await text(answer) }
}

readers('only under a name of this machine, so that no web page can be led to them', async (world) => {
  world.bed = await openWebTestbed('sqlite')
  for (const host of ['127.0.0.1', 'localhost:3000', '[::1]:80', 'LOCALHOST']) {
    assert.is((await readAs(world.bed.base, host)).status, 200, host)
  }
  for (const host of ['rebound.example', 'localhost.example:3000', '127.0.0.1.example', '10.0.0.1', 'a b']) {
    const answer = await readAs(world.bed.base, host)
    assert.ok(answer.status === 403 || answer.status === 400, `${host}: ${answer.status}`)
    assert.not.match(answer.body, 'process_cpu')
  }
  assert.match((await readAs(world.bed.base, 'rebound.example')).body, 'METRICS_TOKEN')
})

readers('no one in production without a token, also not this machine', async (world) => {
  world.bed = await openWebTestbed('sqlite', PRODUCTION)
  const answer = await world.bed.ask('GET', '/metrics')
  isRefused(answer, 403, 'forbidden')
  assert.match(String(answer.body.detail), 'Set METRICS_TOKEN')
  assert.is((await world.bed.ask('GET', '/healthz')).status, 200)
})

for (const [where, settings] of Object.entries({ production: PRODUCTION, development: {} })) {
  readers(`a client with the token, when there is one, in ${where}`, async (world) => {
    world.bed = await openWebTestbed('sqlite', { ...settings, METRICS_TOKEN: TOKEN })
    for (const token of ['', 'another-token-of-some-length', `${TOKEN}x`]) {
      const answer = await world.bed.ask('GET', '/metrics', { token })
      isRefused(answer, 401, 'unauthenticated')
      assert.is(answer.headers.get('www-authenticate'), 'Bearer')
    }
    await read(world.bed.base, { authorization: `Bearer ${TOKEN}`, 'x-forwarded-for': '203.0.113.9' })
  })
}

readers.run()
