// mostly waits
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Service } from '../service.ts'
import { onPostgres } from './testkit/databases.ts'
import { eventually } from './testkit/eventually.ts'
import { type Answer, call, deliver, registerMerchant, startQuietly } from './testkit/service-bed.ts'
import { type PostgresCluster, startCluster } from './testkit/standby.ts'

const STORE = { domain: 'frozen.myshopify.com', secret: 'shpss_0123456789abcdef' }
const POOL_SIZE = 10
const OFFER = {
  ...{ title: 'Brass lamp', product_url: 'https://shop.pk/products/lamp' },
  ...{ category: 'Home', niche: 'Lamps', commission_rate: 12.5 },
}

interface Context {
  cluster: PostgresCluster
  service: Service
  url: string
  token: string
  folder: string
}

/** A primary that hangs, whose commits hang, or that takes reads only. */
const it = suite<Context>('a database that hangs')

it.before(async (context) => {
  context.cluster = await startCluster()
  context.folder = mkdtempSync(join(tmpdir(), 'affiliate-frozen-'))
  const settings = {
    DATABASE_URL: context.cluster.primary.url,
    DATABASE_POOL_SIZE: `${POOL_SIZE}`,
    DATA_DIR: context.folder,
  }
  Object.assign(context, await startQuietly(settings))
  context.token = await registerMerchant(context.url, STORE)
})

it.after(async ({ service, cluster, folder }) => {
  await service.stop()
  await cluster.close()
  rmSync(folder, { recursive: true, force: true })
})

const report = (url: string, id: string) => deliver(url, STORE, id)
const untilStatus = (wanted: number, ask: () => Promise<Answer>) =>
  eventually(ask, ({ status }) => status === wanted)

/** Whatever is answered while the server hangs was not waiting for it. */
function refused(answer: Answer, what: string): void {
  assert.is(answer.status, 503, `${what}: ${JSON.stringify(answer.body)}`)
  assert.ok(Number(answer.headers.get('retry-after')) >= 1, what)
}

it('answers 503 while the server is frozen, and goes on when it is not', async ({ cluster, url, token }) => {
  const read = () => call(url, 'GET', '/me', { token })
  const rename = () => call(url, 'PATCH', '/me', { token, body: { display_name: 'N' } })
  assert.is((await read()).status, 200)
  cluster.primary.freeze()
  for (let round = 0; round < 2; round += 1) {
    const asked = {
      'a public read': call(url, 'GET', '/offers'),
      'the same by tRPC': call(url, 'GET', '/trpc/offers.list'),
      'an authenticated read': read(),
      'a report': call(url, 'GET', '/summary', { token }),
      'a write': rename(),
      'another write': call(url, 'POST', '/offers', { token, body: OFFER }),
      'a webhook': report(url, `10${round}`),
    }
    for (const [what, answer] of Object.entries(asked)) refused(await answer, what)
    assert.is((await call(url, 'GET', '/readyz')).status, 503)
  }
  cluster.primary.thaw()
  await Promise.all([read, rename, () => report(url, '110')].map((ask) => untilStatus(200, ask)))
  const waiting = () =>
    cluster.primary.query(`select 1 from inbound_events where delivery_id = '110' and state = 'pending'`)
  await eventually(waiting, (rows) => rows.length === 0)
  assert.equal(await cluster.primary.query('select id from offers'), [], 'what was refused was not done')
})

it('has no more connections than its pool while commits wait', async ({ cluster, url, token }) => {
  const { primary } = cluster
  const connections = async () => {
    const rows = await primary.query(
      `select wait_event from pg_stat_activity where application_name like 'affiliate%'`,
    )
    return { all: rows.length, stuck: rows.filter((row) => row.wait_event === 'SyncRep').length }
  }
  await primary.configure({ synchronous_standby_names: 'missing' })
  // The server takes a moment to wait for it.
  let earlier = 0
  await untilStatus(503, () => report(url, `29${earlier++}`))
  for (let round = 0; round < 4; round += 1) {
    const writes = Array.from({ length: 10 }, (_, index) => report(url, `2${round}${index}`))
    const patch = call(url, 'PATCH', '/me', { token, body: { display_name: `N${round}` } })
    for (const answer of await Promise.all([...writes, patch])) refused(answer, 'a write')
    const me = await call(url, 'GET', '/me', { token })
    assert.is(me.status, 200)
  }
  const unready = await untilStatus(503, () => call(url, 'GET', '/readyz'))
  assert.match(unready.body.detail, 'Writes to the database fail.')
  const { all, stuck } = await connections()
  assert.ok(stuck > 0)
  assert.ok(all <= POOL_SIZE, `${all} connections`)
  await primary.configure({ synchronous_standby_names: '' })
  await untilStatus(200, () => report(url, '300'))
  await untilStatus(200, () => call(url, 'GET', '/readyz'))
  assert.is((await connections()).stuck, 0)
})

it('is not ready, and says why, while the server takes reads only', async ({ cluster, url }) => {
  await cluster.primary.configure({ default_transaction_read_only: 'on' })
  const answer = await untilStatus(503, () => call(url, 'GET', '/readyz'))
  assert.match(answer.body.detail, 'default_transaction_read_only is on')
  await cluster.primary.configure({ default_transaction_read_only: '' })
  await untilStatus(200, () => call(url, 'GET', '/readyz'))
})

onPostgres(it).run()
