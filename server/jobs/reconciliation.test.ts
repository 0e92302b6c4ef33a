// long
import * as assert from 'uvu/assert'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { resolveFlag } from '../flags/flags.service.ts'
import type { Processor } from '../processor/processor.ts'
import { changedTables, tableDigests } from '../test/authorization/digest.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import { closeOpenCycle, cyclesOf, type Marketplace } from '../test/testkit/marketplace.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { messageOf } from '../test/testkit/rejection.ts'
import { rowsOf } from '../test/testkit/rows.ts'
import { DAY, HOUR, MINUTE } from '../test/testkit/testbed.ts'
import { type ReconcileOptions, type ReconcileOutcome, reconcile } from './reconciliation.ts'

const KIND = 'reconciliation_difference'

for (const { it } of marketSuites('reconciliation', { verify: true })) {
  let market: Marketplace
  it.before.each((context) => {
    market = context.market
  })

  const run = (options: ReconcileOptions = {}, processor: Processor = market.processor) =>
    reconcile(market.platform, processor, { pauseMs: 0, ...options })
  const resume = () => run({ resume: true })

  /** A shop whose first cycle is charged and paid out as far as `payouts` says, and whose second one is closed. */
  async function fill(payouts: readonly ('failed' | 'confirmed' | 'open')[]) {
    const { platform, clock, processor } = market
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    await market.earn(shop, link, 4_000_000)
    const first = processor.invoices.at(-1)
    if (first) first.status = 'paid'
    for (const word of payouts) {
      clock.pass(MINUTE)
      await market.payOut(word === 'open' ? undefined : word)
    }
    await market.order(shop, link, 400_000)
    await market.drainUntilIdle()
    await closeDueCycles(platform, { asOf: clock.now() + 90 * DAY })
    await market.drainUntilIdle()
    clock.pass(HOUR)
    const [charged, closed] = await cyclesOf(platform, shop.merchantId)
    return { charged: charged?.id ?? '', closed: closed?.id ?? '' }
  }

  /** Closes so many cycles of one shop. */
  async function closeCycles(count: number) {
    const { platform, clock } = market
    const shop = await market.addShop()
    const link = await market.addLink(shop, await market.addCreator())
    for (let closed = 0; closed < count; closed += 1) {
      await market.order(shop, link, 400_000)
      await market.drainUntilIdle()
      await closeOpenCycle(platform, shop)
    }
    await market.drainUntilIdle()
    clock.pass(HOUR)
  }

  const openOnes = () => rowsOf(market.platform, 'flags', { status: 'open' })
  const flagged = async () => pluck(await openOnes(), 'subject_id')
  const wordsOf = ({ ours, differences, flag }: ReconcileOutcome['differing'][number]) =>
    [ours.id, [differences.join(), flag]] as const
  const wordsIn = async () => (await run()).differing.map(wordsOf)

  it('looks up each record once, finds no difference, and leaves recent changes for later', async () => {
    await fill(['failed', 'open'])
    const { processor, clock } = market
    processor.lookups.length = 0
    // As the scheduler runs it, which may have to stop.
    const outcome = await run({ signal: new AbortController().signal })
    assert.equal(outcome, { compared: 4, differing: [], unanswered: [], complete: true })
    assert.is(new Set(processor.lookups).size, 4)
    clock.pass(-HOUR + 10 * MINUTE)
    assert.is((await run()).compared, 0)
    clock.pass(60 * DAY)
    // By then, settled records are too old; open ones never are.
    assert.is((await run()).compared, 2)
    assert.is((await run({ since: 0 })).compared, 4)
    assert.equal(await flagged(), [])
  })

  it('flags each difference and changes nothing else', async () => {
    const { charged, closed } = await fill(['failed', 'confirmed'])
    const { processor, platform } = market
    const [failed = '', paid = ''] = processor.payouts.map(({ reference }) => reference)
    const before = await tableDigests(platform.database.reader)
    for (const invoice of processor.invoices) invoice.status = invoice.reference === charged ? 'open' : 'paid'
    for (const payout of processor.payouts) payout.status = 'paid'
    processor.payouts.pop()
    assert.equal(Object.fromEntries(await wordsIn()), {
      [charged]: ['open_there', 'raised'],
      [closed]: ['paid_there', 'raised'],
      [failed]: ['paid_there', 'raised'],
      [paid]: ['unknown_there', 'raised'],
    })
    assert.equal(changedTables(before, await tableDigests(platform.database.reader)), ['flags', 'watermarks'])
    const flag = (await openOnes()).find(({ subject_id }) => subject_id === failed)
    assert.equal([flag?.severity, flag?.subject_type], ['high', 'payout'])
    const summary = /a payout over Rs 5000\.00 differs from ours: paid at the processor, not here\./
    assert.match(flag?.summary ?? '', summary)
    const { ours, theirs } = JSON.parse(flag?.evidence ?? '')
    assert.equal(ours, { standing: 'failed', amount: '5000.00', currency: 'PKR', processor_id: 'po_1' })
    assert.equal(theirs, [{ id: 'po_1', amount: '5000.00', currency: 'PKR', status: 'paid' }])
    assert.equal(pluck((await run()).differing, 'flag'), Array(4).fill('refreshed'))
    assert.is((await openOnes()).length, 4)
    market.clock.pass(60 * DAY)
    assert.is((await run()).differing.length, 4, 'flagged records are never too old')
  })

  it('notes on the flag that a difference is gone, and does not raise a resolved one again', async () => {
    const { closed } = await fill([])
    const { processor, platform, clock } = market
    const invoice = processor.invoices.find(({ reference }) => reference === closed)
    if (!invoice) throw new Error('no invoice')
    const flag = async () => (await openOnes())[0]
    const resolve = async () =>
      resolveFlag(platform, { flagId: (await flag())?.id ?? '', actor: 'operator', note: 'Called them.' })
    invoice.amount += 1
    assert.equal(await wordsIn(), [[closed, ['amount_differs', 'raised']]])
    const began = JSON.parse((await flag())?.evidence ?? '{}').first_seen_at
    clock.pass(DAY)
    invoice.amount -= 1
    assert.equal((await run()).differing, [])
    const gone = await flag()
    const agreeing = /^The processor and we agree again\. Before: .*another amount at the processor/
    assert.match(gone?.summary ?? '', agreeing)
    assert.is(JSON.parse(gone?.evidence ?? '{}').agrees_since, new Date(clock.now()).toISOString())
    clock.pass(DAY)
    await run()
    assert.equal(await flag(), gone)
    invoice.amount += 1
    assert.equal(await wordsIn(), [[closed, ['amount_differs', 'refreshed']]])
    const back = JSON.parse((await flag())?.evidence ?? '{}')
    assert.equal([back.agrees_since, back.first_seen_at], [null, began])
    await resolve()
    assert.equal(await wordsIn(), [[closed, ['amount_differs', 'known']]])
    assert.is(await flag(), undefined)
    invoice.status = 'paid'
    assert.equal(await wordsIn(), [[closed, ['paid_there,amount_differs', 'raised']]])
    await resolve()
  })

  it('ignores a record that changed during its look-up', async () => {
    const { closed } = await fill([])
    const { processor } = market
    const slow = processor.instead({
      async findInvoices(keys) {
        if (keys.reference === closed) {
          for (const invoice of processor.invoices) invoice.status = 'paid'
          await market.confirmPayment(closed)
          await market.drainUntilIdle()
        }
        return processor.findInvoices(keys)
      },
    })
    assert.equal((await run({}, slow)).differing, [])
    assert.equal(await flagged(), [])
  })

  it('continues after a crash or its own limit, and looks up nothing twice', async () => {
    await fill(['failed', 'failed', 'confirmed'])
    const { processor } = market
    processor.lookups.length = 0
    const dying = processor.instead({ findPayouts: () => Promise.reject(new Error('out of memory')) })
    assert.is(await messageOf(run({ resume: true }, dying)), 'out of memory')
    assert.is(processor.lookups.length, 2)
    const next = async () => {
      const { compared, complete } = await run({ resume: true, mostLookups: 2 })
      return `${compared} ${complete ? 'and complete' : 'so far'}`
    }
    // The first run saved its position between invoices and payouts; the last run starts from the beginning.
    assert.equal([await next(), await next(), await next()], ['2 so far', '1 and complete', '2 so far'])
    const stopping = new AbortController()
    stopping.abort()
    const nothing = { compared: 0, differing: [], unanswered: [], complete: false }
    assert.equal(await run({ signal: stopping.signal }), nothing)
    await resume()
  })

  it('lists unanswered look-ups, gives up on an unavailable processor, and tries again', async () => {
    await fill(['failed', 'failed', 'failed'])
    const { processor } = market
    processor.lookupsFail = true
    const away = await resume()
    assert.equal([away.compared, away.unanswered.length, away.complete], [0, 5, true])
    await closeCycles(4)
    const gaveUp = await resume()
    assert.equal([gaveUp.compared, gaveUp.unanswered.length, gaveUp.complete], [0, 5, false])
    assert.is(gaveUp.unanswered[0]?.detail, 'answered 503')
    processor.lookupsFail = false
    assert.equal((await resume()).compared, 9)
    assert.equal(await flagged(), [])
  })

  it('skips records without an answer after two runs, and raises a flag in the third', async () => {
    await closeCycles(8)
    const { processor, platform, clock } = market
    const cycles = await rowsOf(platform, 'billing_cycles')
    const gone = new Set(cycles.slice(0, 5).map(({ id }) => id))
    const missing = { kind: 'unavailable', detail: 'answered 404' } as const
    const deaf = processor.instead({
      findInvoices: async (keys) => (gone.has(keys.reference) ? missing : processor.findInvoices(keys)),
    })
    const next = async () => {
      clock.pass(HOUR)
      const { compared, unanswered, complete } = await run({ resume: true }, deaf)
      return [compared, unanswered.length, complete]
    }
    assert.equal(await next(), [0, 5, false])
    assert.equal(await next(), [0, 5, false])
    assert.equal(await next(), [3, 0, true])
    assert.equal(await flagged(), [])
    assert.equal(await next(), [0, 5, false])
    const [flag, ...others] = await openOnes()
    assert.equal([flag?.kind, flag?.subject_id, others.length], [KIND, cycles[0]?.id, 0])
    const stopped = /stopped in 3 or more runs because the processor did not answer, first about/
    assert.match(flag?.summary ?? '', stopped)
    for (let at = 0; at < 3; at += 1) await next()
    assert.equal(await openOnes(), [flag])
    // A resolved flag is not raised again for the same outage.
    await resolveFlag(platform, { flagId: flag?.id ?? '', actor: 'operator', note: 'They look into it.' })
    for (let at = 0; at < 3; at += 1) await next()
    assert.equal(await openOnes(), [])
    gone.clear()
    await next()
    assert.equal(await next(), [8, 0, true])
  })

  it('raises one flag while the processor is unavailable, and notes on it when it answers again', async () => {
    await closeCycles(11)
    const { processor, platform } = market
    const [first] = await rowsOf(platform, 'billing_cycles')
    processor.lookupsFail = true
    for (let at = 0; at < 3; at += 1) assert.is((await resume()).complete, false)
    assert.equal(await flagged(), [first?.id])
    await resume()
    assert.is((await openOnes()).length, 1)
    processor.lookupsFail = false
    assert.is((await resume()).complete, true)
    assert.is((await resume()).compared, 11)
    const summary = async () => (await openOnes())[0]?.summary ?? ''
    assert.match(await summary(), /^The processor and we agree again\. Before: Reconciliation stopped/)
    processor.lookupsFail = true
    for (let at = 0; at < 2; at += 1) await resume()
    assert.match(await summary(), /^The processor and we agree again/, 'a new count has begun')
    await resume()
    assert.match(await summary(), /^Reconciliation stopped/)
  })

  it('keeps a difference on the flag of a record whose look-ups fail later', async () => {
    await closeCycles(8)
    const { processor } = market
    for (const invoice of processor.invoices) invoice.amount += 1
    await resume()
    const before = await flagged()
    processor.lookupsFail = true
    for (let at = 0; at < 4; at += 1) await resume()
    assert.equal(await flagged(), before)
    const both = /another amount at the processor\. Reconciliation stopped/
    const [reported, ...others] = (await openOnes()).filter(({ summary }) => both.test(summary))
    assert.equal(JSON.parse(reported?.evidence ?? '{}').differences, ['amount_differs', 'unanswered'])
    assert.equal(others, [])
  })

  it.run()
}
