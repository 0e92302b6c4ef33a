// proof only
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { closeDueCycles } from '../billing/close-cycle.service.ts'
import { claimEvents } from '../inbox/inbox.service.ts'
import { startScheduler } from '../jobs/scheduler.ts'
import { runPayouts } from '../payouts/payout-run.service.ts'
import { claimAttempts } from '../processor/attempts.service.ts'
import { register } from '../users/credentials.service.ts'
import { actorFromToken } from '../users/sessions.service.ts'
import { testDialects } from './testkit/databases.ts'
import { cyclesOf, eventsOf, type Marketplace, openMarketplace } from './testkit/marketplace.ts'
import { assertMapped } from './testkit/pluck.ts'
import { PROOF_FORM } from './testkit/proof-size.ts'
import { columnsOf } from './testkit/rows.ts'
import { DAY, HOUR, MINUTE } from './testkit/testbed.ts'

const JUMPS = {
  '5 minutes on': 5 * MINUTE,
  '5 minutes back': -5 * MINUTE,
  '48 hours on': 2 * DAY,
  '48 hours back': -2 * DAY,
}

const BATCH = 500
/** However the clock has jumped, work that was under way is taken up again within this time … */
const TAKEN_UP_WITHIN = HOUR
const STEP = 10 * MINUTE
/** … but a bank account given in what is now the future counts from then on only. */
const PAID_WITHIN = { within: 4 * DAY, step: HOUR }

/** The last millisecond of a Karachi month, and how its last two sales and the next one are parted. */
const MONTH_ENDS = {
  '2026-11-30T18:59:59.999Z': [2, 1],
  '2026-12-31T18:59:59.999Z': [2, 1],
  '2027-02-28T18:59:59.999Z': [2, 1],
  '2028-02-29T18:59:59.999Z': [2, 1],
}

/** One sale from the order to the paid payout; `jump` is called at each moment that has a name. */
const MOMENTS = [
  'an order waits in the inbox',
  'a worker has died with an order in hand',
  'a sale is in its cycle',
  'a cycle is closed and its invoice waits to be asked for',
  'a worker has died with a call in hand',
  "the answer to the invoice's call is lost",
  'a payment was confirmed before its invoice was recorded',
  'shares are released',
  'a payout waits to be sent',
  "the answer to the payout's call is lost",
  'a payout was settled before it was recorded',
] as const
type Moment = (typeof MOMENTS)[number]

async function tellStory(market: Marketplace, at: (moment: Moment) => void): Promise<void> {
  const { platform, processor } = market
  const shop = await market.addShop()
  const link = await market.addLink(shop, await market.addCreator())
  await market.order(shop, link, 900_000)
  at('an order waits in the inbox')
  await claimEvents(platform, 'store', { limit: BATCH })
  at('a worker has died with an order in hand')
  await comeRound(market, async () => (await salesOf(market)) === 1)
  at('a sale is in its cycle')
  await market.order(shop, link, 100_000)
  await comeRound(market, async () => (await salesOf(market)) === 2)
  for (const { period_end } of await cyclesOf(platform, shop.merchantId)) {
    await closeDueCycles(platform, { asOf: period_end })
  }
  at('a cycle is closed and its invoice waits to be asked for')
  await claimAttempts(platform, BATCH)
  at('a worker has died with a call in hand')
  processor.answers = ['lose']
  await comeRound(market, async () => processor.invoices.length > 0)
  at("the answer to the invoice's call is lost")
  await confirmAll(market)
  await market.drainUntilIdle()
  at('a payment was confirmed before its invoice was recorded')
  await comeRound(market, async () => (await cyclesOf(platform, shop.merchantId)).every(isCharged))
  at('shares are released')
  await comeRound(market, async () => (await runPayouts(platform, processor)).some(isMade), PAID_WITHIN)
  at('a payout waits to be sent')
  processor.answers = ['lose']
  await comeRound(market, async () => processor.payouts.length > 0)
  at("the answer to the payout's call is lost")
  for (const { reference } of processor.payouts) await market.settlePayout(reference, 'confirmed')
  await market.drainUntilIdle()
  at('a payout was settled before it was recorded')
  await comeRound(market, async () => (await payoutsOf(market)).every(({ state }) => state === 'paid'))
}

/** Applies what is due and lets time pass until `isDone`. */
async function comeRound(
  market: Marketplace,
  isDone: () => Promise<boolean>,
  { within, step } = { within: TAKEN_UP_WITHIN, step: STEP },
): Promise<void> {
  for (let passed = 0; passed < within; passed += step) {
    await market.drainUntilIdle()
    if (await isDone()) return
    market.clock.pass(step)
  }
  throw new Error(`nothing came of it within ${within / HOUR} hours`)
}

