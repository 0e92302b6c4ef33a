// long

import { sql } from 'kysely'
import * as assert from 'uvu/assert'
import { grantCredit } from '../billing/credits.service.ts'
import { retryInvoice } from '../billing/invoices.service.ts'
import { rollUpClicks } from '../clicks/clicks.service.ts'
import { startExport } from '../exports/exports.service.ts'
import { noteStarted } from '../jobs/schedule-runs.service.ts'
import { sealLedger } from '../ledger/seals/seals.service.ts'
import { setCoupon } from '../links/coupons.service.ts'
import { createEndpoint } from '../notifications/channels/webhooks/endpoints.service.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import { retryPayout } from '../payouts/payouts.service.ts'
import type { Tx } from '../platform/database/database.ts'
import { insertRows } from '../platform/database/protected-rows.ts'
import { setWatermark } from '../platform/database/watermarks.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { createManualProcessor } from '../processor/manual/manual-processor.ts'
import { codeOf } from '../test/testkit/authenticator.ts'
import { everyForgery, type Forgery, takenBack, tryForgeries } from '../test/testkit/forgeries.ts'
import { marketSuites, partly } from '../test/testkit/market-suites.ts'
import { closeOpenCycle, giveBillingAccount, type Marketplace } from '../test/testkit/marketplace.ts'
import { populate } from '../test/testkit/one-of-each.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { addApiKey, logIn } from '../test/testkit/people.ts'
import { assertNone, pluck } from '../test/testkit/pluck.ts'
import { PLAYS_ALL, PROOF_FORM } from '../test/testkit/proof-size.ts'
import { removeGuards } from '../test/testkit/tamper.ts'
import { TAMPERINGS } from '../test/testkit/tamperings.ts'
import { unprotectedIn } from '../test/testkit/unprotected.ts'
import { confirmTotp, startTotp } from '../users/second-factor.service.ts'
import { suspendUser } from '../users/users.service.ts'
import { EVERYTHING } from './scope.ts'
import { INVARIANTS, verifyBooks } from './verify-books.ts'

interface Context {
  market: Marketplace
}

/**
 * Books in which something of every kind has happened: cycles open, closed and charged, payouts paid, failed, on their
 * way and not yet sent, an invoice and a payout requested again, a credit that is partly used, a suspension, rejected
 * sales, a sale decided again, events done, ignored and set aside, bodies that are text and bodies that are not.
 */
async function fillBooks(market: Marketplace): Promise<void> {
  const { platform, processor } = market
  const [shop, other] = [await market.addShop('shop'), await market.addShop('other')]
  const [ayesha, bilal] = [await market.addCreator('Ayesha'), await market.addCreator('Bilal')]
  const links = { ayesha: await market.addLink(shop, ayesha), bilal: await market.addLink(other, bilal) }
  await giveBillingAccount(platform, shop.merchantId)
  await logIn(platform, shop.actor)
  await addApiKey(platform, shop.merchantId, 'write')
  const endpoint = { url: 'https://shop.example.com/hooks', events: ['sale.accepted'], description: '' }
  for (const owner of [shop.actor, other.actor]) await createEndpoint(platform, owner, endpoint)
  const { secret } = await startTotp(platform, shop.actor.userId)
  await confirmTotp(platform, shop.actor.userId, codeOf(secret, market.clock), shop.actor.userId)
  await startTotp(platform, other.actor.userId)
  const token = { user_id: shop.merchantId, purpose: 'verify_email', token_hash: 'ee' } as const
  const times = { created_at: market.clock.now(), expires_at: market.clock.now() + 1 }
  await platform.database.transaction((tx) => insertRows(tx, 'account_tokens', [{ ...token, ...times }]))
  await noteStarted(platform, 'billing')
  await startExport(platform, shop.actor, { resource: 'sales', format: 'csv', from: null, to: null })
  for (const reference of [platform.ids.next(), platform.ids.next()]) {
    const call = { attemptId: platform.ids.next(), reference, amount: 100 }
    const destination = { iban: 'PK36SCBL0000001123456702', account_title: 'A CREATOR' }
    await createManualProcessor(platform).createPayout({ ...call, destination })
  }
  await setCoupon(platform, { slug: links.ayesha.slug, actor: shop.merchantId, code: 'AYESHA10' })
  const second = await market.addLink(shop, bilal)
  await setCoupon(platform, { slug: second.slug, actor: shop.merchantId, code: 'BILAL10' })
  const askAnew = async (kind: 'invoice' | 'payout') => {
    const reissue = { actor: 'operator', reason: 'corrected' }
    const subject = processor.calls.findLast((call) => call.kind === kind)?.reference ?? ''
    if (kind === 'payout') await retryPayout(platform, processor, { ...reissue, payoutId: subject })
    else await retryInvoice(platform, processor, { ...reissue, cycleId: subject })
    await market.drainUntilIdle()
  }
  const pay = async (word: 'confirmed' | 'failed' | null) => {
    for (const outcome of await runPayouts(platform, processor)) {
      if (outcome.kind !== 'paid_out' || !outcome.payoutId) continue
      await market.drainUntilIdle()
      if (word) await market.settlePayout(outcome.payoutId, word)
      await market.after(60_000)
    }
  }
  await market.order(shop, links.ayesha, 400_000)
  await market.earn(shop, links.ayesha, 400_000)
  await pay('failed')
  await rollUpClicks(platform)
  await platform.database.transaction((tx) => setWatermark(tx, 'clicks', NIL_ID))
  await market.earn(shop, links.ayesha, 800_000)
  await pay('confirmed')
  await market.earn(other, links.bilal, 900_000)
  processor.answers = ['refuse']
  await pay(null)
  await askAnew('payout')
  await market.earn(shop, links.ayesha, 10_000)
  const credit = { amount: 500_00, reference: 'r', reason: 'r', actor: 'operator' }
  await grantCredit(platform, { ...credit, merchantId: shop.merchantId })
  await market.sell(shop, links.ayesha, 300_000)
  await sealLedger(platform)
  await closeOpenCycle(platform, shop)
  processor.answers = ['refuse']
  await market.drainUntilIdle()
  await askAnew('invoice')
  const idle = await market.addCreator()
  await market.addLink(shop, idle)
  await suspendUser(platform, { userId: idle.userId, actor: 'operator', reason: null })
  const body = await market.order(shop, links.ayesha, 200_000)
  await market.deliver(shop, body)
  await market.order(other, links.ayesha, 200_000)
  const now = market.clock.now()
  await market.deliver(shop, orderBody({ createdAt: now, price: 200_000, codes: ['AYESHA10'] }))
  await market.order(shop, links.ayesha, 200_000, { createdAt: 0 })
  await market.deliver(shop, '{}', { deliveryId: 'twice' })
  await market.deliver(shop, '[]', { deliveryId: 'twice' })
  await market.deliver(shop, Buffer.from([0, 255]))
  const unpaid = await market.order(shop, links.ayesha, 200_000, { financialStatus: 'pending' })
  await market.after(60_000)
  await market.deliver(shop, unpaid.replace('"pending"', '"paid"'))
  const click = await market.click(links.ayesha)
  const placed = { click, createdAt: market.clock.now(), price: 200_000, financialStatus: 'pending' }
  for (const id of ['9001', '9002', '9003'])
    await market.deliver(shop, orderBody({ ...placed, id }), { topic: 'orders/create' })
  const canceled = orderBody({ ...placed, id: '9002', cancelled: true })
  await market.deliver(shop, canceled, { topic: 'orders/cancelled' })
  await market.deliver(shop, orderBody({ ...placed, id: '9003', financialStatus: 'paid' }))
  await market.earn(other, links.bilal, 800_000)
  processor.answers = ['drop']
  await runPayouts(platform, processor)
  await market.drainUntilIdle()
  await sealLedger(platform)
}

