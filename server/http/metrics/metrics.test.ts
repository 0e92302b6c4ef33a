import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PRODUCTION } from '../../../cli/test/run-affiliate.ts'
import { createInboxRecorder } from '../../inbox/intake.service.ts'
import { noteFinished, noteStarted } from '../../jobs/schedule-runs.service.ts'
import type { Actor } from '../../platform/api/procedure.ts'
import { createIds } from '../../platform/ids.ts'
import { liveStreams } from '../../reports/live-streams.ts'
import { signShopifyBody } from '../../shopify/signature.ts'
import { eventually } from '../../test/testkit/eventually.ts'
import { addLink, addLiveOffer, addMerchant } from '../../test/testkit/listings.ts'
import { follow, openWebSide } from '../../test/testkit/live-followers.ts'
import { openMarketplace } from '../../test/testkit/marketplace.ts'
import { orderBody } from '../../test/testkit/orders.ts'
import { addUser, logIn } from '../../test/testkit/people.ts'
import { proofDialects } from '../../test/testkit/proof-size.ts'
import { call, openServiceBed, type ServiceBed } from '../../test/testkit/service-bed.ts'
import { onStatement } from '../../test/testkit/statements.ts'
import { openWebTestbed, type WebTestbed } from '../../test/testkit/web.ts'

const TOKEN = 'a-token-for-prometheus'

async function read(base: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await fetch(`${base}/metrics`, { headers })
  const text = await answer.text()
  assert.is(answer.status, 200, text)
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4; charset=utf-8/)
  return text
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
    assert.is(figureOf(text, 'affiliate_database_up'), 1)
    for (const source of ['store', 'processor']) {
      assert.is(figureOf(text, `affiliate_inbox_waiting{source="${source}"}`), 0)
      assert.is(figureOf(text, `affiliate_inbox_oldest_seconds{source="${source}"}`), 0)
      assert.is(figureOf(text, `affiliate_events_applied_total{source="${source}",outcome="set_aside"}`), 0)
    }
    for (const kind of ['event', 'webhook', 'mail']) {
      assert.is(figureOf(text, `affiliate_notifications_waiting{kind="${kind}"}`), 0)
      assert.is(figureOf(text, `affiliate_notifications_overdue_seconds{kind="${kind}"}`), 0)
    }
    assert.is(figureOf(text, 'affiliate_sales_total{acceptance_status="accepted"}'), 0)
    assert.is(figureOf(text, 'affiliate_flags_open{kind="integrity_violation",severity="high"}'), 0)
    assert.is(figureOf(text, 'affiliate_group_commit_waiting{group="clicks"}'), 0)
    assert.is(figureOf(text, 'affiliate_group_commit_waiting{group="inbox"}'), 0)
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
    const count = (method: string, route: string, status: number) =>
      figureOf(
        text,
        `affiliate_http_request_duration_seconds_count{method="${method}",route="${route}",status="${status}"}`,
      )
    assert.is(count('GET', '/go/:slug', 404), 20)
    assert.is(count('GET', 'unknown', 404), 20)
    assert.is(count('GET', '/trpc/:path', 404), 20)
    assert.is(count('GET', '/offers', 200), 20)
    const labels = 'method="GET",route="/go/:slug",status="404"'
    const name = 'affiliate_http_request_duration_seconds'
    assert.match(text, new RegExp(`^# TYPE ${name} histogram$`, 'm'))
    const upTo = (bound: string) => figureOf(text, `${name}_bucket{le="${bound}",${labels}}`) ?? -1
    assert.is(upTo('+Inf'), 20)
    const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    const counts = [...bounds.map((bound) => upTo(String(bound))), upTo('+Inf')]
    assert.equal(
      counts.toSorted((a, b) => a - b),
      counts,
    )
    assert.ok((counts[0] ?? -1) >= 0)
    const sum = figureOf(text, `${name}_sum{${labels}}`) ?? 0
    assert.ok(sum > 0 && sum < 20 * 10, String(sum))
    assert.not.match(text, /slug1|word1|nothing/)
    const series = text
      .split('\n')
      .filter((line) => line.startsWith('affiliate_http_request_duration_seconds_count'))
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
    assert.is((await call(bed.url, 'GET', `/go/${slug}`)).status, 302)
    assert.is((await call(bed.url, 'HEAD', `/go/${slug}`)).status, 302)
    await sendOrder(bed, merchant)
    const sales = 'affiliate_sales_total{acceptance_status="rejected"}'
    const setAside = 'affiliate_events_applied_total{source="processor",outcome="set_aside"}'
    const text = await eventually(
      () => read(bed.url),
      (now) => figureOf(now, sales) === 1 && figureOf(now, setAside) === 1,
    )
    assert.is(figureOf(text, 'affiliate_events_applied_total{source="store",outcome="done"}'), 1)
    assert.is(figureOf(text, 'affiliate_events_received_total{source="processor",receipt="stored"}'), 1)
    assert.is(figureOf(text, 'affiliate_events_received_total{source="processor",receipt="known"}'), 1)
    assert.is(figureOf(text, 'affiliate_clicks_total{kind="head",tracked="true"}'), 1)
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

  const waiting = suite(`figures of what waits on ${dialect}`)

  waiting("tell the inbox's depth and age, asking the database once for many readers", async () => {
    const bed = await openWebTestbed(dialect)
    try {
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
        assert.is(figureOf(text, 'affiliate_inbox_waiting{source="store"}'), 2)
        assert.is(figureOf(text, 'affiliate_inbox_oldest_seconds{source="store"}'), 90)
        assert.is(figureOf(text, 'affiliate_inbox_waiting{source="processor"}'), 0)
        assert.is(figureOf(text, 'affiliate_schedule_started_timestamp_seconds{schedule="billing"}'), started)
        assert.is(figureOf(text, 'affiliate_schedule_finished{schedule="billing"}'), 0)
        assert.is(figureOf(text, 'affiliate_schedule_finished{schedule="payouts"}'), 1)
      }
      assert.is(
        asked,
        10,
        'one question a source, six for notifications, one for the schedule and one for the flags',
      )
    } finally {
      await bed.close()
    }
  })

  waiting.run()
}

