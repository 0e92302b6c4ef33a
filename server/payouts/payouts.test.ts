import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { creatorBalance } from '../ledger/ledger.service.ts'
import { updateRows } from '../platform/database/protected-rows.ts'
import { addTrade, type MarketContext, marketSuites } from '../test/testkit/market-suites.ts'
import {
  giveDestination,
  type Marketplace,
  openFlagsOf,
  payoutOf,
  type Trade,
} from '../test/testkit/marketplace.ts'
import { setSuspended } from '../test/testkit/people.ts'
import { pluck, pluckAll } from '../test/testkit/pluck.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { DAY, HOUR, MINUTE } from '../test/testkit/testbed.ts'
import { runPayouts } from './payout-run.service.ts'
import { listPayoutParts } from './payouts.service.ts'

type Context = MarketContext & Trade

/** A sale of Rs 8000 earns 12.5 %: Rs 1000, the threshold. */
const SALE = 800_000
const EARNED = 100_000
const OTHER_IBAN = 'PK24SCBL0000001171495101'

for (const { it } of marketSuites<Trade>('payouts', { verify: true })) {
  it.before.each(addTrade)

  const earn = ({ market, shop, link }: Context, price = SALE) => market.earn(shop, link, price)
  const run = ({ market }: Context, options = {}) => runPayouts(market.platform, market.processor, options)
  /** What one run does, as `pays` or why it waits. */
  const inWords = async (context: Context) =>
    (await run(context)).map((one) => (one.kind === 'waits' ? one.why : 'pays'))
  const balance = async ({ platform, creator }: Context) => {
    const { reader } = platform.database
    const { pending, released, inTransit, paid } = await creatorBalance(reader, creator.userId)
    return [pending, released, inTransit, paid]
  }
  const payouts = ({ platform }: Context) => rowsOf(platform, 'payouts')
  const lastId = async (context: Context) => (await payouts(context)).at(-1)?.id ?? ''
  /** Sends the last payout and has the processor settle it; answers its id. */
  const settleLast = async (context: Context, word: 'confirmed' | 'failed') => {
    await context.market.drainUntilIdle()
    const id = await lastId(context)
    await context.market.settlePayout(id, word)
    await context.market.after(MINUTE)
    return id
  }
  const payAndSettle = async (context: Context, word: 'confirmed' | 'failed') => {
    assert.equal(await inWords(context), ['pays'])
    return settleLast(context, word)
  }
  const failThrice = async (context: Context) => {
    for (const _ of [1, 2, 3]) await payAndSettle(context, 'failed')
  }
  const resolveFlags = ({ platform, clock }: Marketplace) =>
    platform.database.transaction((tx) =>
      updateRows(tx, 'flags', sql`true`, { status: 'resolved', resolved_at: clock.now() }),
    )
  const flagOf = ({ creator }: Context) => [`payout_failed_repeatedly ${creator.userId}`]

  it('waits below the threshold, and pays the whole balance from it on', async (context) => {
    const creatorId = context.creator.userId
    await earn(context, SALE - 800)
    const below = { creatorId, kind: 'waits', why: 'below_threshold', amount: EARNED - 100 }
    assert.equal(await run(context), [below])
    await earn(context, 800)
    await setSuspended(context.platform, creatorId, true)
    assert.equal(await inWords(context), ['suspended'])
    await setSuspended(context.platform, creatorId, false)
    const preview = { creatorId, kind: 'paid_out', payoutId: null, amount: EARNED, released: EARNED }
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
    for (const _ of [1, 2]) await earn(context)
    await market.earn(other, await market.addLink(other, creator, { commission_rate: 1000 }), SALE)
    await market.sell(shop, link, SALE)
    const payoutId = await payAndSettle(context, 'confirmed')
    assert.equal(await balance(context), [EARNED, 0, 0, 2 * EARNED + 80_000])
    const lines = await rowsOf(market.platform, 'payout_lines', {}, 'amount')
    assert.equal(pluck(lines, 'amount'), [80_000, EARNED, EARNED])
    const all = { state: null, limit: 9, before: null }
    for (const [{ merchantId }, part] of [
      [shop, 2 * EARNED],
      [other, 80_000],
    ] as const) {
      const parts = await listPayoutParts(market.platform, merchantId, all)
      assert.equal(pluckAll(parts, 'id', 'part'), [[payoutId, part]])
    }
    assert.equal(market.processor.payouts[0]?.rest, {
      iban: 'PK36SCBL0000001123456702',
      account_title: 'A CREATOR',
    })
  })

  it('pays whole rupees where the processor does: a share can be in two payouts, and never in more than it holds', async (context) => {
    const { market } = context
    market.processor.payoutUnit = 100
    // Rs 8002.80 earn Rs 1000.35.
    await earn(context, SALE + 280)
    await payAndSettle(context, 'confirmed')
    assert.equal(await balance(context), [0, 35, 0, EARNED])
    // The rest of the first share and the next one make Rs 1000.70.
    await earn(context, SALE + 280)
    await payAndSettle(context, 'failed')
    assert.equal(await balance(context), [0, EARNED + 70, 0, EARNED])
    const { lookups } = market.processor
    lookups.length = 0
    await payAndSettle(context, 'confirmed')
    assert.is(lookups.length, 1)
    assert.equal(await balance(context), [0, 70, 0, 2 * EARNED])
    const query = market.platform.database.reader
      .selectFrom('payout_lines as line')
      .innerJoin('payouts as payout', 'payout.id', 'line.payout_id')
    const lines = query.select(['line.amount', 'payout.state']).orderBy('payout.id')
    assert.equal(
      (await lines.orderBy('line.billing_cycle_id').execute()).map(
        ({ amount, state }) => `${amount} ${state}`,
      ),
      ['100000 paid', '35 failed', '99965 failed', '35 paid', '99965 paid'],
    )
  })

  it('asks about each failed payout of a share that was in several', async (context) => {
    const { market } = context
    market.processor.payoutUnit = 100
    const ids: string[] = []
    for (const price of [SALE + 280, SALE]) {
      await earn(context, price)
      await run(context)
      ids.push(await lastId(context))
    }
    await market.drainUntilIdle()
    for (const id of ids) await market.settlePayout(id, 'failed')
    await market.drainUntilIdle()
    market.processor.lookups.length = 0
    await run(context)
    assert.equal(market.processor.lookups, ids)
    assert.equal(await balance(context), [0, 35, 2 * EARNED, 0])
  })

  it("asks about no failed payout of another creator's share of the same cycle", async (context) => {
    const { market, shop } = context
    await market.sell(shop, await market.addLink(shop, await market.addCreator('other')), SALE)
    await earn(context)
    assert.equal(await inWords(context), ['pays', 'pays'])
    await market.drainUntilIdle()
    for (const { id } of await payouts(context)) await market.settlePayout(id, 'failed')
    await market.drainUntilIdle()
    market.processor.lookups.length = 0
    assert.equal(await inWords(context), ['pays', 'pays'])
    assert.is(market.processor.lookups.length, 2)
  })

  it('is paid once it is confirmed, by an event of its amount, currency and id; another one is flagged and moves nothing', async (context) => {
    const { market } = context
    await earn(context)
    await run(context)
    await market.drainUntilIdle()
    const id = await lastId(context)
    const flags = [`payout_amount_mismatch ${id}`, `payout_contradiction ${id}`]
    await market.settlePayout(id, 'confirmed', { amount: '1000.01' })
    await market.settlePayout(id, 'confirmed', { currency: 'USD' })
    await market.drainUntilIdle()
    assert.equal(await openFlagsOf(market.platform), flags.slice(0, 1))
    await market.settlePayout(id, 'failed', { payout_id: 'po_another' })
    await market.drainUntilIdle()
    assert.equal(await openFlagsOf(market.platform), flags)
    assert.is((await payoutOf(market.platform, id)).state, 'submitted')
    await resolveFlags(market)
    // The same word again changes nothing.
    for (const _ of [1, 2]) await settleLast(context, 'confirmed')
    assert.equal(await balance(context), [0, 0, 0, EARNED])
    assert.equal(await openFlagsOf(market.platform), [])
    await settleLast(context, 'failed')
    assert.equal(await openFlagsOf(market.platform), flags.slice(1))
    assert.is((await payoutOf(market.platform, id)).state, 'paid')
    assert.equal(await balance(context), [0, 0, 0, EARNED])
  })

  it('waits for a person after three failures in a row, none of them before a paid one, until the flag is resolved', async (context) => {
    const { market, shop } = context
    await earn(context)
    for (const word of ['failed', 'failed', 'confirmed'] as const) await payAndSettle(context, word)
    await market.earn(shop, await market.addLink(shop, await market.addCreator('other')), SALE)
    await run(context)
    const ofAnother = await lastId(context)
    await earn(context)
    await failThrice(context)
    await market.settlePayout(ofAnother, 'confirmed')
    await market.drainUntilIdle()
    assert.equal(await inWords(context), ['failed_three_times'])
    assert.equal(await inWords(context), ['failed_three_times'])
    assert.equal(await openFlagsOf(market.platform), flagOf(context))
    await market.after(DAY)
    assert.equal(await inWords(context), ['failed_three_times'])
    await resolveFlags(market)
    await payAndSettle(context, 'confirmed')
    assert.equal(await openFlagsOf(market.platform), [])
  })

  it('counts failures again with a new destination, once that is in effect', async (context) => {
    const { market, creator } = context
    await earn(context)
    await giveDestination(market.platform, creator.userId, OTHER_IBAN)
    await failThrice(context)
    assert.equal(await inWords(context), ['failed_three_times'])
    await market.after(23 * HOUR)
    assert.equal(await inWords(context), ['failed_three_times'])
    await market.after(HOUR)
    await payAndSettle(context, 'confirmed')
    assert.equal(market.processor.payouts.at(-1)?.rest, { iban: OTHER_IBAN, account_title: 'A CREATOR' })
  })

  it('makes no new payout for a failed one that the processor says is paid', async (context) => {
    const { market } = context
    await earn(context)
    const id = await payAndSettle(context, 'failed')
    const held = market.processor.payouts[0]
    if (held) held.status = 'paid'
    assert.equal(await inWords(context), ['failure_not_confirmed'])
    assert.equal(await openFlagsOf(market.platform), flagOf(context))
    await resolveFlags(market)
    assert.equal(await inWords(context), ['failure_not_confirmed'])
    assert.is(await lastId(context), id)
    if (held) {
      held.status = 'failed'
      market.processor.payouts.push({ ...held, attemptId: 'another', status: 'paid' })
    }
    assert.equal(await inWords(context), ['failure_not_confirmed'], 'one of two is paid')
    market.processor.payouts.pop()
    assert.equal(await inWords(context), ['pays'])
  })

  it('waits without a flag while the processor cannot be asked, and asks again at the next run', async (context) => {
    const { market } = context
    await earn(context)
    await payAndSettle(context, 'failed')
    market.processor.lookupsFail = true
    assert.equal(await inWords(context), ['processor_unavailable'])
    const [dry] = await run(context, { dryRun: true })
    assert.is(dry?.kind === 'waits' && dry.why, 'processor_unavailable')
    assert.equal(await openFlagsOf(market.platform), [])
    market.processor.lookupsFail = false
    assert.equal(await inWords(context), ['pays'])
    assert.equal(await openFlagsOf(market.platform), [])
    await settleLast(context, 'confirmed')
  })

  it('asks about each failed payout that a new one would replace, not only the last', async (context) => {
    const { market } = context
    // Two on their way at once: the later one is paid, then both the earlier one and a third fail.
    const made: string[] = []
    for (const _ of [1, 2, 3]) {
      await earn(context)
      assert.equal(await inWords(context), ['pays'])
      await market.drainUntilIdle()
      made.push(await lastId(context))
    }
    const [first = '', second = '', third = ''] = made
    await market.settlePayout(third, 'failed')
    await market.settlePayout(first, 'failed')
    await market.after(MINUTE)
    await market.settlePayout(second, 'confirmed')
    await market.after(MINUTE)
    const held = market.processor.payouts.find((item) => item.reference === first)
    if (held) held.status = 'paid'
    assert.equal(await inWords(context), ['failure_not_confirmed'])
    if (held) held.status = 'failed'
    market.processor.lookups.length = 0
    assert.equal(await inWords(context), ['pays'])
    assert.equal(market.processor.lookups.toSorted(), [first, third].toSorted())
    await settleLast(context, 'confirmed')
  })

  it('makes none that the balance does not hold beside those that are not sent yet', async (context) => {
    const { market } = context
    const within = async (amount: number, options = {}) => {
      const balance = async () => ({ kind: 'found' as const, amount })
      const [made] = await runPayouts(market.platform, market.processor.instead({ balance }), options)
      return made?.kind === 'waits' ? made.why : made?.kind
    }
    await earn(context)
    assert.is(await within(EARNED - 1, { dryRun: true }), 'balance_too_low')
    assert.equal(await openFlagsOf(market.platform), [])
    assert.equal([await within(EARNED - 1), await within(EARNED)], ['balance_too_low', 'paid_out'])
    market.processor.answers = ['refuse']
    await earn(context)
    assert.equal([await within(2 * EARNED - 1), await within(2 * EARNED)], ['balance_too_low', 'paid_out'])
    await earn(context)
    assert.is(await within(2 * EARNED), 'paid_out', 'the second one is sent')
  })

  it('makes none when another one fails after the processor was asked', async (context) => {
    const { market } = context
    await earn(context)
    assert.equal(await inWords(context), ['pays'])
    await market.drainUntilIdle()
    const id = await lastId(context)
    await earn(context)
    await payAndSettle(context, 'failed')
    const { findPayouts } = market.processor
    market.processor.findPayouts = async (keys) => {
      market.processor.findPayouts = findPayouts
      const answer = await market.processor.findPayouts(keys)
      await market.settlePayout(id, 'failed')
      await market.drainUntilIdle()
      return answer
    }
    assert.equal(await inWords(context), [])
    assert.equal(await inWords(context), ['pays'])
  })

  it.run()
}
