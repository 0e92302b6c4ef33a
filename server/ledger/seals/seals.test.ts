import * as assert from 'uvu/assert'
import type { LinkRecord } from '../../links/links.service.ts'
import { rewriteJournal } from '../../test/testkit/journal-attacks.ts'
import { marketSuites } from '../../test/testkit/market-suites.ts'
import { brokenInvariants, type Marketplace, type Shop } from '../../test/testkit/marketplace.ts'
import { assertMapped } from '../../test/testkit/pluck.ts'
import { openRival } from '../../test/testkit/rival.ts'
import { columnsOf } from '../../test/testkit/rows.ts'
import { removeGuards } from '../../test/testkit/tamper.ts'
import { compareWithKept } from '../../verification/seals.ts'
import { type Seal, sealLedger } from './seals.service.ts'

interface Context {
  market: Marketplace
  shop: Shop
  link: LinkRecord
}

for (const { it } of marketSuites<Context>('seals')) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
    context.link = await context.market.addLink(context.shop, await context.market.addCreator())
  })

  const sell = async ({ market, shop, link }: Context) => {
    await market.order(shop, link, 400_000)
    await market.drainUntilIdle()
  }
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
    const heads = await columnsOf(
      market.platform,
      'ledger_seal_heads',
      ['position', 'ledger_id', 'sequence'],
      {},
      'position',
    )
    // A sale; then another one, the close and the charge.
    assert.equal(heads, [
      { position: 1, ledger_id: shop.merchantId, sequence: 1 },
      { position: 2, ledger_id: shop.merchantId, sequence: 4 },
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

  it('catch a journal that was rewritten as a whole with the key', async (context) => {
    const { database } = context.market.bed.testDatabase
    const { keys } = context.market.platform
    await sell(context)
    await sell(context)
    const kept = await sealed(context)
    await removeGuards(database)
    assert.equal(await brokenChecks(context), [])
    await rewriteJournal(database, { seals: false, keys })
    assert.equal(await brokenChecks(context), ['seals-hold'])
    const { breaches } = await compareWithKept(database.reader, keys, kept.digest)
    assert.match(
      breaches[0]?.detail ?? '',
      /entry 2 of ledger .*, which was sealed with it, is another one now/,
    )
  })

  it('that were rewritten along with it with the key are caught by the one that was kept elsewhere, and by nothing else', async (context) => {
    const { database } = context.market.bed.testDatabase
    const { keys } = context.market.platform
    await sell(context)
    const kept = await sealed(context)
    await removeGuards(database)
    await rewriteJournal(database, { seals: true, keys })
    assert.equal(await brokenChecks(context), [])
    const against = await compareWithKept(database.reader, keys, kept.digest)
    assert.is(against.breaches[0]?.subject, `digest ${kept.digest}`)
    assert.match(
      against.breaches[0]?.detail ?? '',
      /not the digest of the one seal in this database. Either the books were rewritten or seals taken out/,
    )
  })

  it('and journal that were rewritten as a whole without the key are found in any case', async (context) => {
    const { database } = context.market.bed.testDatabase
    await sell(context)
    await sealed(context)
    await removeGuards(database)
    for (const seals of [false, true]) {
      await rewriteJournal(database, { seals, keys: null })
      const broken = ['chain-unbroken', 'heads-authentic', 'seals-hold']
      if (seals) broken.push('rows-authentic-ledger-seals')
      assert.equal(await brokenChecks(context), broken)
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
