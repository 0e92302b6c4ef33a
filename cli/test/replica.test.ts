// long
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres } from '../../server/test/testkit/databases.ts'
import { type PostgresCluster, type PostgresNode, startCluster } from '../../server/test/testkit/standby.ts'
import { runHere } from './run-here.ts'

const it = suite('commands and a replica')
const folder = mkdtempSync(join(tmpdir(), 'affiliate-replica-cli-'))
let cluster: PostgresCluster
let standby: PostgresNode

/** What the command prints, whether it succeeds or not. */
async function run(words: string, settings: Record<string, string> = {}): Promise<string> {
  const own = { DATABASE_URL: cluster.primary.url, DATA_DIR: folder }
  const { stdout, stderr } = await runHere(words.split(' '), { ...own, ...settings })
  return stdout + stderr
}

it.before(async () => {
  cluster = await startCluster()
  await run('seed --yes')
  standby = await cluster.primary.addStandby('s1')
})
it.after(async () => {
  await cluster.close()
  rmSync(folder, { recursive: true, force: true })
})

it('ledger verify --full --replica checks the replica and stores nothing', async () => {
  const settings = { DATABASE_READ_URL: standby.url }
  const { ok, full, mark_stored } = JSON.parse(await run('ledger verify --full --replica --json', settings))
  assert.equal([ok, full, mark_stored], [true, true, false])
  assert.match(await run('ledger verify --replica', settings), 'Pass --full with --replica')
  assert.match(await run('ledger verify --full --replica'), 'DATABASE_READ_URL is not set')
})

it('doctor shows a replica, one behind, a standby for the primary', async () => {
  const settings = { DATABASE_READ_URL: standby.url }
  assert.match(await run('doctor', settings), /✓ replica\s+127\.0\.0\.1:\d+ has what the primary has/)
  await standby.query('select pg_wal_replay_pause()')
  await cluster.primary.query('create table later (n int)')
  assert.match(await run('doctor', settings), /! replica\s+127\.0\.0\.1:\d+ is behind the primary/)
  await standby.query('select pg_wal_replay_resume()')
  const wrong = { DATABASE_URL: standby.url, PORT: '0' }
  const readsOnly = /✗ database\s+127\.0\.0\.1:\d+ is a standby and takes reads only/
  assert.match(await run('doctor', wrong), readsOnly)
  assert.match(await run('serve', wrong), 'Name the primary in DATABASE_URL')
})

onPostgres(it).run()
