import * as assert from 'uvu/assert'
import { creatorBalance } from '../ledger/ledger.service.ts'
import type { LinkRecord } from '../links/links.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import {
  giveDestination,
  type Marketplace,
  openFlagsOf,
  payoutOf,
  type Shop,
} from '../test/testkit/marketplace.ts'
import { setSuspended } from '../test/testkit/people.ts'
import { openRival } from '../test/testkit/rival.ts'
import { DAY } from '../test/testkit/testbed.ts'
import { runPayouts } from './payout-run.service.ts'
import { listPayoutParts } from './payouts.service.ts'

interface Context {
  market: Marketplace
  shop: Shop
  creator: Actor
  link: LinkRecord
}

/** A sale of Rs 8000 earns 12.5 %: Rs 1000, the threshold. */
const SALE = 800_000
const EARNED = 100_000

for (const { it } of marketSuites<Context>('payouts', { verify: true })) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
    context.creator = await context.market.addCreator()
    context.link = await context.market.addLink(context.shop, context.creator)
  })

  const run = ({ market }: Context, options = {}) => runPayouts(market.platform, market.processor, options)
  const balance = async ({ market, creator }: Context) => {
    const { pending, released, inTransit, paid } = await creatorBalance(
      market.platform.database.reader,
      creator.userId,
    )
    return [pending, released, inTransit, paid]
  }
  const payouts = ({ market }: Context) =>
    market.platform.database.reader.selectFrom('payouts').selectAll().orderBy('id').execute()
  /** Runs, sends, and has the processor settle the payout that was made; answers its id. */
  const payAndSettle = async (context: Context, word: 'confirmed' | 'failed') => {
    const [outcome] = await run(context)
    if (outcome?.kind !== 'paid_out' || !outcome.payoutId)
      throw new Error(`no payout: ${JSON.stringify(outcome)}`)
    await context.market.drainUntilIdle()
    await context.market.settlePayout(outcome.payoutId, word)
    await context.market.drainUntilIdle()
    return outcome.payoutId
  }

  it('waits below the threshold, and pays the whole balance from it on', async (context) => {
    const { market, shop, link, creator } = context
    await market.earn(shop, link, SALE - 800)
    const below = { creatorId: creator.userId, kind: 'waits', why: 'below_threshold', amount: EARNED - 100 }
    assert.equal(await run(context), [below])
    await market.earn(shop, link, 800)
    const preview = {
      creatorId: creator.userId,
      kind: 'paid_out',
      payoutId: null,
      amount: EARNED,
      released: EARNED,
    }
    assert.equal(await run(context, { dryRun: true }), [preview])
    assert.equal(await payouts(context), [])
    const [made] = await run(context)
    assert.equal({ ...made, payoutId: null }, preview)
    assert.equal(await run(context), [])
    assert.equal(await balance(context), [0, 0, EARNED, 0])
  })

  it('pays what several merchants and cycles brought in one payout with a line for each', async (context) => {
    const { market, shop, link, creator } = context
    const other = await market.addShop()
    const otherLink = await market.addLink(other, creator, { commission_rate: 1000 })
    await market.earn(shop, link, SALE)
    await market.earn(shop, link, SALE)
    await market.earn(other, otherLink, SALE)
    await market.order(shop, link, SALE)
    await market.drainUntilIdle()
    const payoutId = await payAndSettle(context, 'confirmed')
    assert.equal(await balance(context), [EARNED, 0, 0, 2 * EARNED + 80_000])
    const lines = await market.platform.database.reader.selectFrom('payout_lines').selectAll().execute()
    assert.equal(lines.map((line) => line.amount).sort(), [EARNED, EARNED, 80_000].sort())
    const parts = async (one: Shop) =>
      (await listPayoutParts(market.platform, one.merchantId, { state: null, limit: 9, before: null })).map(
        (part) => [part.id, part.part],
      )
    assert.equal([await parts(shop), await parts(other)], [[[payoutId, 2 * EARNED]], [[payoutId, 80_000]]])
    assert.equal(market.processor.payouts[0]?.rest, {
      iban: 'PK36SCBL0000001123456702',
      account_title: 'A CREATOR',
    })
  })

  it('pays whole rupees where the processor does: a share can be in two payouts, and never in more than it holds', async (context) => {
    const { market, shop, link } = context
    market.processor.payoutUnit = 100
    const lines = async () =>
      (
        await market.platform.database.reader
          .selectFrom('payout_lines as line')
          .innerJoin('payouts as payout', 'payout.id', 'line.payout_id')
          .select(['line.amount', 'payout.state'])
          .orderBy('payout.id')
          .orderBy('line.billing_cycle_id')
          .execute()
      ).map((line) => `${line.amount} ${line.state}`)
    // Rs 8002.80 earn Rs 1000.35.
    await market.earn(shop, link, SALE + 280)
    await payAndSettle(context, 'confirmed')
    assert.equal(await balance(context), [0, 35, 0, EARNED])
    // The rest of the first share and the next one make Rs 1000.70.
    await market.earn(shop, link, SALE + 280)
    await payAndSettle(context, 'failed')
    assert.equal(await balance(context), [0, EARNED + 70, 0, EARNED])
    const { lookups } = market.processor
    lookups.length = 0
    await payAndSettle(context, 'confirmed')
    assert.is(lookups.length, 1)
    assert.equal(await balance(context), [0, 70, 0, 2 * EARNED])
    assert.equal(await lines(), ['100000 paid', '35 failed', '99965 failed', '35 paid', '99965 paid'])
  })

  it('asks about each failed payout of a share that was in several', async (context) => {
    const { market, shop, link } = context
    market.processor.payoutUnit = 100
    await market.earn(shop, link, SALE + 280)
    const [first] = await run(context)
    await market.earn(shop, link, SALE)
    const [second] = await run(context)
    await market.drainUntilIdle()
    const ids = [first, second].map((outcome) => (outcome?.kind === 'paid_out' ? outcome.payoutId : null))
    for (const id of ids) await market.settlePayout(id ?? '', 'failed')
    await market.drainUntilIdle()
    market.processor.lookups.length = 0
    await run(context)
    assert.equal(market.processor.lookups, ids)
    assert.equal(await balance(context), [0, 35, 2 * EARNED, 0])
  })

  it('waits for a destination, and for the reinstatement of a suspended creator', async (context) => {
    const { market, shop } = context
    const creator = await market.addCreator('new', false)
    await market.earn(shop, await market.addLink(shop, creator), SALE)
    const why = async () =>
      (await run(context)).map((outcome) => (outcome.kind === 'waits' ? outcome.why : 'pays'))
    assert.equal(await why(), ['no_destination'])
    await giveDestination(market.platform, creator.userId)
    await setSuspended(market.platform, creator.userId, true)
    assert.equal(await why(), ['suspended'])
    await setSuspended(market.platform, creator.userId, false)
    assert.equal(await why(), ['pays'])
  })

  it('makes one payout when two runs meet', async (context) => {
    const { market, shop, link } = context
    await market.earn(shop, link, SALE)
    const rival = await openRival(market.bed)
    const runs = await Promise.all([
      run(context),
      runPayouts(rival.platform, market.processor),
      runPayouts(rival.platform, market.processor),
    ])
    await rival.close()
    assert.is(runs.flat().filter((outcome) => outcome.kind === 'paid_out').length, 1)
    assert.is((await payouts(context)).length, 1)
    await market.drainUntilIdle()
    assert.is(market.processor.calls.filter((call) => call.kind === 'payout').length, 1)
  })

  it('is paid once it is confirmed; the same word again changes nothing, another one is flagged', async (context) => {
    const { market, shop, link } = context
    await market.earn(shop, link, SALE)
    const payoutId = await payAndSettle(context, 'confirmed')
    assert.equal(await balance(context), [0, 0, 0, EARNED])
    await market.settlePayout(payoutId, 'confirmed')
    await market.drainUntilIdle()
    assert.equal(await openFlagsOf(market.platform), [])
    await market.settlePayout(payoutId, 'failed')
    await market.drainUntilIdle()
    assert.equal(await openFlagsOf(market.platform), [`payout_contradiction ${payoutId}`])
    assert.is((await payoutOf(market.platform, payoutId)).state, 'paid')
    assert.equal(await balance(context), [0, 0, 0, EARNED])
  })

  it('flags an event of another amount, currency or payout, and moves nothing', async (context) => {
    const { market, shop, link } = context
    await market.earn(shop, link, SALE)
    await run(context)
    await market.drainUntilIdle()
    const [payout] = await payouts(context)
    const id = payout?.id ?? ''
    await market.settlePayout(id, 'confirmed', { amount: '1000.01' })
    await market.settlePayout(id, 'confirmed', { currency: 'USD' })
    await market.settlePayout(id, 'failed', { payout_id: 'po_another' })
    await market.drainUntilIdle()
    assert.equal(await openFlagsOf(market.platform), [
      `payout_amount_mismatch ${id}`,
      `payout_contradiction ${id}`,
    ])
    assert.is((await payoutOf(market.platform, id)).state, 'submitted')
  })

  it('puts a failed payout back into the balance, and the next run pays it again', async (context) => {
    const { market, shop, link } = context
    await market.earn(shop, link, SALE)
    const failedId = await payAndSettle(context, 'failed')
    assert.equal(await balance(context), [0, EARNED, 0, 0])
    const failed = await payoutOf(market.platform, failedId)
    assert.equal([failed.state, failed.failure_reason], ['failed', 'returned by the bank'])
    await market.settlePayout(failedId, 'failed')
    await market.drainUntilIdle()
    assert.equal(await balance(context), [0, EARNED, 0, 0])
    await market.earn(shop, link, SALE)
    const again = await payAndSettle(context, 'confirmed')
    assert.equal(market.processor.lookups, [failedId])
    assert.is.not(again, failedId)
    assert.equal(await balance(context), [0, 0, 0, 2 * EARNED])
  })

  it('waits with an event that overtakes the answer to our call', async (context) => {
    const { market, shop, link } = context
    await market.earn(shop, link, SALE)
    market.processor.answers = ['lose']
    await run(context)
    await market.drainUntilIdle()
    const [payout] = await payouts(context)
    assert.is(payout?.state, 'pending')
    await market.settlePayout(payout?.id ?? '', 'failed')
    await market.drainUntilIdle()
    assert.equal(await balance(context), [0, 0, EARNED, 0])
    await market.after(DAY)
    await market.after(DAY)
    assert.is((await payoutOf(market.platform, payout?.id ?? '')).state, 'failed')
    assert.equal(await balance(context), [0, EARNED, 0, 0])
    assert.is(market.processor.payouts.length, 1)
  })

  it.run()
}
