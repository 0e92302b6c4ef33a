// mostly waits
import { CompiledQuery, sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { migrate } from '../../migrator.ts'
import { onPostgres } from '../../test/testkit/databases.ts'
import { eventually } from '../../test/testkit/eventually.ts'
import { messageOf, transactionFault } from '../../test/testkit/rejection.ts'
import { type PostgresCluster, type PostgresNode, startCluster } from '../../test/testkit/standby.ts'
import { Caches } from '../cache/caches.ts'
import { subscribeSignals } from '../cache/signals.ts'
import { createLog } from '../log.ts'
import { Topics } from '../topics.ts'
import { withStatementTimeout } from './database.ts'
import { checkHosts } from './open-database.ts'
import { openPostgres } from './postgresql.ts'

const it = suite<{ cluster: PostgresCluster; primary: PostgresNode; standby: PostgresNode }>(
  'PostgreSQL hosts',
)

it.before(async (context) => {
  context.cluster = await startCluster()
  context.primary = context.cluster.primary
  context.standby = await context.primary.addStandby('s1')
})

it.after(({ cluster }) => cluster.close())

const NO_SERVER = '127.0.0.1:1'
const hostOf = (node: PostgresNode) => `127.0.0.1:${node.port}`
const urlOf = (...hosts: string[]) =>
  `postgres://postgres:secret@${hosts.join(',')}/postgres?target_session_attrs=read-write`
const refusalOf = (url: string) => messageOf(checkHosts('DATABASE_URL', url))
const portOf = CompiledQuery.raw(`select current_setting('port')::int as port`)

it('passes over a frozen host, and reads from the primary too', async ({ primary, standby }) => {
  standby.freeze()
  const database = openPostgres(urlOf(hostOf(standby), hostOf(primary)), { readOnly: true })
  const { rows } = await database.reader.executeQuery<{ port: number }>(portOf)
  assert.is(rows[0]?.port, primary.port)
  await database.close()
  standby.thaw()
})

it('says that only standbys, or no host at all, can be reached', async ({ standby }) => {
  const standbys = urlOf(hostOf(standby), NO_SERVER)
  const only = await refusalOf(standbys)
  assert.match(only, 'only standbys can be reached')
  assert.match(only, `${hostOf(standby)}: takes reads only`)
  assert.match(only, `${NO_SERVER}: connect ECONNREFUSED`)
  assert.match(await refusalOf(urlOf(NO_SERVER, '127.0.0.1:2')), 'no host can be reached')
  const database = openPostgres(standbys)
  assert.is(await transactionFault(database), 'unavailable')
  await database.close()
})

it('refuses hosts of two clusters', async ({ primary }) => {
  // The cluster takes any password, so the address of the test run's own server serves for both.
  const other = new URL(process.env.TEST_POSTGRES_URL ?? '')
  const clusters = `postgres://${other.username}:${other.password}@${other.host},${hostOf(primary)}/postgres`
  const foreign = await refusalOf(clusters)
  assert.match(foreign, /^setting DATABASE_URL: .* are not one cluster/)
  assert.match(foreign, `${other.host} and ${hostOf(primary)}`)
})

it('refuses a copy of the primary that takes writes, knows a server by two names', async ({ primary }) => {
  const copy = await primary.addStandby('copy', undefined, { follows: false })
  const two = await refusalOf(urlOf(hostOf(primary), hostOf(copy)))
  assert.match(two, /^setting DATABASE_URL: .* both take writes: end/)
  await copy.stop('kill')
  const names = urlOf(hostOf(primary), `localhost:${primary.port}`)
  assert.is(await refusalOf(names), '')
})

it('finds the primary, the next after a switchover, and refuses the former', async ({ primary, standby }) => {
  const url = urlOf(NO_SERVER, hostOf(standby), hostOf(primary))
  await checkHosts('DATABASE_URL', url)
  const database = openPostgres(url, { poolSize: 2 })
  const writesTo = async () => (await database.executeBatch<{ port: number }>(portOf))[0]?.port
  try {
    assert.is(await writesTo(), primary.port)
    await migrate(database)
    const caches = new Caches()
    const listening = subscribeSignals({ caches, log: createLog('silent'), topics: new Topics() }, database)
    await listening.ready
    await database.transaction((tx) => sql`create table t (n bigint)`.execute(tx))
    await primary.stop()
    await standby.promote()
    assert.is(await eventually(() => writesTo().catch(() => null)), standby.port)
    await database.transaction((tx) => sql`insert into t values (1)`.execute(tx))
    const listeners = sql`select 1 as n from pg_stat_activity where query like 'listen %'`
    assert.is(await eventually(async () => (await listeners.execute(database.reader)).rows.length), 1)
    await listening.stop()
  } finally {
    await database.close()
  }
  await primary.start()
  const split = await refusalOf(urlOf(hostOf(primary), hostOf(standby)))
  assert.match(split, /^setting DATABASE_URL: .* both take writes: end/)
})

it('leaves a frozen primary for the standby that takes over', async () => {
  const cluster = await startCluster()
  const { primary } = cluster
  const standby = await primary.addStandby('s1')
  const url = urlOf(hostOf(primary), hostOf(standby))
  const database = openPostgres(url, { poolSize: 2, queryTimeoutMs: 60_000 })
  const writesTo = async () => (await database.executeBatch<{ port: number }>(portOf))[0]?.port
  try {
    assert.is(await writesTo(), primary.port)
    primary.freeze()
    // A statement that may take long, and one of a client: the pool has one connection for both.
    const long = messageOf(writesTo())
    const short = () => withStatementTimeout(writesTo).catch(() => null)
    assert.is(await short(), null)
    await standby.promote()
    // The primary stays frozen.
    assert.is(await eventually(short), standby.port)
    assert.match(await long, 'Connection terminated')
  } finally {
    primary.thaw()
    await database.close()
    await cluster.close()
  }
})

onPostgres(it).run()
