import { closeDueCycles } from '../../server/billing/close-cycle.service.ts'
import type { LinkRecord } from '../../server/links/links.service.ts'
import { runPayouts } from '../../server/payouts/payout-run.service.ts'
import { sha256 } from '../../server/platform/crypto/vault.ts'
import type { Tx } from '../../server/platform/database/database.ts'
import { noteCounted, withDigest } from '../../server/platform/database/protected-rows.ts'
import type { Platform } from '../../server/platform/platform.ts'
import { type ReportedOrder, recordOrders } from '../../server/sales/sales.service.ts'
import { cyclesOf, type Marketplace, type Shop } from '../../server/test/testkit/marketplace.ts'
import { DAY } from '../../server/test/testkit/testbed.ts'

/** Every table takes fewer than 25 parameters a row; SQLite takes 32,766 a statement. */
const ORDERS_AT_ONCE = 1000
const SHOPS = 20
const CREATORS = 40
const MONTHS = 4
/** One event in so many still has its body; the retention time has had the others. */
const BODY_EVERY = 20

interface Deal {
  shop: Shop
  link: LinkRecord
}

/**
 * Books of some months in which everything has happened that money can do, written by the services themselves: the
 * sales set-wise, only without the work of receiving each order over HTTP. Returns a function that sells more.
 */
export async function fillBooks(
  market: Marketplace,
  sales: number,
  onProgress: (done: number) => void,
): Promise<(more: number) => Promise<void>> {
  const deals = await makeDeals(market)
  let done = 0
  for (let month = 1; month <= MONTHS; month += 1) {
    const until = Math.floor((sales * month) / MONTHS)
    while (done < until) {
      const count = Math.min(ORDERS_AT_ONCE, until - done)
      await sell(market, deals, done, count)
      done += count
      onProgress(done)
    }
    if (month < MONTHS) await settleMonth(market, deals)
  }
  return async (more) => {
    for (const until = done + more; done < until; done += ORDERS_AT_ONCE) {
      await sell(market, deals, done, Math.min(ORDERS_AT_ONCE, until - done))
    }
  }
}

async function makeDeals(market: Marketplace): Promise<Deal[]> {
  const shops: Shop[] = []
  for (let number = 0; number < SHOPS; number += 1) shops.push(await market.addShop(`shop ${number}`))
  const deals: Deal[] = []
  for (let number = 0; number < CREATORS; number += 1) {
    const creator = await market.addCreator(`creator ${number}`)
    for (const shop of [shops[number % SHOPS], shops[(number * 7 + 3) % SHOPS]] as [Shop, Shop]) {
      deals.push({ shop, link: await market.addLink(shop, creator) })
    }
  }
  return deals
}

async function sell(market: Marketplace, deals: readonly Deal[], from: number, count: number): Promise<void> {
  const { platform, clock } = market
  clock.pass(1000)
  const orders = Array.from({ length: count }, (_, index) => makeOrder(market, deals, from + index))
  await platform.database.transaction(async (tx) => {
    await tx
      .insertInto('clicks')
      .values(orders.map(({ click }) => click))
      .execute()
    const reports = orders.map(({ report }) => report)
    const recorded = await recordOrders(platform, tx, reports)
    const results = recorded.map(({ saleId, acceptanceStatus }) => {
      return JSON.stringify({ sale_id: saleId, acceptance_status: acceptanceStatus })
    })
    await keepEvents(platform, tx, clock.now(), reports, results)
  })
}

/** An order in some hundred of its own: one to three lines, some discounted, three in a hundred not paid. */
function makeOrder({ platform, clock }: Marketplace, deals: readonly Deal[], number: number) {
  const { shop, link } = deals[number % deals.length] as Deal
  const clickId = platform.ids.next()
  const now = clock.now()
  const lines = Array.from({ length: 1 + (number % 3) }, (_, line) => ({
    product_id: `82098291194${number % 5000}${line}`,
    title: `Three-piece lawn suit, unstitched, ${number % 5000}`,
    quantity: 1 + (line % 2),
    original_quantity: 1 + (line % 2),
    unit_price: 100_000 + (number % 977) * 100,
    discount: number % 4 === 0 ? 5000 : 0,
    tax: 0,
    gift_card: false,
  }))
  const report: ReportedOrder = {
    eventId: platform.ids.next(),
    storeId: shop.storeId,
    merchantId: shop.merchantId,
    order: {
      order_id: String(6_100_000_000_000 + number),
      order_name: `#${number}`,
      created_at: now,
      updated_at: null,
      currency: 'PKR',
      test: false,
      financial_status: number % 100 < 3 ? 'pending' : 'paid',
      cancelled: false,
      taxes_included: false,
      buyer_emails: [],
      references: [{ reference: clickId, source: 'note_attributes' as const }],
      buyer_names: [],
      shop_hosts: [],
      discount_codes: [],
      lines,
    },
  }
  const click = {
    id: clickId,
    link_id: link.id,
    tracked: 1,
    kind: 'visit' as const,
    created_at: now - 60_000,
  }
  return { report, click }
}

/** The events that the orders came in, as the worker leaves them. */
async function keepEvents(
  { keys }: Platform,
  tx: Tx,
  now: number,
  reports: readonly ReportedOrder[],
  results: readonly string[],
): Promise<void> {
  const bodies = reports.map(({ order }) =>
    JSON.stringify({
      id: order.order_id,
      name: order.order_name,
      created_at: new Date(order.created_at).toISOString(),
      currency: order.currency,
      line_items: [],
      note: 'x'.repeat(3000),
    }),
  )
  await tx
    .insertInto('inbound_events')
    .values(
      reports.map((report, index) =>
        withDigest(keys, 'inbound_events', {
          id: report.eventId,
          source: 'store' as const,
          scope: report.storeId,
          delivery_id: report.eventId,
          conflict_hash: '',
          body_hash: sha256(bodies[index] ?? ''),
          topic: 'orders/paid',
          received_at: now,
          triggered_at: null,
          state: 'done' as const,
          attempts: 1,
          next_attempt_at: now,
          lease_token: null,
          lease_until: 0,
          reason: null,
          reason_code: null,
          result: results[index],
          finished_at: now,
        }),
      ),
    )
    .execute()
  noteCounted('inbound_events', reports.length)
  const kept = reports.flatMap(({ eventId }, index) =>
    index % BODY_EVERY === 0
      ? [{ event_id: eventId, encoding: 'utf8' as const, body: bodies[index] ?? '' }]
      : [],
  )
  await tx.insertInto('inbound_bodies').values(kept).execute()
}

/** Closes the month's cycles, has them charged, and pays the creators; every fourth payout fails. */
async function settleMonth(market: Marketplace, deals: readonly Deal[]): Promise<void> {
  const { platform, processor, clock } = market
  clock.pass(31 * DAY)
  await closeDueCycles(platform)
  await market.drainUntilIdle()
  for (const { merchantId } of new Set(deals.map(({ shop }) => shop))) {
    for (const cycle of await cyclesOf(platform, merchantId)) {
      if (cycle.state === 'closed') await market.confirmPayment(cycle.id)
    }
  }
  await market.drainUntilIdle()
  const outcomes = await runPayouts(platform, processor)
  await market.drainUntilIdle()
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.kind !== 'paid_out' || !outcome.payoutId) continue
    await market.settlePayout(outcome.payoutId, index % 4 === 0 ? 'failed' : 'confirmed')
  }
  await market.drainUntilIdle()
}