const down = suite('figures without a database')

down('are given anyway', async () => {
  const bed = await openWebTestbed('sqlite')
  const { database } = bed.platform
  const broken = {
    ...database,
    get reader(): never {
      throw new Error('away')
    },
  }
  Object.assign(bed.platform, { database: broken })
  try {
    const text = await read(bed.base)
    assert.is(figureOf(text, 'affiliate_database_up'), 0)
    assert.not.match(text, /^affiliate_inbox_waiting\{/m)
    assert.match(text, /^process_cpu_seconds_total /m)
  } finally {
    Object.assign(bed.platform, { database })
    await bed.close()
  }
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
    const answer = await world.bed.ask('GET', '/metrics', { headers })
    assert.is(answer.status, 403, JSON.stringify(headers))
    assert.is(answer.body.code, 'forbidden')
  }
})

/** Calls an address by another name than its own, as a page does whose name resolves to loopback. */
function readAs(base: string, host: string | undefined): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, reject) => {
    const headers = host === undefined ? {} : { host }
    request({ hostname, port, path: '/metrics', headers, setHost: host !== undefined }, async (answer) => {
      resolve({ status: answer.statusCode ?? 0, body: await text(answer) })
    })
      .on('error', reject)
      .end()
  })
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
  assert.is(answer.status, 403)
  assert.is(answer.body.code, 'forbidden')
  assert.match(String(answer.body.detail), 'Set METRICS_TOKEN')
  assert.is((await world.bed.ask('GET', '/healthz')).status, 200)
})

readers('with the token in production, under any name', async (world) => {
  world.bed = await openWebTestbed('sqlite', { ...PRODUCTION, METRICS_TOKEN: TOKEN })
  assert.is((await world.bed.ask('GET', '/metrics')).status, 401)
  await read(world.bed.base, { authorization: `Bearer ${TOKEN}` })
})

readers('a client with the token, when there is one', async (world) => {
  world.bed = await openWebTestbed('sqlite', { METRICS_TOKEN: TOKEN })
  for (const token of [undefined, 'another-token-of-some-length', `${TOKEN}x`]) {
    const answer = await world.bed.ask('GET', '/metrics', token === undefined ? {} : { token })
    assert.is(answer.status, 401)
    assert.is(answer.body.code, 'unauthenticated')
    assert.is(answer.headers.get('www-authenticate'), 'Bearer')
  }
  await read(world.bed.base, { authorization: `Bearer ${TOKEN}`, 'x-forwarded-for': '203.0.113.9' })
})

readers.run()

/** An order that no one's link led to. */
async function sendOrder(bed: ServiceBed, { userId }: Actor): Promise<void> {
  const raw = Buffer.from(orderBody({ price: 100_000, createdAt: Date.now() }))
  const answer = await call(bed.url, 'POST', '/webhooks/store-sales', {
    raw,
    headers: {
      'content-type': 'application/json',
      'x-shopify-topic': 'orders/paid',
      'x-shopify-shop-domain': `s${userId}.myshopify.com`,
      'x-shopify-webhook-id': 'order-1',
      'x-shopify-hmac-sha256': signShopifyBody(raw, `secret-${userId}`),
    },
  })
  assert.is(answer.status, 200)
}
