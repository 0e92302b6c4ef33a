// long
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from './testkit/databases.ts'
import { eventually } from './testkit/eventually.ts'
import { hasPgBouncer, startPgBouncer } from './testkit/pgbouncer.ts'
import { call, deliver, registerMerchant, startQuietly } from './testkit/service-bed.ts'
import { startCluster } from './testkit/standby.ts'

const STORE = { domain: 'pooled.myshopify.com', secret: 'shpss_0123456789abcdef' }
const ORDERS = 200
const AFFILIATE = fileURLToPath(new URL('../../cli/affiliate.mjs', import.meta.url))

const it = suite('a transaction pooler')

it('serves two processes under load without an error, and commands go past it', async () => {
  const cluster = await startCluster()
  const pooler = await startPgBouncer(cluster.primary.port)
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-pooled-'))
  const environment = {
    DATABASE_URL: `postgres://postgres@127.0.0.1:${pooler.port}/postgres`,
    DATABASE_DIRECT_URL: cluster.primary.url,
    DATA_DIR: folder,
  }
  const first = await startQuietly(environment)
  const second = await startQuietly({ ...environment, ROLES: 'web' })
  const urls = [first.url, second.url]
  try {
    const token = await registerMerchant(urls[0] ?? '', STORE)
    const statuses = await Promise.all(
      Array.from({ length: ORDERS }, async (_, id) => {
        const url = urls[id % 2] ?? ''
        const answers = [
          await deliver(url, STORE, String(id)),
          await call(url, 'GET', '/me', { token }),
          await call(url, 'PATCH', '/me', { token, body: { display_name: `M${id}` } }),
          await call(url, 'GET', '/offers'),
        ]
        return answers.map(({ status }) => status)
      }),
    )
    assert.equal([...new Set(statuses.flat())], [200])
    const pending = () => cluster.primary.query(`select id from inbound_events where state = 'pending'`)
    await eventually(pending, (rows) => rows.length === 0)
    const events = await cluster.primary.query('select count(*)::int as n from inbound_events')
    assert.equal(events, [{ n: ORDERS }])
    const listeners = await cluster.primary.query(
      `select 1 from pg_stat_activity where query like 'listen %'`,
    )
    assert.is(listeners.length, 2)
    // Its connection is read-only by an option that the pooler refuses.
    const command = [AFFILIATE, 'users', 'list', '--json']
    const { stdout } = await promisify(execFile)(process.execPath, command, {
      env: { ...process.env, ...environment },
    })
    assert.match(stdout, 'm@example.pk')
  } finally {
    await Promise.all([first, second].map(({ service }) => service.stop()))
    await pooler.close()
    await cluster.close()
    rmSync(folder, { recursive: true, force: true })
  }
})

if (!testDialects().includes('postgresql')) {
  const without = suite('without PostgreSQL')
  without.skip('there is no PostgreSQL in this run', () => {})
  without.run()
} else if (!hasPgBouncer()) {
  const without = suite('without PgBouncer')
  without.skip('PgBouncer 1.21 or newer is not installed; TEST_PGBOUNCER names one', () => {})
  without.run()
} else it.run()
