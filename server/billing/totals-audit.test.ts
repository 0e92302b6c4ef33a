// database: sqlite
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openTestbed, type Testbed } from '../test/testkit/testbed.ts'

const it = suite<{ bed: Testbed }>('how the totals of cycles are audited on sqlite')
it.before(async (context) => {
  context.bed = await openTestbed('sqlite')
})
it.after(({ bed }) => bed.close())

it('sums up in the index of cycles, without a look at the sales themselves', async ({ bed }) => {
  for (const by of ['billing_cycle_id', 'billing_cycle_id, creator_id']) {
    const { rows } = await sql<{ detail: string }>`explain query plan
      select ${sql.raw(by)}, count(*), sum(commission), sum(platform_fee) from sales
      where billing_cycle_id is not null group by ${sql.raw(by)}`.execute(bed.platform.database.reader)
    assert.is(rows.length, 1, JSON.stringify(rows))
    assert.match(rows[0]?.detail ?? '', /USING COVERING INDEX sales_cycle_shares\b/)
  }
})

it.run()
