// long
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { unprivilegedAccount } from '../../scripts/testing/postgres-binaries.ts'
import { freePort } from '../../scripts/testing/postgres-server.ts'
import { onPostgres } from './testkit/databases.ts'
import { eventually } from './testkit/eventually.ts'
import { call, deliver, registerMerchant, startQuietly } from './testkit/service-bed.ts'
import { startCluster } from './testkit/standby.ts'

const PROGRAM = process.env.TEST_PGBOUNCER ?? 'pgbouncer'

/** Prepared statements in transaction mode came with 1.21. */
function hasPgBouncer(): boolean {
  const { stdout } = spawnSync(PROGRAM, ['--version'], { encoding: 'utf8' })
  const [, major = 0, minor = 0] = /PgBouncer (\d+)\.(\d+)/.exec(stdout ?? '') ?? []
  return Number(major) > 1 || Number(minor) >= 21
}

/** Starts a transaction pooler of five connections in front of the server on this port, as the guide configures it. */
async function startPgBouncer(serverPort: number) {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-pgbouncer-'))
  chmodSync(folder, 0o755)
  const port = await freePort()
  writeFileSync(join(folder, 'users'), '"postgres" ""\n')
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=127.0.0.1 port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${folder}/users
pool_mode = transaction
default_pool_size = 5
max_prepared_statements = 200
server_login_retry = 1
`,
  )
  const child = spawn(PROGRAM, [join(folder, 'pgbouncer.ini')], {
    ...unprivilegedAccount(),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let text = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (text.includes('process up')) resolve()
    })
    child.on('exit', () => reject(new Error(`PgBouncer ended: ${text}`)))
  })
  return {
    port,
    async close() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

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

const without = suite('without PgBouncer')
without.skip('PgBouncer 1.21 or newer is not installed; TEST_PGBOUNCER names one', () => {})

if (hasPgBouncer()) onPostgres(it).run()
else without.run()
