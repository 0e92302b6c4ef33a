import { sql } from 'kysely'
import { closeDueCycles } from '../../../server/billing/close-cycle.service.ts'
import { createInboxRecorder } from '../../../server/inbox/intake.service.ts'
import { drainUntilIdle } from '../../../server/jobs/worker.ts'
import { findSales } from '../../../server/sales/sales.service.ts'
import { BILLING_INVARIANTS } from '../../../server/verification/billing.ts'
import { EVERYTHING } from '../../../server/verification/scope.ts'
import { DAY_MS } from '../../../shared/durations.ts'
import type { Bed } from '../bed.ts'
import { type Measurement, milliseconds } from '../figures.ts'
import { addOldEvents } from '../fill-events.ts'
import { addSales, addSellers, openCycles, type Sellers } from '../fill-sales.ts'
import { repeatedly, timed } from '../measure.ts'
import { storeOrder } from '../orders.ts'
import { openShops, pileOrders, type ShopLink } from '../pile-orders.ts'

const MILLION = 1_000_000
const SALES = [0.25, 0.5, 1, 2].map((millions) => millions * MILLION)
const SELLERS = 500
const BATCH = 64
const PILE = 2000

interface Market {
  bed: Bed
  sellers: readonly Sellers[]
  links: readonly ShopLink[]
  /** How many orders have been numbered. */
  orders: number
}

/** What sales and the events behind them make slower: as many of the one as of the other, whose bodies are gone. */
export async function growSales(bed: Bed): Promise<Measurement[]> {
  const { platform } = bed.app
  const market = {
    bed,
    sellers: await addSellers(platform, SELLERS),
    links: await openShops(platform),
    orders: 0,
  }
  const from = Math.floor(platform.clock.now() / DAY_MS) * DAY_MS - 400 * DAY_MS
  const found: Measurement[] = []
  let there = 0
  for (const [step, size] of SALES.entries()) {
    const period = { start: from + step * DAY_MS, end: from + (step + 1) * DAY_MS }
    await grow(market, period, { from: there, count: size - there })
    there = size
    for (const [what, taken] of await measure(market, period.end)) {
      found.push(milliseconds(bed, `${size / MILLION} M sales: ${what}`, taken))
    }
  }
  return found
}

async function grow(
  { bed, sellers, links }: Market,
  period: { start: number; end: number },
  { from, count }: { from: number; count: number },
): Promise<void> {
  const { platform } = bed.app
  const each = count / SELLERS
  await openCycles(platform, sellers, period, each)
  await addSales(platform, { cycles: SELLERS, start: period.start, each, from })
  await addOldEvents(platform, links[0]?.storeId ?? '', { from, count })
  if (bed.dialect === 'postgresql') await sql`vacuum analyze`.execute(bed.app.database.writer)
}

async function measure(market: Market, periodEnd: number): Promise<[what: string, taken: number[]][]> {
  const { bed, sellers } = market
  const { platform } = bed.app
  return [
    [`a batch of ${BATCH} orders taken in`, await takeIn(market)],
    [`${PILE} orders drained`, await drain(market)],
    ["a page of a merchant's sales", await repeatedly(bed.rounds * 4, () => firstPage(bed, sellers))],
    ['audit of the totals', await repeatedly(bed.rounds, () => audit(bed))],
    [`closing ${SELLERS} cycles`, [await timed(() => closeAll(platform, periodEnd))]],
  ]
}

async function takeIn(market: Market): Promise<number[]> {
  const { platform } = market.bed.app
  const inbox = createInboxRecorder(platform)
  const { storeId = '' } = market.links[0] ?? {}
  const batch = () =>
    Promise.all(
      Array.from({ length: BATCH }, () => {
        const number = market.orders++
        const rawBody = Buffer.from(storeOrder(number, platform.ids.next(), platform.clock.now()))
        const deliveryId = `taken-in-${number}`
        return inbox.record({ source: 'store', scope: storeId, deliveryId, topic: 'orders/paid', rawBody })
      }),
    )
  return repeatedly(market.bed.rounds * 4, batch)
}

/** What was taken in is drained first, so that each time waits the same. */
async function drain(market: Market): Promise<number[]> {
  const { app, rounds } = market.bed
  await drainUntilIdle(app)
  const taken: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    await pileOrders(app.platform, market.links, { first: market.orders, count: PILE })
    market.orders += PILE
    taken.push(await timed(() => drainUntilIdle(app)))
  }
  return taken
}

function firstPage({ app }: Bed, [seller]: readonly Sellers[]): Promise<unknown> {
  const merchantId = seller?.merchantId ?? ''
  return findSales(app.platform.database.reader, { merchantId }, { limit: 50, before: null })
}

async function audit({ app }: Bed): Promise<void> {
  const totals = BILLING_INVARIANTS.find(({ name }) => name === 'cycle-totals')
  const breaches = await totals?.breaches(app.platform.database.reader, app.platform.keys, EVERYTHING)
  if (breaches?.length !== 0) throw new Error(`the totals are wrong: ${breaches?.[0]?.detail}`)
}

async function closeAll(platform: Bed['app']['platform'], asOf: number): Promise<void> {
  const closed = await closeDueCycles(platform, { asOf })
  if (closed.length !== SELLERS) throw new Error(`closed ${closed.length} cycles instead of ${SELLERS}`)
}
