import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'pg'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres, openTestDatabase } from '../../test/testkit/databases.ts'
import { PostgresHosts } from './postgres-hosts.ts'
import { BoundedPool } from './postgres-pool.ts'

const CONNECT_MS = 200

const it = suite('the pool of PostgreSQL connections')

it('gets every connection back, also when a wait for one ends while the connection is checked', async () => {
  const testDatabase = await openTestDatabase('postgresql', { migrated: false })
  let isSlow = false
  class SlowClient extends Client {
    override query(...parts: unknown[]) {
      const run = () => (super.query as (...all: unknown[]) => unknown)(...parts)
      const { text } = parts[0] as { text?: string }
      return (
        isSlow && text === 'show transaction_read_only' ? delay(2 * CONNECT_MS).then(run) : run()
      ) as never
    }
  }
  const pool = new BoundedPool(new PostgresHosts(testDatabase.url), {
    Client: SlowClient as never,
    max: 1,
    // The second caller gets a new connection.
    maxUses: 1,
    waitMs: CONNECT_MS,
    queryTimeoutMs: 5000,
    access: 'write',
  })
  try {
    const first = await pool.connect()
    isSlow = true
    const second = pool.connect().then(
      (connection) => connection.release(),
      () => undefined,
    )
    first.release()
    await second
    // Waits for every connection: with one missing it never ends.
    await pool.end()
  } finally {
    await testDatabase.close()
  }
})

it('makes one connection for each place while the server hangs, however many callers give up', async () => {
  let connections = 0
  const server = createServer(() => (connections += 1)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const pool = new BoundedPool(new PostgresHosts(`postgres://postgres@127.0.0.1:${port}/postgres`), {
    max: 2,
    queryTimeoutMs: 5000,
    waitMs: 20,
    access: 'write',
  })
  for (let round = 0; round < 5; round += 1) {
    const callers = await Promise.allSettled([1, 2, 3].map(() => pool.connect()))
    assert.ok(callers.every(({ status }) => status === 'rejected'))
  }
  assert.is(connections, 2)
  await pool.end()
  server.close()
})

onPostgres(it).run()
