import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ENTITIES } from '../../server/platform/schema.ts'
import { testDialects } from '../../server/proof/testbed/databases.ts'
import { openFixtureDatabase } from '../../server/proof/testbed/fixture-databases.ts'
import { AS_SERVICE_ROLE } from '../../server/proof/testbed/service-role.ts'
import { fillMarket } from './fill-market.ts'

/** The tables of commit 309daf1; later ones may stay empty here. */
async function firstTables(): Promise<string[]> {
  const { database, close } = await openFixtureDatabase('sqlite', '309daf1')
  const tables = await database.reader.introspection.getTables()
  await close()
  return ENTITIES.map(({ meta }) => meta.tableName).filter((name) =>
    tables.some((table) => table.name === name),
  )
}

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
      const tables = await firstTables()
      assert.ok(tables.length > 30)
      for (const table of tables) {
        const { rows } = await sql`select 1 from ${sql.table(table)} limit 1`.execute(reader)
        if (rows.length === 0) empty.push(table)
      }
      await market.close()
      assert.equal(empty, [])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it.run()
}
