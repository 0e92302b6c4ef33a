import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ENTITIES } from '../../server/platform/database/schema.ts'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { AS_SERVICE_ROLE } from '../../server/test/testkit/service-role.ts'
import { fillMarket } from './fill-market.ts'

/** What holds rows only while processes run. */
const TRANSIENT = ['counted_visitors', 'processes', 'rate_limits']

for (const dialect of testDialects()) {
  // On PostgreSQL every service runs with the privileges that "affiliate db grants" gives, and not as the owner of the tables.
  const options = dialect === 'postgresql' ? AS_SERVICE_ROLE : {}
  const it = suite(`the market of the fixture databases on ${dialect}`)

  it('has rows in every table and books that balance', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'affiliate-fill-market-'))
    try {
      const market = await fillMarket(dialect, folder, options)
      const { reader } = market.platform.database
      const empty: string[] = []
      const tables = Object.values(ENTITIES).map(({ meta }) => meta.tableName)
      assert.ok(tables.length > 30)
      for (const table of tables) {
        const { rows } = await sql`select 1 from ${sql.table(table)} limit 1`.execute(reader)
        if (rows.length === 0 && !TRANSIENT.includes(table)) empty.push(table)
      }
      await market.close()
      assert.equal(empty, [])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it.run()
}
