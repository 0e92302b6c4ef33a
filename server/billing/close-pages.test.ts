import * as assert from 'uvu/assert'
import type { Paisa } from '../../shared/money.ts'
import { openFlags } from '../flags/flags.service.ts'
import { insertRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import {
  attemptsOf,
  brokenInvariants,
  cyclesOf,
  type Marketplace,
  type Shop,
} from '../test/testkit/marketplace.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { openRival } from '../test/testkit/rival.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { statementCounter } from '../test/testkit/statements.ts'
import { closeDueCycles } from './close-cycle.service.ts'
import { grantCredit } from './credits.service.ts'

interface Context {
  market: Marketplace
  /** In the order in which their cycles were opened. */
  shops: Shop[]
}

const RUPEES = 100
/** Commission 12.5 % and 10 % of it as fee: Rs 137.50 of Rs 1000. */
const SALE: Paisa = 1000 * RUPEES
const BILLED: Paisa = 13_750
const DECEMBER = '2026-12-01T00:00:00.000Z'
const SHOPS = 5

/** How many statements a close takes in its transactions, and what came out. */
async function counted(platform: Platform, { merchantId }: Partial<Shop>) {
  const counter = statementCounter()
  const database: Platform['database'] = {
    ...platform.database,
    transaction: (work) => platform.database.transaction((tx) => work(tx.withPlugin(counter))),
  }
  const outcomes = await closeDueCycles(
    { ...platform, database },
    { ...(merchantId && { merchantId }), actor: 'operator' },
  )
  return { statements: counter.count, outcomes }
}

for (const { it, dialect } of marketSuites<Context>('pages of billing cycles')) {
  it.before.each(async (context) => {
    const { market } = context
    context.shops = []
    for (let place = 0; place < SHOPS; place += 1) {
      const { shop, link } = await market.addTrade()
      // The third sells for too little to be invoiced.
      await market.sell(shop, link, place === 2 ? 7 * RUPEES : SALE)
      context.shops.push(shop)
    }
  })

  const shop = ({ shops }: Context, place: number): Shop => shops[place] as Shop
  const states = async ({ market, shops }: Context) =>
    Promise.all(
      shops.map(async ({ merchantId }) => (await cyclesOf(market.platform, merchantId)).map((c) => c.state)),
    )
  it('close, extend and use credit as each of them alone would, and say so in a dry run', async (context) => {
    const { market } = context
    const grant = { amount: 1000, reference: 'r', reason: 'damaged', actor: 'operator' }
    await grantCredit(market.platform, { ...grant, merchantId: shop(context, 1).merchantId })
    market.clock.set(DECEMBER)
    const news: string[] = []
    for (const { merchantId } of context.shops) {
      market.platform.topics.on(userTopic(merchantId), () => news.push(merchantId))
    }
    const preview = await closeDueCycles(market.platform, { dryRun: true })
    const outcomes = await closeDueCycles(market.platform, { actor: 'operator' })
    assert.equal(outcomes, preview)
    const of = (place: number) => shop(context, place).merchantId
    assert.equal(pluckAll(outcomes, 'merchantId', 'kind', 'creditTotal', 'amountDue'), [
      [of(0), 'closed', 0, BILLED],
      [of(1), 'closed', 1000, BILLED - 1000],
      [of(2), 'extended', 0, 0],
      [of(3), 'closed', 0, BILLED],
      [of(4), 'closed', 0, BILLED],
    ])
    assert.equal(await states(context), [['closed'], ['closed'], ['open'], ['closed'], ['closed']])
    assert.is((await rowsOf(market.platform, 'audit_entries', { action: 'billing.close' })).length, SHOPS)
    // Who has a closed cycle hears of it once.
    assert.equal(news.sort(), [of(0), of(1), of(3), of(4)].sort())
    await market.drainUntilIdle()
    assert.is(market.processor.calls.length, 4)
    await market.verify()
  })

  it('take as many statements as one cycle', async (context) => {
    const { market } = context
    market.clock.set(DECEMBER)
    const one = await counted(market.platform, shop(context, 0))
    const extended = await counted(market.platform, shop(context, 2))
    const rest = await counted(market.platform, {})
    assert.equal([one.outcomes.length, extended.outcomes.length, rest.outcomes.length], [1, 1, 3])
    assert.is(one.statements, dialect === 'postgresql' ? 12 : 11)
    assert.is(rest.statements, one.statements)
    await market.verify()
  })

  it('leave out exactly the cycles that cannot be closed, until they can', async (context) => {
    const { market } = context
    const { platform } = market
    market.clock.set(DECEMBER)
    const { asked, below, heal } = await poison(context)
    const logged: unknown[] = []
    const log = { error: ({ item }: { item: unknown }) => logged.push(item), warn() {} }
    const outcomes = await closeDueCycles(Object.assign({}, platform, { log }))
    const failed = outcomes.filter(({ kind }) => kind === 'failed').map(({ cycleId }) => cycleId)
    const flags = await openFlags(platform.database.reader, 'run_failed')
    assert.equal(failed, [asked, below])
    assert.equal(pluck(flags, 'subject_id').sort(), [asked, below].sort())
    assert.equal(logged, [asked, below])
    assert.equal(await states(context), [['closed'], ['open'], ['open'], ['open'], ['closed']])
    await heal()
    const late = await closeDueCycles(platform)
    assert.equal(pluckAll(late, 'cycleId', 'kind'), [
      [asked, 'closed'],
      [below, 'closed'],
    ])
    assert.equal(await states(context), [['closed'], ['closed'], ['open'], ['closed'], ['closed']])
    // That someone asked for an invoice without a word is what the poison was.
    assert.equal(Object.keys(await brokenInvariants(platform)), ['second-attempts-recorded'])
  })

  /** The second shop's invoice is asked for already, which the database refuses; the fourth's total is below zero. */
  const poison = async ({ market: { platform }, shops }: Context) => {
    const [first] = await closeDueCycles(platform, { merchantId: shops[0]?.merchantId ?? '' })
    const [template] = await attemptsOf(platform, first?.cycleId ?? '')
    const [asked] = await cyclesOf(platform, shops[1]?.merchantId ?? '')
    const [below] = await cyclesOf(platform, shops[3]?.merchantId ?? '')
    if (!template || !asked || !below) throw new Error('no cycles to poison')
    const set = (commission: number) =>
      platform.database.transaction((tx) => {
        const cycle = tx.updateTable('billing_cycles').where('id', '=', below.id)
        return cycle.set({ commission_total: commission }).execute()
      })
    await set(-1)
    const id = platform.ids.next()
    await platform.database.transaction((tx) =>
      insertRows(tx, 'processor_attempts', [{ ...template, id, subject_id: asked.id }]),
    )
    const heal = async () => {
      await set(below.commission_total)
      await platform.database.transaction((tx) =>
        tx.updateTable('processor_attempts').set({ state: 'refused' }).where('id', '=', id).execute(),
      )
    }
    return { asked: asked.id, below: below.id, heal }
  }

  it('close each cycle once when several schedulers and late orders meet', async (context) => {
    const { market, shops } = context
    market.clock.set(DECEMBER)
    const rival = await openRival(market.bed)
    const link = await market.addLink(shop(context, 3), await market.addCreator())
    await market.order(shop(context, 3), link, SALE)
    const [ours, theirs, again] = await Promise.all([
      closeDueCycles(market.platform, { actor: 'operator' }),
      closeDueCycles(rival.platform, { actor: 'operator' }),
      closeDueCycles(rival.platform, { actor: 'operator' }),
      market.drainUntilIdle(),
    ])
    await rival.close()
    const closed = [...ours, ...theirs, ...again].filter(({ kind }) => kind === 'closed')
    assert.is(new Set(closed.map(({ cycleId }) => cycleId)).size, closed.length)
    await market.drainUntilIdle()
    for (const { merchantId } of shops) {
      const [first] = await cyclesOf(market.platform, merchantId)
      const asked = await attemptsOf(market.platform, first?.id ?? '')
      assert.is(asked.length, merchantId === shop(context, 2).merchantId ? 0 : 1)
    }
    assert.equal(await states(context), [['closed'], ['closed'], ['open'], ['closed', 'open'], ['closed']])
    await market.verify()
  })

  it.run()
}
