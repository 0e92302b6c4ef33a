import { randomBytes } from 'node:crypto'
import * as assert from 'uvu/assert'
import { sealLedger } from '../ledger/seals/seals.service.ts'
import { createAppKeys } from '../platform/crypto/key-ring.ts'
import { simulatedIds } from '../test/simulation/simulated-ids.ts'
import { addTrade, type MarketContext, marketSuites } from '../test/testkit/market-suites.ts'
import { brokenInvariants, type Trade } from '../test/testkit/marketplace.ts'
import { rowOf, rowsOf } from '../test/testkit/rows.ts'
import { removeGuards } from '../test/testkit/tamper.ts'
import { HOUR } from '../test/testkit/testbed.ts'
import { Scope } from './scope.ts'
import {
  prepareVerifiedMark,
  readVerifiedMark,
  storeVerifiedMark,
  type VerifiedMark,
} from './verified-mark.ts'
import { type Books, verifyBooks } from './verify-books.ts'

type Context = MarketContext & Trade

for (const { it } of marketSuites<Trade>('verified mark', { idsOf: simulatedIds })) {
  it.before.each(addTrade)

  const sell = ({ market, shop, link }: Context, financialStatus = 'paid') =>
    market.sell(shop, link, 400_000, { financialStatus })
  const newest = async ({ platform }: Context) => (await rowsOf(platform, 'sales')).at(-1)?.id ?? ''
  /** Verifies all books as they are, and stores that. */
  const storeMark = async ({ market }: Context) => {
    const { platform, clock } = market
    await market.verify()
    const value = await prepareVerifiedMark(platform, clock.now())
    if (value === null) throw new Error('nothing is sealed')
    await storeVerifiedMark(platform.database, value)
  }
  const readMark = async (books: Books): Promise<VerifiedMark> => {
    const mark = await readVerifiedMark(books)
    if (mark === null || typeof mark === 'string') throw new Error(`no mark: ${mark}`)
    return mark
  }
  const resultsSince = async (context: Context) => {
    const { platform } = context.market
    const { covered } = await readMark(platform)
    return verifyBooks(platform, { scope: new Scope(covered) })
  }
  const brokenSince = async (context: Context) =>
    (await resultsSince(context)).filter(({ breaches }) => breaches.length > 0).map(({ name }) => name)
  const brokenInAll = async ({ market }: Context) => Object.keys(await brokenInvariants(market.platform))
  /** Verifies what is sealed and hours old, and lets anything be changed from then on. */
  const cover = async (context: Context) => {
    context.clock.pass(2 * HOUR)
    await sealLedger(context.platform)
    await storeMark(context)
    await removeGuards(context.bed.testDatabase.database)
  }
  /** A sale that is covered. */
  const coverOneSale = async (context: Context) => {
    await sell(context)
    await cover(context)
    return newest(context)
  }
  const setCommission = ({ bed }: Context, id: string) =>
    bed.testDatabase.database.writer
      .updateTable('sales')
      .set({ commission: 1 })
      .where('id', '=', id)
      .execute()

  it('is not made before the first seal', async (context) => {
    const { platform, clock } = context.market
    await sell(context)
    assert.is(await prepareVerifiedMark(platform, clock.now()), null)
    assert.is(await readVerifiedMark(platform), null)
  })

  it('leaves out the rows that it covers, and checks those that came later', async (context) => {
    await coverOneSale(context)
    const checked = async (name: string) =>
      (await resultsSince(context)).find((result) => result.name === name)?.rows
    assert.equal([await checked('receipts-replay'), await checked('chain-unbroken')], [0, 0])
    await sell(context)
    assert.equal([await checked('receipts-replay'), await checked('chain-unbroken')], [1, 1])
    assert.equal(await brokenSince(context), [])
  })

  it('finds what was changed after it, in a sale and in the chain', async (context) => {
    await coverOneSale(context)
    await sell(context)
    await setCommission(context, await newest(context))
    assert.ok((await brokenSince(context)).includes('sales-in-journal'))
    const { writer } = context.bed.testDatabase.database
    const { sequence = 0 } = (await rowsOf(context.platform, 'ledger_entries', {}, 'sequence')).at(-1) ?? {}
    await writer
      .updateTable('ledger_entries')
      .set({ created_at: 1 })
      .where('sequence', '=', sequence)
      .execute()
    assert.ok((await brokenSince(context)).includes('chain-unbroken'))
  })

  it('leaves what was changed before it to a full verification', async (context) => {
    const covered = await coverOneSale(context)
    await setCommission(context, covered)
    assert.not((await brokenSince(context)).includes('sales-in-journal'))
    assert.ok((await brokenInAll(context)).includes('sales-in-journal'))
  })

  it('does not cover the new decision of a sale that was decided before it', async (context) => {
    const unpaid = await sell(context, 'pending')
    const sale = await newest(context)
    await sell(context)
    await cover(context)
    context.market.clock.pass(HOUR)
    await context.market.deliver(context.shop, unpaid.replace('"pending"', '"paid"'))
    await context.market.drainUntilIdle()
    assert.equal(await brokenSince(context), [])
    await setCommission(context, sale)
    assert.ok((await brokenSince(context)).includes('sales-in-journal'))
  })

  it('covers nothing that is newer than a pending event', async (context) => {
    await sell(context)
    const { market, shop, link } = context
    market.clock.pass(HOUR)
    const since = market.clock.now()
    await market.order(shop, link, 400_000)
    market.clock.pass(5 * HOUR)
    await sealLedger(market.platform)
    await storeMark(context)
    const { covered } = await readMark(market.platform)
    assert.is(covered.before, since - HOUR)
  })

  it('is refused when it, its seal or the ends of its ledgers were changed', async (context) => {
    await coverOneSale(context)
    const { platform } = context.market
    const { writer } = context.market.bed.testDatabase.database
    const stored = await rowOf(platform, 'watermarks', { name: 'verified' }, 'name')
    const put = (value: string) => storeVerifiedMark(platform.database, value)
    const problem = async (books: Books = platform) => {
      const mark = await readVerifiedMark(books)
      return typeof mark === 'string' ? mark : 'none'
    }
    const foreign = createAppKeys(randomBytes(32))
    const forged = await prepareVerifiedMark({ ...platform, keys: foreign }, context.market.clock.now())
    await put(forged ?? '')
    assert.match(await problem(), /key that is not in APP_KEY/)
    const middle = Math.floor(stored.value.length / 2)
    const other = stored.value[middle] === 'A' ? 'B' : 'A'
    await put(stored.value.slice(0, middle) + other + stored.value.slice(middle + 1))
    assert.match(await problem(), /it was changed/)
    await put('no mark')
    assert.is.not(await problem(), 'none')
    await put(stored.value)
    assert.is(await problem(), 'none')
    await writer.updateTable('ledger_seal_heads').set({ sequence: 99 }).execute()
    assert.match(await problem(), /ledger ends of seal 1/)
    const digest = '0'.repeat(64)
    await writer.updateTable('ledger_seals').set({ digest }).execute()
    assert.match(await problem(), /seal 1, on which it rests/)
  })

  it.run()
}
