import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestDatabase, testDialects } from '../proof/testbed/databases.ts'
import { gatherFirstStatistics } from './first-statistics.ts'

const it = suite('first statistics')

it('on postgresql are gathered of each large table that was never looked at, once', async () => {
  if (!testDialects().includes('postgresql')) return
  const { database, close } = await openTestDatabase('postgresql', { migrated: false })
  try {
    const make = async (name: string, rows: number) => {
      await sql`create table ${sql.id(name)} (n text) with (autovacuum_enabled = off)`.execute(
        database.writer,
      )
      await sql`insert into ${sql.id(name)} select repeat('x', 1000) from generate_series(1, ${sql.lit(rows)})`.execute(
        database.writer,
      )
    }
    await make('large', 2000)
    await make('Other "large"', 2000)
    await make('small', 10)
    assert.equal(await gatherFirstStatistics(database), ['Other "large"', 'large'])
    const { rows } = await sql<{
      reltuples: number
    }>`select reltuples from pg_class where relname = 'large'`.execute(database.writer)
    assert.is(rows[0]?.reltuples, 2000)
    assert.equal(await gatherFirstStatistics(database), [])
  } finally {
    await close()
  }
})

it('on sqlite are of no use: it is told its indexes', async () => {
  if (!testDialects().includes('sqlite')) return
  const { database, close } = await openTestDatabase('sqlite')
  try {
    assert.equal(await gatherFirstStatistics(database), [])
  } finally {
    await close()
  }
})

it.run()
