import { addSalesToCycles } from '../billing/billing.service.ts'
import { linksOfClicks } from '../clicks/clicks.service.ts'
import { saleAccepted } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { afterCommit, LostRace, type Queries, type Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import { newsOf } from '../platform/signals.ts'
import type { OrderFacts } from '../shopify/order-facts.ts'
import { emailsOf, isSuspended } from '../users/users.service.ts'
import { decideSale, type SaleDecision } from './accept-sale.rule.ts'
import { isBuyer, type SaleFacts, saleOrderOf } from './sale-facts.ts'
import {
  findRecorded,
  findSale,
  findSales,
  insertSales,
  type OrderKey,
  type SaleFilter,
  type SaleRow,
  type SaleScope,
  type SaleWithSlug,
} from './sales.store.ts'

export type { SaleFilter, SaleRow, SaleScope, SaleWithSlug } from './sales.store.ts'

/** An order that a store reported, read and checked. */
export interface ReportedOrder {
  eventId: string
  storeId: string
  merchantId: string
  order: OrderFacts
  /** When its event came in, epoch ms. */
  receivedAt?: number
}

/** What became of a reported order. `known`: the order had been recorded before, and nothing changed. */
export interface RecordedSale {
  saleId: string
  acceptanceStatus: 'accepted' | 'rejected'
  known: boolean
}

/** What is kept of a decision for ever: enough to take it again, nothing about the buyer. */
export interface SaleReceipt {
  facts: SaleFacts
  decision: SaleDecision
}

/**
 * Turns reported orders into sales: all facts first, each decision by the rule, then rows, cycle totals and journal,
 * set-wise and in the caller's transaction. One sale an order of a store, whatever is reported how often. Answers in
 * the order of `reports`.
 */
export async function recordOrders(
  platform: Platform,
  tx: Tx,
  reports: readonly ReportedOrder[],
): Promise<RecordedSale[]> {
  const known = new Map<string, RecordedSale>()
  for (const sale of await findRecorded(tx, reports.map(orderOf))) {
    known.set(orderKey(sale), {
      saleId: sale.id,
      acceptanceStatus: sale.acceptance_status,
      known: true,
    })
  }
  const fresh = new Map<string, ReportedOrder>()
  for (const report of reports) {
    const key = orderKey(orderOf(report))
    if (!known.has(key) && !fresh.has(key)) fresh.set(key, report)
  }
  const made = await makeSales(platform, tx, [...fresh.values()])
  const seen = new Set<string>()
  return reports.map((report) => {
    const key = orderKey(orderOf(report))
    const sale = known.get(key) ?? made.get(key)
    if (!sale) throw new Error(`no sale for order ${key}`)
    const again = sale.known || seen.has(key)
    seen.add(key)
    return { ...sale, known: again }
  })
}

function orderOf(report: ReportedOrder): OrderKey {
  return { store_id: report.storeId, order_id: report.order.order_id }
}

function orderKey(order: OrderKey): string {
  return `${order.store_id}\n${order.order_id}`
}

async function makeSales(
  platform: Platform,
  tx: Tx,
  reports: readonly ReportedOrder[],
): Promise<Map<string, RecordedSale>> {
  if (reports.length === 0) return new Map()
  // One moment for the whole batch: a sale must not be dated past the end of the cycle that was chosen for it.
  // Never before its event, either: the clock may have been put back since.
  const acceptedAt = Math.max(platform.clock.now(), ...reports.map((report) => report.receivedAt ?? 0))
  const facts = await loadFacts(platform, tx, reports)
  const sales = reports.map((report, index) => {
    const saleFacts = facts[index] as SaleFacts
    return { id: platform.ids.next(), report, facts: saleFacts, decision: decideSale(saleFacts) }
  })
  const accepted = sales.flatMap(({ id, report, facts: { click }, decision }) =>
    decision.acceptance_status === 'accepted' && click
      ? [
          {
            saleId: id,
            merchantId: report.merchantId,
            creatorId: click.link.creator_id,
            commission: decision.commission,
            platformFee: decision.platform_fee,
          },
        ]
      : [],
  )
  const cycles = await addSalesToCycles(platform, tx, accepted, acceptedAt)
  const rows = sales.map((sale) => rowOf(sale, cycles.get(sale.id) ?? null, acceptedAt))
  await insertUnrecorded(platform, tx, rows)
  const parties = new Set(
    rows.flatMap((row) => [row.merchant_id, ...(row.creator_id === null ? [] : [row.creator_id])]),
  )
  afterCommit(tx, () => {
    for (const party of parties) platform.signals.send(newsOf(party))
  })
  await writeEntries(platform, tx, accepted.map(saleAccepted), acceptedAt)
  return new Map(
    sales.map(({ id, report, decision }) => [
      orderKey(orderOf(report)),
      { saleId: id, acceptanceStatus: decision.acceptance_status, known: false },
    ]),
  )
}

/** A worker that lost its lease may be a moment behind its successor: run again, it finds the sale and then the loss. */
async function insertUnrecorded(platform: Platform, tx: Tx, rows: SaleRow[]): Promise<void> {
  try {
    await insertSales(tx, rows)
  } catch (error) {
    if (platform.database.faultOf(error)?.kind !== 'unique') throw error
    throw new LostRace('one of the orders has been recorded')
  }
}

/** Everything the rule looks at, for all orders at once. */
export async function loadFacts(
  platform: Pick<Platform, 'config'>,
  db: Queries,
  reports: readonly Pick<ReportedOrder, 'merchantId' | 'order'>[],
): Promise<SaleFacts[]> {
  const orders = reports.map((report) => saleOrderOf(report.order))
  const clicks = await linksOfClicks(
    db,
    orders.flatMap((order) => order.tracking_reference ?? []),
  )
  const creatorIds = [...new Set([...clicks.values()].map(({ link }) => link.creator_id))]
  const merchantIds = [...new Set(reports.map((report) => report.merchantId))]
  const suspended = await isSuspended(db, [...creatorIds, ...merchantIds])
  const emails = await emailsOf(db, creatorIds)
  return reports.map((report, index) => {
    const order = orders[index] as SaleFacts['order']
    const found = clicks.get(order.tracking_reference ?? '') ?? null
    const creatorId = found?.link.creator_id
    return {
      order,
      buyer_is_creator: creatorId !== undefined && isBuyer(report.order, emails.get(creatorId) ?? null),
      reporting_merchant_id: report.merchantId,
      click: found && { ...found.click, link: found.link },
      creator_suspended: creatorId !== undefined && suspended.has(creatorId),
      merchant_suspended: suspended.has(report.merchantId),
      platform_fee_rate: platform.config.PLATFORM_FEE_RATE,
    }
  })
}

interface DecidedSale {
  id: string
  report: ReportedOrder
  facts: SaleFacts
  decision: SaleDecision
}

function rowOf(sale: DecidedSale, cycleId: string | null, acceptedAt: number) {
  const { report, facts, decision } = sale
  // Another merchant's link is no business of this one's, and its creator has no part in this sale.
  const click = facts.click?.link.merchant_id === report.merchantId ? facts.click : null
  const receipt: SaleReceipt = { facts, decision }
  return {
    id: sale.id,
    store_id: report.storeId,
    merchant_id: report.merchantId,
    order_id: report.order.order_id,
    order_name: report.order.order_name,
    acceptance_status: decision.acceptance_status,
    rejection_reason: decision.rejection_reason,
    offer_id: click?.link.offer_id ?? null,
    creator_id: click?.link.creator_id ?? null,
    link_id: click?.link.id ?? null,
    click_id: click?.id ?? null,
    net_amount: decision.net_amount,
    commission_rate: decision.commission_rate,
    commission: decision.commission,
    platform_fee: decision.platform_fee,
    billing_cycle_id: cycleId,
    ordered_at: report.order.created_at,
    created_at: acceptedAt,
    event_id: report.eventId,
    receipt: JSON.stringify(receipt),
  }
}

/** Sales in the caller's scope, newest first. */
export function listSales(platform: Platform, scope: SaleScope, filter: SaleFilter): Promise<SaleWithSlug[]> {
  return findSales(platform.database.reader, scope, filter)
}

export function getSale(
  platform: Platform,
  scope: SaleScope,
  saleId: string,
): Promise<SaleWithSlug | undefined> {
  return findSale(platform.database.reader, scope, saleId)
}
