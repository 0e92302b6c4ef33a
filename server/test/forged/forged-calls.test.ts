import * as assert from 'uvu/assert'
import type { LinkRecord } from '../../links/links.service.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import { retryPayout } from '../../payouts/payouts.service.ts'
import { marketSuites } from '../testkit/market-suites.ts'
import {
  attemptsOf,
  closeOpenCycle,
  type Marketplace,
  openFlagsOf,
  type Shop,
} from '../testkit/marketplace.ts'
import { pluck } from '../testkit/pluck.ts'
import { rowsOf } from '../testkit/rows.ts'
import { writeWithoutKey } from '../testkit/tamper.ts'

interface Context {
  shop: Shop
  link: LinkRecord
}

/** What a writer may change of a payout that waits to be sent, as SQL. */
const PAYOUT_CHANGES: Record<string, string[]> = {
  'a payout of more': ['update payouts set amount = 100000000'],
  "another creator's payout": [
    "update payouts set creator_id = (select id from users where display_name = 'Eve')",
  ],
  'a payout of another time': ['update payouts set created_at = created_at - 1'],
  'lines that make another amount': ['update payout_lines set amount = amount + 1'],
  'a payout without lines': ['delete from payout_lines'],
  'a call of more than a number holds': ['update processor_attempts set amount = 9007199254740991'],
  'a call of less than nothing': ['update processor_attempts set amount = -1'],
  'a call to another destination': [`update processor_attempts set request = '{"destination_id":"other"}'`],
  'a call with another key': ["update processor_attempts set row_digest = ''"],
  'a payout, lines, journal entry and call of more': [
    'update payouts set amount = amount * 2',
    'update payout_lines set amount = amount * 2',
    "update ledger_postings set amount = amount * 2 where entry_id in (select id from ledger_entries where kind = 'payout_created')",
    'update processor_attempts set amount = amount * 2',
  ],
  'a payout without its journal entry': [
    "update ledger_entries set kind = 'payout_failed' where kind = 'payout_created'",
  ],
}

const INVOICE_CHANGES: Record<string, string[]> = {
  'a cycle of less': ["update billing_cycles set amount_due = 100 where state = 'closed'"],
  'an invoice of less': ['update processor_attempts set amount = 100'],
  'an invoice to another customer': [`update processor_attempts set request = '{"customer":{"id":"other"}}'`],
  'a closing entry of less': [
    "update ledger_postings set amount = 100 where account = 'merchant_receivable'",
  ],
}

