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
import { cyclesOf, type Marketplace, openMarketplace } from './testkit/marketplace.ts'
import { assertMapped } from './testkit/pluck.ts'
import { PROOF_FORM } from './testkit/proof-size.ts'
import { rowOf, rowsOf } from './testkit/rows.ts'
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

/** The last days of Karachi months. */
const MONTH_ENDS = ['2026-11-30', '2026-12-31', '2027-02-28', '2028-02-29']

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
  await comeRound(market, () => hasSold(market, 1))
  at('a sale is in its cycle')
  await market.order(shop, link, 100_000)
  await comeRound(market, () => hasSold(market, 2))
  for (const { period_end } of await cyclesOf(platform, shop.merchantId)) {
    await closeDueCycles(platform, { asOf: period_end })
  }
  at('a cycle is closed and its invoice waits to be asked for')
  await claimAttempts(platform, BATCH)
  at('a worker has died with a call in hand')
  processor.answers = ['lose']
  await comeRound(market, async () => processor.invoices.length > 0)
  at("the answer to the invoice's call is lost")
  for (const { id, reference } of processor.invoices)
    await market.confirmPayment(reference, { invoice_id: id })
  await market.drainUntilIdle()
  at('a payment was confirmed before its invoice was recorded')
  await comeRound(market, () => areAll(market, 'billing_cycles', 'charged'))
  at('shares are released')
  await comeRound(market, async () => (await runPayouts(platform, processor)).some(isMade), PAID_WITHIN)
  at('a payout waits to be sent')
  processor.answers = ['lose']
  await comeRound(market, async () => processor.payouts.length > 0)
  at("the answer to the payout's call is lost")
  for (const { reference } of processor.payouts) await market.settlePayout(reference, 'confirmed')
  await market.drainUntilIdle()
  at('a payout was settled before it was recorded')
  await comeRound(market, () => areAll(market, 'payouts', 'paid'))
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

const isMade = ({ kind }: { kind: string }) => kind === 'paid_out'

async function hasSold({ platform }: Marketplace, many: number): Promise<boolean> {
  return (await rowsOf(platform, 'sales', { acceptance_status: 'accepted' })).length === many
}

async function areAll(
  { platform }: Marketplace,
  table: 'billing_cycles' | 'payouts' | 'inbound_events',
  wanted: string,
): Promise<boolean> {
  return (await rowsOf(platform, table)).every(({ state }) => state === wanted)
}

/** By hand: 12.5 % of 9,000.00 and of 1,000.00, and a tenth of that as the fee. */
async function assertPaidOnce(market: Marketplace): Promise<void> {
  const { platform, processor } = market
  const total = (values: number[]) => values.reduce((sum, value) => sum + value, 0)
  const due = (await rowsOf(platform, 'billing_cycles')).map(({ amount_due }) => amount_due)
  assert.is(total(due), 112_500 + 11_250 + 12_500 + 1250)
  const paid = (await rowsOf(platform, 'payouts')).map(({ amount }) => amount)
  assert.is(total(paid), 112_500 + 12_500)
  for (const held of [processor.invoices, processor.payouts]) {
    assert.is(new Set(held.map(({ reference }) => reference)).size, held.length)
  }
  assert.ok(await areAll(market, 'inbound_events', 'done'))
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
    await startScheduler(platform, processor).stop()
    clock.pass(-2 * DAY)
    await startScheduler(platform, processor).stop()
    for (const name of ['billing', 'payouts']) {
      const { started_at, finished_at } = await rowOf(platform, 'schedule_runs', { name }, 'name')
      assert.equal([started_at, finished_at], [clock.now(), clock.now()], name)
    }
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
    for (const day of MONTH_ENDS) {
      const market = await openMarketplace(dialect)
      const { platform, clock } = market
      clock.set(`${day}T17:59:59.999Z`)
      const shop = await market.addShop()
      const link = await market.addLink(shop, await market.addCreator())
      for (const ms of [0, HOUR, 1]) {
        clock.pass(ms)
        await market.order(shop, link, 100_000)
        await market.drainUntilIdle()
      }
      const cycles = await cyclesOf(platform, shop.merchantId)
      assertMapped(cycles, ({ sales_count }) => sales_count, [2, 1], day)
      assert.is(cycles[0]?.period_end, Date.parse(`${day}T19:00:00Z`), day)
      await market.verify()
      await market.close()
    }
  })

  it.run()
}
