import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import type { LinkRecord } from '../links/links.service.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { updateRows } from '../platform/database/protected-rows.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { giveDestination, type Marketplace, openFlagsOf, type Shop } from '../test/testkit/marketplace.ts'
import { DAY, HOUR, MINUTE } from '../test/testkit/testbed.ts'
import { runPayouts } from './payout-run.service.ts'

interface Context {
  market: Marketplace
  shop: Shop
  creator: Actor
  link: LinkRecord
}

const SALE = 800_000
const OTHER_IBAN = 'PK24SCBL0000001171495101'

for (const { it } of marketSuites<Context>('failed payouts', { verify: true })) {
  it.before.each(async (context) => {
    context.shop = await context.market.addShop()
    context.creator = await context.market.addCreator()
    context.link = await context.market.addLink(context.shop, context.creator)
    await context.market.earn(context.shop, context.link, SALE)
  })

  /** What one run does, as `pays` or why it waits. */
  const run = async ({ market }: Context) =>
    (await runPayouts(market.platform, market.processor)).map((one) =>
      one.kind === 'waits' ? one.why : 'pays',
    )
  const lastPayout = async ({ market }: Context) => {
    const row = await market.platform.database.reader
      .selectFrom('payouts')
      .selectAll()
      .orderBy('id', 'desc')
      .executeTakeFirstOrThrow()
    return row
  }
  const settleLast = async (context: Context, word: 'confirmed' | 'failed') => {
    await context.market.drainUntilIdle()
    const { id } = await lastPayout(context)
    await context.market.settlePayout(id, word)
    await context.market.after(MINUTE)
    return id
  }
  const failThrice = async (context: Context) => {
    for (const _ of [1, 2, 3]) {
      assert.equal(await run(context), ['pays'])
      await settleLast(context, 'failed')
    }
  }
  const resolveFlags = ({ platform, clock }: Marketplace) =>
    platform.database.transaction((tx) =>
      updateRows(tx, 'flags', sql`true`, { status: 'resolved', resolved_at: clock.now() }),
    )
  const flagOf = ({ creator }: Context) => [`payout_failed_repeatedly ${creator.userId}`]

  it('waits for a person after three failures in a row, until the flag is resolved', async (context) => {
    const { market } = context
    await failThrice(context)
    assert.equal(await run(context), ['failed_three_times'])
    assert.equal(await run(context), ['failed_three_times'])
    assert.equal(await openFlagsOf(market.platform), flagOf(context))
    await market.after(DAY)
    assert.equal(await run(context), ['failed_three_times'])
    await resolveFlags(market)
    assert.equal(await run(context), ['pays'])
    await settleLast(context, 'confirmed')
    assert.equal(await openFlagsOf(market.platform), [])
  })

  it('starts the count again after a payout that was paid', async (context) => {
    const { market, shop, link } = context
    for (const word of ['failed', 'failed', 'confirmed'] as const) {
      assert.equal(await run(context), ['pays'])
      await settleLast(context, word)
    }
    await market.earn(shop, link, SALE)
    await failThrice(context)
    assert.equal(await run(context), ['failed_three_times'])
  })

  it('starts the count again with a new destination, once that is in effect', async (context) => {
    const { market, creator } = context
    await giveDestination(market.platform, creator.userId, OTHER_IBAN)
    await failThrice(context)
    assert.equal(await run(context), ['failed_three_times'])
    await market.after(23 * HOUR)
    assert.equal(await run(context), ['failed_three_times'])
    await market.after(HOUR)
    assert.equal(await run(context), ['pays'])
    await settleLast(context, 'confirmed')
    assert.equal(market.processor.payouts.at(-1)?.rest, { iban: OTHER_IBAN, account_title: 'A CREATOR' })
  })

  it('makes no new payout for a failed one that the processor says is paid', async (context) => {
    const { market } = context
    assert.equal(await run(context), ['pays'])
    const id = await settleLast(context, 'failed')
    const held = market.processor.payouts[0]
    if (held) held.status = 'paid'
    assert.equal(await run(context), ['failure_not_confirmed'])
    assert.equal(await openFlagsOf(market.platform), flagOf(context))
    await resolveFlags(market)
    assert.equal(await run(context), ['failure_not_confirmed'])
    assert.is((await lastPayout(context)).id, id)
    if (held) held.status = 'failed'
    assert.equal(await run(context), ['pays'])
  })

  it('waits without a flag while the processor cannot be asked, and asks again at the next run', async (context) => {
    const { market } = context
    assert.equal(await run(context), ['pays'])
    await settleLast(context, 'failed')
    market.processor.lookupsFail = true
    assert.equal(await run(context), ['processor_unavailable'])
    const [dry] = await runPayouts(market.platform, market.processor, { dryRun: true })
    assert.is(dry?.kind === 'waits' && dry.why, 'processor_unavailable')
    assert.equal(await openFlagsOf(market.platform), [])
    market.processor.lookupsFail = false
    assert.equal(await run(context), ['pays'])
    assert.equal(await openFlagsOf(market.platform), [])
    await settleLast(context, 'confirmed')
  })

  it('asks about each failed payout that a new one would replace, not only the last', async (context) => {
    const { market, shop, link } = context
    // Two on their way at once: the later one is paid, then both the earlier one and a third fail.
    const made: string[] = []
    for (let count = 0; count < 3; count += 1) {
      if (count > 0) await market.earn(shop, link, SALE)
      assert.equal(await run(context), ['pays'])
      await market.drainUntilIdle()
      made.push((await lastPayout(context)).id)
    }
    const [first = '', second = '', third = ''] = made
    await market.settlePayout(third, 'failed')
    await market.settlePayout(first, 'failed')
    await market.after(MINUTE)
    await market.settlePayout(second, 'confirmed')
    await market.after(MINUTE)
    const held = market.processor.payouts.find((item) => item.reference === first)
    if (held) held.status = 'paid'
    assert.equal(await run(context), ['failure_not_confirmed'])
    if (held) held.status = 'failed'
    market.processor.lookups.length = 0
    assert.equal(await run(context), ['pays'])
    assert.equal(market.processor.lookups.toSorted(), [first, third].toSorted())
    await settleLast(context, 'confirmed')
  })

  it('makes none when another one fails after the processor was asked', async (context) => {
    const { market, shop, link } = context
    assert.equal(await run(context), ['pays'])
    await market.drainUntilIdle()
    const { id } = await lastPayout(context)
    await market.earn(shop, link, SALE)
    assert.equal(await run(context), ['pays'])
    await settleLast(context, 'failed')
    const { findPayouts } = market.processor
    market.processor.findPayouts = async (keys) => {
      market.processor.findPayouts = findPayouts
      const answer = await market.processor.findPayouts(keys)
      await market.settlePayout(id, 'failed')
      await market.drainUntilIdle()
      return answer
    }
    assert.equal(await run(context), [])
    assert.equal(await run(context), ['pays'])
  })

  it.run()
}