for (const { it } of marketSuites<Context>('calls that a database writer forges')) {
  it.before.each(async (context) => {
    const { market } = context
    context.shop = await market.addShop('shop')
    context.link = await market.addLink(context.shop, await market.addCreator())
    await market.addCreator('Eve')
  })

  const write = (market: Marketplace, ...statements: string[]) =>
    writeWithoutKey(market.bed.testDatabase.database, ...statements)
  const sentPayouts = ({ processor }: Marketplace) =>
    processor.calls.filter(({ kind }) => kind === 'payout').map(({ reference }) => reference)
  const isFlagged = async ({ platform }: Marketplace) =>
    (await openFlagsOf(platform)).some((flag) => flag.startsWith('integrity_violation '))

  /** A payout of another creator, after the forged one. */
  const assertOthersGoOn = async (market: Marketplace) => {
    const [shop, other] = [await market.addShop('other'), await market.addCreator('other')]
    await market.earn(shop, await market.addLink(shop, other), 800_000)
    await market.payOut()
    const payouts = await rowsOf(market.platform, 'payouts', { creator_id: other.userId })
    assert.equal(pluck(payouts, 'state'), ['submitted'])
  }

  for (const [what, statements] of Object.entries(PAYOUT_CHANGES)) {
    it(`does not send ${what}`, async ({ market, shop, link }) => {
      await market.earn(shop, link, 800_000)
      await runPayouts(market.platform, market.processor)
      await write(market, ...statements)
      await market.drainUntilIdle()
      assert.equal(sentPayouts(market), [])
      assert.ok(await isFlagged(market))
      await assertOthersGoOn(market)
    })
  }

  it('does not send a payout added with its attempt, nor a retry', async ({ market, shop, link }) => {
    const { platform, processor } = market
    await market.earn(shop, link, 800_000)
    await runPayouts(platform, processor)
    const { writer } = market.bed.testDatabase.database
    const [payout] = await rowsOf(platform, 'payouts')
    const [attempt] = await attemptsOf(platform, payout?.id ?? '')
    assert.ok(payout && attempt)
    const forged = { ...payout, id: platform.ids.next(), amount: 10_000_000 }
    await writer.insertInto('payouts').values(forged).execute()
    const own = { id: platform.ids.next(), subject_id: forged.id, amount: forged.amount }
    const forgedAttempt = { ...attempt, ...own }
    await writer.insertInto('processor_attempts').values(forgedAttempt).execute()
    await market.drainUntilIdle()
    assert.equal(sentPayouts(market), [payout.id])
    assert.ok((await openFlagsOf(platform)).includes('integrity_violation processor_attempts'))
    await retryPayout(platform, processor, { payoutId: forged.id, actor: 'operator', reason: 'looks right' })
    await market.drainUntilIdle()
    assert.equal(sentPayouts(market), [payout.id])
    assert.ok((await openFlagsOf(platform)).includes(`integrity_violation ${forged.id}`))
  })

  it('retries no payout while a destination is missing, also one of another creator', async (context) => {
    const { market, shop, link } = context
    const { platform, processor } = market
    await market.addCreator('other')
    await market.earn(shop, link, 800_000)
    await runPayouts(platform, processor)
    processor.answers = ['refuse']
    await market.drainUntilIdle()
    const id = (await rowsOf(platform, 'payouts'))[0]?.id ?? ''
    for (const whose of ["= 'other'", "<> 'other'"]) {
      const owners = `select id from users where display_name ${whose}`
      await write(market, `delete from payout_destinations where user_id in (${owners})`)
      const retried = retryPayout(platform, processor, { payoutId: id, actor: 'operator', reason: null })
      const error = await retried.catch((thrown) => thrown)
      assert.match(error.message, /^conflict: Payout destinations were deleted in the database/, whose)
    }
    await market.drainUntilIdle()
    assert.is((await attemptsOf(platform, id)).length, 1)
  })

  for (const [state, word, kept] of [
    ['paid', 'confirmed', ''],
    ['failed', 'failed', ''],
    ['submitted', undefined, ', processor_id = null'],
  ] as const)
    it(`does not send a ${state} payout again that was made to wait`, async ({ market, shop, link }) => {
      await market.earn(shop, link, 800_000)
      const payoutId = await market.payOut(word)
      // The journal alone says that it has its outcome.
      if (word) market.processor.payouts.splice(0)
      await write(
        market,
        "update payouts set state = 'pending', processor_payout_id = null, submitted_at = null, settled_at = null",
        `update processor_attempts set state = 'waiting', tries = 0, unknown_at = null, settled_at = null${kept} where kind = 'payout'`,
      )
      await market.after(3_600_000)
      assert.equal(sentPayouts(market), [payoutId])
    })

  it('does not send a share a second time', async ({ market, shop, link }) => {
    await market.earn(shop, link, 800_000)
    const payoutId = await market.payOut('confirmed')
    await write(
      market,
      "update payouts set state = 'failed', failure_reason = 'x'",
      'update billing_cycle_shares set carried = 0',
    )
    market.processor.payouts.splice(0)
    await runPayouts(market.platform, market.processor).catch(() => undefined)
    await market.drainUntilIdle()
    assert.equal(sentPayouts(market), [payoutId])
  })

  for (const [what, statements] of Object.entries(INVOICE_CHANGES)) {
    it(`does not request ${what}`, async ({ market, shop, link }) => {
      const { platform, processor } = market
      await market.order(shop, link, 800_000)
      await market.drainUntilIdle()
      await closeOpenCycle(platform, shop)
      await write(market, ...statements)
      await market.drainUntilIdle()
      assert.equal(processor.calls, [])
      assert.ok(await isFlagged(market))
      await assertOthersGoOn(market)
    })
  }

  it.run()
}
