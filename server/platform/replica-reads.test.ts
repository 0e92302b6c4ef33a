// mostly waits
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Service, startService } from '../service.ts'
import { onPostgres } from '../test/testkit/databases.ts'
import { eventually } from '../test/testkit/eventually.ts'
import { messageOf } from '../test/testkit/rejection.ts'
import { call } from '../test/testkit/service-bed.ts'
import { type PostgresCluster, type PostgresNode, startCluster } from '../test/testkit/standby.ts'
import type { Platform } from './platform.ts'
import { currentReads, readReplica } from './replica-reads.ts'

interface Context {
  cluster: PostgresCluster
  primary: PostgresNode
  standby: PostgresNode
  folder: string
  service: Service
  platform: Platform
  url: string
}

const it = suite<Context>('a replica for reads')

const environmentOf = (primary: PostgresNode, readUrl: string, folder: string) => ({
  ...{ PORT: '0', ROLES: 'web', LOG_LEVEL: 'silent', DATA_DIR: folder },
  ...{ DATABASE_URL: primary.url, DATABASE_READ_URL: readUrl },
})

it.before(async (context) => {
  context.cluster = await startCluster()
  context.primary = context.cluster.primary
  context.standby = await context.primary.addStandby('s1')
  context.folder = mkdtempSync(join(tmpdir(), 'affiliate-replica-'))
  const environment = environmentOf(context.primary, context.standby.url, context.folder)
  context.service = await startService({ environment })
  context.platform = context.service.app.platform
  context.url = context.service.url ?? ''
})

it.after(async ({ service, cluster, folder }) => {
  await service.stop()
  await cluster.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Whether this platform's reads go to the standby. */
async function isStandby(platform: Platform): Promise<boolean> {
  const recovery = sql<{ is: boolean }>`select pg_is_in_recovery() as is`
  return (await recovery.execute(platform.database.reader)).rows[0]?.is ?? false
}

const readsStandby = (platform: Platform) => readReplica(platform, isStandby)
const untilReadsStandby = (platform: Platform) => eventually(() => readsStandby(platform))
const untilReadsPrimary = (platform: Platform) => eventually(async () => !(await readsStandby(platform)))

async function register(url: string, email: string): Promise<string> {
  const body = { email, password: 'correct horse battery', role: 'merchant', display_name: 'M' }
  const answer = await call(url, 'POST', '/auth/register', { body })
  assert.is(answer.status, 201)
  return answer.body.token
}

it('answers public reads, while what is authenticated is read from the primary', async ({ platform }) => {
  await untilReadsStandby(platform)
  assert.not.ok(await isStandby(platform))
  assert.ok(await isStandby(await currentReads(platform)))
})

it('is not used once it is behind: a suspension counts', async ({ platform, standby, primary, url }) => {
  const token = await register(url, 'm@example.pk')
  await untilReadsStandby(platform)
  await standby.query('select pg_wal_replay_pause()')
  // The standby never learns of these.
  const late = await register(url, 'late@example.pk')
  assert.is((await call(url, 'GET', '/me', { token: late })).status, 200)
  await primary.query(`update users set suspended_at = 1 where email = 'm@example.pk'`)
  assert.ok(await readsStandby(platform))
  assert.is((await call(url, 'GET', '/me', { token })).status, 401)
  // An export of what was just written goes to the primary.
  assert.not.ok(await isStandby(await currentReads(platform)))
  await untilReadsPrimary(platform)
  await standby.query('select pg_wal_replay_resume()')
  await untilReadsStandby(platform)
})

it('is not used while it hangs, is gone, or has lost its primary', async ({ platform, standby, url }) => {
  standby.freeze()
  // The answer comes although the standby stays frozen.
  assert.not.ok(await readsStandby(platform))
  assert.is((await call(url, 'GET', '/offers')).status, 200)
  standby.thaw()
  await untilReadsStandby(platform)
  await standby.stop('kill')
  assert.not.ok(await readsStandby(platform))
  assert.is((await call(url, 'GET', '/offers?limit=7')).status, 200)
  await standby.start()
  await untilReadsStandby(platform)
  // It still answers, but receives no changes.
  await standby.configure({ primary_conninfo: 'host=127.0.0.1 port=1' })
  await register(url, 'unheard@example.pk')
  await untilReadsPrimary(platform)
})

it('is refused if it is of another cluster or database', async ({ primary, folder }) => {
  const refusalOf = (readUrl: string) =>
    messageOf(startService({ environment: environmentOf(primary, readUrl, folder) }))
  const elsewhere = 'setting DATABASE_READ_URL: names another database than DATABASE_URL'
  assert.is(await refusalOf(process.env.TEST_POSTGRES_URL ?? ''), elsewhere)
  assert.is(await refusalOf(primary.url.replace(/postgres$/, 'template1')), elsewhere)
})

it('a process that is pointed at the standby says so', async ({ standby, folder }) => {
  const environment = environmentOf(standby, standby.url, folder)
  assert.match(await messageOf(startService({ environment })), 'the server takes reads only')
})

onPostgres(it).run()
