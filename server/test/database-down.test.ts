// mostly waits
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres, openTestDatabase } from './testkit/databases.ts'
import { eventually } from './testkit/eventually.ts'
import { cast, follow } from './testkit/outside-cast.ts'
import { assertNone, pluck } from './testkit/pluck.ts'
import { rowsOf } from './testkit/rows.ts'
import { call, deliver, registerMerchant, type ServiceBed, startQuietly } from './testkit/service-bed.ts'
import { openTcpProxy, type TcpProxy } from './testkit/tcp-proxy.ts'

const BROWSER = { accept: 'text/html,application/xhtml+xml' }
const STORE = { domain: 'down.myshopify.com', secret: 'shpss_0123456789abcdef' }

/** A database that is taken away under load: PostgreSQL, through a proxy that can be cut or stalled. */
const it = suite('a database that is down')

async function withService(work: (bed: ServiceBed & { proxy: TcpProxy }) => Promise<void>) {
  const testDatabase = await openTestDatabase('postgresql', { migrated: true })
  const real = new URL(testDatabase.url)
  const proxy = await openTcpProxy({ host: real.hostname, port: Number(real.port) })
  const through = new URL(testDatabase.url)
  through.host = `127.0.0.1:${proxy.port}`
  const settings = { DATABASE_URL: through.href, DATA_DIR: testDatabase.folder }
  const { service, url } = await startQuietly(settings)
  const close = async () => {
    await service.stop()
    await proxy.close()
    await testDatabase.close()
  }
  try {
    await work({ service, url, testDatabase, close, proxy })
  } finally {
    await close()
  }
}

for (const trouble of ['cut', 'stall'] as const) {
  it(`answers 503 with Retry-After while the database is ${trouble}, and loses nothing it acknowledged`, () =>
    withService(async ({ url, proxy, testDatabase }) => {
      await registerMerchant(url, STORE)
      const acknowledged = new Set<string>()
      const send = async (id: string) => {
        const answer = await deliver(url, STORE, id)
        if (answer.status === 200) acknowledged.add(id)
        return answer
      }
      await Promise.all(['1', '2', '3'].map(send))
      assert.is(acknowledged.size, 3)
      const sending = Promise.all(Array.from({ length: 40 }, (_, index) => send(String(100 + index))))
      await (trouble === 'cut' ? proxy.cut() : proxy.stall())
      await sending
      const down = await send('200')
      assert.is(down.status, 503, JSON.stringify(down.body))
      assert.is(down.body.code, 'unavailable')
      assert.ok(Number(down.headers.get('retry-after')) >= 1)
      assert.is((await call(url, 'GET', '/readyz')).status, 503)
      assert.is((await call(url, 'GET', '/healthz')).status, 200)
      await (trouble === 'cut' ? proxy.mend() : proxy.flow())
      await eventually(
        () => send('200'),
        ({ status }) => status === 200,
      )
      const stored = pluck(await rowsOf(testDatabase, 'inbound_events'), 'delivery_id')
      assertNone([...acknowledged], (id) => !stored.includes(id))
    }))

  it(`sends visitors of known links to the shop while the database is ${trouble}, and shows the others a page`, () =>
    withService(async (bed) => {
      const { url, proxy } = bed
      const { slug } = await cast(bed)
      await follow(bed, slug)
      await (trouble === 'cut' ? proxy.cut() : proxy.stall())
      const visits = await Promise.all(
        Array.from({ length: 20 }, () => call(url, 'GET', `/go/${slug}?fbclid=x`, { headers: BROWSER })),
      )
      const page = 'https://shop.pk/products/lamp?variant=7&fbclid=x#top'
      for (const { status, headers } of visits) assert.equal([status, headers.get('location')], [302, page])
      const unknown = await fetch(`${url}/go/abcdefgh`, { headers: BROWSER })
      assert.equal([unknown.status, unknown.headers.get('content-type')], [503, 'text/html; charset=utf-8'])
      assert.match(await unknown.text(), /Please try again.*کوشش/s)
      assert.is((await call(url, 'GET', '/go/abcdefgh')).body.code, 'unavailable')
      const figures = await (await fetch(`${url}/metrics`)).text()
      assert.match(figures, /^affiliate_clicks_lost_total 20$/m)
      await (trouble === 'cut' ? proxy.mend() : proxy.flow())
      await eventually(
        () => call(url, 'GET', `/go/${slug}`),
        ({ headers }) => (headers.get('location') ?? '').includes('aff_ref='),
      )
    }))
}

onPostgres(it).run()
