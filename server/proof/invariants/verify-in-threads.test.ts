import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openDatabase } from '../../platform/open-database.ts'
import { testDialects } from '../testbed/databases.ts'
import { openMarketplace } from '../testbed/marketplace.ts'
import { mustOnlyRead } from '../testbed/reading-only.ts'
import { INVARIANTS } from './verify-books.ts'
import { verifyInThreads } from './verify-in-threads.ts'

for (const dialect of testDialects()) {
  const it = suite(`invariants in threads on ${dialect}`)

  it('are all checked, by connections that cannot write', async () => {
    const market = await openMarketplace(dialect)
    try {
      const shop = await market.addShop()
      await market.earn(shop, await market.addLink(shop, await market.addCreator()), 400_000)
      await mustOnlyRead(market.bed.testDatabase, async (url) => {
        // Not the SQLite file of the threads: who closes it last is the one that shows what it may.
        const own = dialect === 'sqlite' ? market.bed.testDatabase.url : url
        const database = await openDatabase(own, { create: false, readOnly: true })
        const results = await verifyInThreads(url, database.reader, () => undefined)
        await database.close()
        assert.equal(
          results.map(({ name, breaches }) => [name, breaches]),
          INVARIANTS.map(({ name }) => [name, []]),
        )
      })
    } finally {
      await market.close()
    }
  })

  it.run()
}
