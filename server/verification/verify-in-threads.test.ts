import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openDatabase } from '../platform/database/open-database.ts'
import { testDialects } from '../test/testkit/databases.ts'
import { openMarketplace } from '../test/testkit/marketplace.ts'
import { mustOnlyRead } from '../test/testkit/reading-only.ts'
import { removeGuards } from '../test/testkit/tamper.ts'
import { INVARIANTS, type InvariantResult, verifyBooks } from './verify-books.ts'
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
        const { keys } = market.platform
        const database = await openDatabase(own, { create: false, readOnly: true })
        const results = await verifyInThreads(url, { db: database.reader, keys }, () => undefined)
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

  it('tell of a chain that is broken between two parts once, as one thread does', async () => {
    const market = await openMarketplace(dialect)
    try {
      const shop = await market.addShop()
      const link = await market.addLink(shop, await market.addCreator())
      await market.earn(shop, link, 400_000)
      await market.order(shop, link, 200_000)
      await market.drainUntilIdle()
      const { database, url } = market.bed.testDatabase
      const { keys } = market.platform
      await removeGuards(database)
      // Its own hash no longer fits, nor that of the entry behind it: there are as many parts as entries.
      await sql`update ledger_entries set hash = 'another' where sequence = 1`.execute(database.writer)
      const chainOf = (results: InvariantResult[]) =>
        results.find(({ name }) => name === 'chain-unbroken')?.breaches.map(({ subject }) => subject)
      const told = chainOf(await verifyInThreads(url, { db: database.reader, keys }, () => undefined))
      const ledgers = await database.reader.selectFrom('ledger_heads').select('ledger_id').execute()
      assert.is(told?.length, ledgers.length)
      assert.equal(told?.toSorted(), chainOf(await verifyBooks({ database, keys }))?.toSorted())
    } finally {
      await market.close()
    }
  })

  it.run()
}
