// long
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres } from '../../server/test/testkit/databases.ts'
import { type PostgresCluster, type PostgresNode, startCluster } from '../../server/test/testkit/standby.ts'
import { runHere } from './run-here.ts'

interface Context {
  cluster: PostgresCluster
  primary: PostgresNode
  standby: PostgresNode
  folder: string
  /** What the command prints, whether it succeeds or not. */
  run(args: string[], settings?: Record<string, string>): Promise<string>
}

const it = suite<Context>('commands and a replica')

it.before(async (context) => {
  context.cluster = await startCluster()
  context.primary = context.cluster.primary
  context.folder = mkdtempSync(join(tmpdir(), 'affiliate-replica-cli-'))
  context.run = async (args, settings = {}) => {
    const { folder, primary } = context
    const { stdout, stderr } = await runHere(args, {
      DATABASE_URL: primary.url,
      DATA_DIR: folder,
      ...settings,
    })
    return stdout + stderr
  }
  await context.run(['seed', '--yes'])
  context.standby = await context.primary.addStandby('s1')
})

it.after(async ({ cluster, folder }) => {
  await cluster.close()
  rmSync(folder, { recursive: true, force: true })
})

it('ledger verify --full --replica checks the replica and stores nothing', async ({ run, standby }) => {
  const settings = { DATABASE_READ_URL: standby.url }
  const verified = JSON.parse(await run(['ledger', 'verify', '--full', '--replica', '--json'], settings))
  assert.is(verified.ok, true)
  assert.is(verified.full, true)
  assert.is(verified.mark_stored, false)
  assert.match(await run(['ledger', 'verify', '--replica'], settings), 'Pass --full with --replica')
  assert.match(await run(['ledger', 'verify', '--full', '--replica']), 'DATABASE_READ_URL is not set')
})

it('doctor shows a replica, one behind, a standby for the primary', async ({ run, standby, primary }) => {
  const settings = { DATABASE_READ_URL: standby.url }
  assert.match(await run(['doctor'], settings), /✓ replica\s+127\.0\.0\.1:\d+ has what the primary has/)
  await standby.query('select pg_wal_replay_pause()')
  await primary.query('create table later (n int)')
  assert.match(await run(['doctor'], settings), /! replica\s+127\.0\.0\.1:\d+ is behind the primary/)
  await standby.query('select pg_wal_replay_resume()')
  const wrong = await run(['doctor'], { DATABASE_URL: standby.url })
  assert.match(wrong, /✗ database\s+127\.0\.0\.1:\d+ is a standby and takes reads only/)
  assert.match(
    await run(['serve'], { DATABASE_URL: standby.url, PORT: '0' }),
    'Name the primary in DATABASE_URL',
  )
})

onPostgres(it).run()
