import * as assert from 'uvu/assert'
import { rewriteJournal } from '../../test/testkit/journal-attacks.ts'
import { addTrade, type MarketContext, marketSuites } from '../../test/testkit/market-suites.ts'
import { brokenInvariants, type Trade } from '../../test/testkit/marketplace.ts'
import { assertMapped, pluckAll } from '../../test/testkit/pluck.ts'
import { openRival } from '../../test/testkit/rival.ts'
import { rowsOf } from '../../test/testkit/rows.ts'
import { removeGuards } from '../../test/testkit/tamper.ts'
import { compareWithKept } from '../../verification/seals.ts'
import { type Seal, sealLedger } from './seals.service.ts'

type Context = MarketContext & Trade

for (const { it } of marketSuites<Trade>('seals')) {
  it.before.each(addTrade)

  const sell = ({ market, shop, link }: Context) => market.sell(shop, link, 400_000)
  const sealed = async ({ market }: Context): Promise<Seal> => {
    const { seal } = await sealLedger(market.platform)
    if (!seal) throw new Error('nothing was sealed')
    return seal
  }
  const brokenChecks = async ({ market }: Context) => Object.keys(await brokenInvariants(market.platform))

  it('are made of what moved, follow each other, and are not made for nothing', async (context) => {
    const { market, shop, link } = context
    assert.equal(await sealLedger(market.platform), { seal: null, moved: 0 })
    await sell(context)
    const first = await sealLedger(market.platform)
    assert.equal([first.seal?.position, first.seal?.sealedAt, first.moved], [1, market.clock.now(), 1])
    market.clock.pass(1000)
    assert.equal(await sealLedger(market.platform), { seal: first.seal, moved: 0 })
    await market.earn(shop, link, 900_000)
    const second = await sealLedger(market.platform)
    assert.equal([second.seal?.position, second.moved], [2, 1])
    assert.is.not(second.seal?.digest, first.seal?.digest)
    // A sale; then another one, the close and the charge.
    const heads = await rowsOf(market.platform, 'ledger_seal_heads', {}, 'position')
    assert.equal(pluckAll(heads, 'position', 'ledger_id', 'sequence'), [
      [1, shop.merchantId, 1],
      [2, shop.merchantId, 4],
    ])
    await market.verify()
  })

  it('of two sealers at once are one, or one behind the other', async (context) => {
    const { market } = context
    const rival = await openRival(market.bed)
    for (let round = 1; round <= 10; round += 1) {
      await sell(context)
      const outcomes = await Promise.all([sealLedger(market.platform), sealLedger(rival.platform)])
      assert.equal(outcomes.map(({ moved }) => moved).sort(), [0, 1])
      assertMapped(outcomes, ({ seal }) => seal?.position, [round, round])
    }
    await rival.close()
    await market.verify()
  })

  it('kept elsewhere show that all up to them still stands, whatever came later', async (context) => {
    await sell(context)
    const kept = await sealed(context)
    await sell(context)
    const later = await sealed(context)
    await sell(context)
    const { keys, database } = context.market.platform
    const { reader } = database
    assert.equal(await compareWithKept(reader, keys, kept.digest), { rows: 1, breaches: [] })
    assert.equal((await compareWithKept(reader, keys, later.digest)).rows, 2)
  })

  it('catch a journal that was rewritten as a whole; with the key and the seals, only the one that was kept elsewhere does', async (context) => {
    const { database } = context.market.bed.testDatabase
    const { keys } = context.platform
    await sell(context)
    await sell(context)
    const kept = await sealed(context)
    await removeGuards(database)
    assert.equal(await brokenChecks(context), [])
    const another =
      /not the digest of the one seal in this database. Either the books were rewritten or seals/
    const chain = ['chain-unbroken', 'heads-authentic', 'seals-hold']
    for (const [rewriting, broken, detail] of [
      [{ seals: false, keys }, ['seals-hold'], /entry 2 of ledger .*, which was sealed with it, is another/],
      [{ seals: true, keys }, [], another],
      [{ seals: false, keys: null }, chain, another],
      [{ seals: true, keys: null }, [...chain, 'rows-authentic-ledger-seals'], another],
    ] as const) {
      await rewriteJournal(database, rewriting)
      assert.equal(await brokenChecks(context), broken)
      const { breaches } = await compareWithKept(database.reader, keys, kept.digest)
      assert.match(breaches[0]?.detail ?? '', detail)
    }
  })

  it('that were taken out are missed', async (context) => {
    const { database } = context.market.bed.testDatabase
    const { keys } = context.market.platform
    await sell(context)
    const kept = await sealed(context)
    await removeGuards(database)
    await database.writer.deleteFrom('ledger_seal_heads').execute()
    await database.writer.deleteFrom('ledger_seals').execute()
    assert.equal(await brokenChecks(context), ['rows-complete-ledger-seals'])
    const { breaches } = await compareWithKept(database.reader, keys, kept.digest)
    assert.match(breaches[0]?.detail ?? '', /any seal: there are none in this database/)
  })

  it.run()
}
