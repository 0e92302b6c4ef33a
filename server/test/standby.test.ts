import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { onPostgres } from './testkit/databases.ts'
import { eventually } from './testkit/eventually.ts'
import { startCluster } from './testkit/standby.ts'

const it = suite('a primary and its standby')

it('stream, freeze, crash and are promoted', async () => {
  const cluster = await startCluster()
  const { primary } = cluster
  try {
    await primary.query('create table t (n int)')
    const standby = await primary.addStandby('s1')
    await primary.query('insert into t values (1)')
    await eventually(
      () => standby.query('select n from t'),
      (rows) => rows.length === 1,
    )
    await primary.configure({ synchronous_standby_names: 's1' })
    await eventually(
      () => primary.query('select sync_state from pg_stat_replication'),
      (rows) => rows[0]?.sync_state === 'sync',
    )
    primary.freeze()
    const asked = primary.query('select 1')
    assert.is(
      await Promise.race([asked.then(() => 'answered'), standby.query('select 2').then(() => 'frozen')]),
      'frozen',
    )
    primary.thaw()
    await asked
    await primary.stop('kill')
    await standby.promote()
    await standby.query('insert into t values (2)')
    await primary.start()
    assert.equal(await primary.query('select n from t'), [{ n: 1 }])
  } finally {
    await cluster.close()
  }
})

onPostgres(it).run()