/** The rows that the invariant reports while `tamper` stands; it is taken back afterwards. */
async function reportedAfter(
  { database, keys }: Platform,
  name: string,
  tamper: (tx: Tx) => Promise<unknown>,
): Promise<string[]> {
  const invariant = INVARIANTS.find((one) => one.name === name)
  const reported: string[] = []
  await takenBack(database, async (tx) => {
    await tamper(tx)
    for (const { subject } of (await invariant?.breaches(tx, keys, EVERYTHING)) ?? []) reported.push(subject)
  })
  return reported
}

const ROWS_TRIED = 3

const nameOf = ({ table, what }: Forgery) => `${table}, ${what}`

for (const { it, dialect } of marketSuites<Context>('invariants', { shared: true })) {
  it.before(async (context) => {
    await fillBooks(context.market)
    const { database } = context.market.bed.testDatabase
    await removeGuards(database)
    // What has no digests and no rows yet. Rows with digests must be made above, by the services.
    await populate(database)
    await context.market.verify()
  })

  it('looks at rows of every table, and finds nothing in books that are right', async ({ market }) => {
    const heard: string[] = []
    const results = await verifyBooks(market.platform, { onProgress: (name) => heard.push(name) })
    assertNone(results, ({ breaches }) => breaches.length > 0)
    assert.ok(results.every(({ rows }) => rows > 0))
    assert.equal(heard, pluck(INVARIANTS, 'name'))
    assert.is(new Set(heard).size, heard.length)
  })

  it('finds or lists each changed, added and deleted row; each invariant finds one', async ({ market }) => {
    const wrong = new Set<string>()
    const broken = new Set(TAMPERINGS.map(({ invariant }) => invariant))
    const missed = new Set<string>()
    // Which row is forged hardly matters: without a proof, a few of each table are tried.
    const triesAll = PROOF_FORM !== undefined || (PLAYS_ALL && dialect === 'sqlite')
    const forgeries = await everyForgery(market.platform.database.reader, triesAll ? Infinity : ROWS_TRIED)
    for await (const { forgery, found } of tryForgeries(market.platform, forgeries)) {
      if (found === null) missed.add(nameOf(forgery))
      else broken.add(found)
    }
    for (const forgery of forgeries) {
      const name = nameOf(forgery)
      const listed = unprotectedIn(forgery.table)
      const isListed = forgery.what in listed || '*' in listed
      if (missed.has(name) && !isListed) wrong.add(`${name}: verification does not find it`)
      if (triesAll && !missed.has(name) && isListed)
        wrong.add(`${name}: it is found, so take it off the list`)
    }
    assert.equal([...wrong], [])
    if (triesAll) assert.equal([...broken].toSorted(), INVARIANTS.map(({ name }) => name).toSorted())
  })

  const tampered = partly(it, dialect)
  for (const { invariant, what, statement, subject } of TAMPERINGS) {
    tampered(`${invariant} reports ${what}`, async ({ market }) => {
      const row = await sql<{ subject: string }>`${subject}`.execute(market.platform.database.reader)
      const expected = row.rows[0]?.subject
      assert.ok(expected, 'the books hold no such row')
      const reported = await reportedAfter(market.platform, invariant, async (tx) => {
        const changed = await statement.execute(tx)
        assert.ok(Number(changed.numAffectedRows) >= 1, 'nothing was changed')
      })
      assert.ok(
        reported.some((one) => one.includes(expected)),
        `${expected}: ${reported}`,
      )
    })
  }

  it.run()
}