const isCharged = ({ state }: { state: string }) => state === 'charged'
const isMade = ({ kind }: { kind: string }) => kind === 'paid_out'

async function confirmAll(market: Marketplace): Promise<void> {
  for (const invoice of market.processor.invoices) {
    await market.confirmPayment(invoice.reference, { invoice_id: invoice.id })
  }
}

async function salesOf({ platform }: Marketplace): Promise<number> {
  const sales = await columnsOf(platform, 'sales', ['id'], { acceptance_status: 'accepted' })
  return sales.length
}

function payoutsOf({ platform }: Marketplace) {
  return platform.database.reader.selectFrom('payouts').selectAll().execute()
}

/** By hand: 12.5 % of 9,000.00 and of 1,000.00, and a tenth of that as the fee. */
async function assertPaidOnce(market: Marketplace): Promise<void> {
  const { platform, processor } = market
  const cycles = await platform.database.reader.selectFrom('billing_cycles').selectAll().execute()
  const total = (values: number[]) => values.reduce((sum, value) => sum + value, 0)
  assert.is(total(cycles.map(({ amount_due }) => amount_due)), 112_500 + 11_250 + 12_500 + 1250)
  assert.is(total((await payoutsOf(market)).map(({ amount }) => amount)), 112_500 + 12_500)
  for (const held of [processor.invoices, processor.payouts]) {
    assert.is(new Set(held.map(({ reference }) => reference)).size, held.length)
  }
  assert.ok((await eventsOf(platform)).every(({ state }) => state === 'done'))
  await market.verify()
}

for (const dialect of testDialects()) {
  const it = suite(`a clock that jumps, on ${dialect}`)

  for (const [jump, [name, ms]] of Object.entries(JUMPS).entries()) {
    for (const [turn, moment] of MOMENTS.entries()) {
      // An example has one jump at each moment, another one on each database.
      if (!PROOF_FORM && (turn + (dialect === 'sqlite' ? 0 : 2)) % 4 !== jump) continue
      it(`${name} while ${moment}: everything is paid, once`, async () => {
        const market = await openMarketplace(dialect)
        try {
          await tellStory(market, (now) => {
            if (now === moment) market.clock.pass(ms)
          })
          await assertPaidOnce(market)
        } finally {
          await market.close()
        }
      })
    }
  }

  it('back while runs of the schedule are noted: the next one is noted and does what is due', async () => {
    const market = await openMarketplace(dialect)
    const { platform, processor, clock } = market
    const runs = () =>
      platform.database.reader
        .selectFrom('schedule_runs')
        .selectAll()
        .where('name', 'in', ['billing', 'payouts'])
        .orderBy('name')
        .execute()
    await startScheduler(platform, processor).stop()
    clock.pass(-2 * DAY)
    await startScheduler(platform, processor).stop()
    const after = await runs()
    assert.equal(
      after.map(({ name, started_at, finished_at }) => [name, started_at, finished_at]),
      ['billing', 'payouts'].map((name) => [name, clock.now(), clock.now()]),
    )
    await market.close()
  })

  it('back and on again: a session is valid exactly until its end', async () => {
    const market = await openMarketplace(dialect)
    const { platform, clock } = market
    const { token, expiresAt } = await register(platform, {
      email: 'm@example.pk',
      password: 'correct horse battery',
      role: 'merchant',
      displayName: 'M',
    })
    const isIn = async () => (await actorFromToken(platform, token)) !== null
    for (const ms of Object.values(JUMPS)) {
      clock.pass(ms)
      assert.ok(await isIn(), `${ms} ms`)
    }
    clock.set(new Date(expiresAt - 1).toISOString())
    assert.ok(await isIn())
    clock.pass(1)
    assert.not.ok(await isIn())
    await market.close()
  })

  it('over Karachi midnights at month ends and on 29 February: each sale is in its own month', async () => {
    for (const [lastMoment, salesInEach] of Object.entries(MONTH_ENDS)) {
      const market = await openMarketplace(dialect)
      const { platform, clock } = market
      clock.set(lastMoment)
      const shop = await market.addShop()
      const link = await market.addLink(shop, await market.addCreator())
      clock.pass(-HOUR)
      await market.order(shop, link, 100_000)
      await market.drainUntilIdle()
      clock.set(lastMoment)
      await market.order(shop, link, 100_000)
      await market.drainUntilIdle()
      clock.pass(1)
      await market.order(shop, link, 100_000)
      await market.drainUntilIdle()
      const cycles = await cyclesOf(platform, shop.merchantId)
      assertMapped(cycles, ({ sales_count }) => sales_count, salesInEach, lastMoment)
      assert.is(cycles[0]?.period_end, Date.parse(lastMoment) + 1, lastMoment)
      await market.verify()
      await market.close()
    }
  })

  it.run()
}
