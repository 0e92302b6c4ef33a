import { addSalesToCycles, type SaleToBill } from '../billing/billing.service.ts'
import { linksOfClicks } from '../clicks/clicks.service.ts'
import { saleAccepted } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { afterCommit, LostRace, type Queries, type Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import { newsOf } from '../platform/signals.ts'
import type { OrderFacts } from '../shopify/order-facts.ts'
import { standingOf } from '../users/users.service.ts'
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
  const orders = reports.map(orderOf)
  const keys = orders.map(orderKey)
  const known = new Map<string, RecordedSale>()
  for (const sale of await findRecorded(tx, orders)) {
    known.set(orderKey(sale), {
      saleId: sale.id,
      acceptanceStatus: sale.acceptance_status,
      known: true,
    })
  }
  const fresh = new Map<string, ReportedOrder>()
  reports.forEach((report, index) => {
    const key = keys[index] as string
    if (!known.has(key) && !fresh.has(key)) fresh.set(key, report)
  })
  const made = await makeSales(platform, tx, [...fresh.values()])
  for (const [index, key] of [...fresh.keys()].entries()) known.set(key, made[index] as RecordedSale)
  return keys.map((key) => {
    const sale = known.get(key)
    if (!sale) throw new Error(`no sale for order ${key}`)
    // Reported twice in one batch, the order is known the second time.
    if (!sale.known) known.set(key, { ...sale, known: true })
    return sale
  })
}

function orderOf(report: ReportedOrder): OrderKey {
  return { store_id: report.storeId, order_id: report.order.order_id }
}

function orderKey(order: OrderKey): string {
  return `${order.store_id}\n${order.order_id}`
}

/** In the order of `reports`, which name no order twice. */
async function makeSales(
  platform: Platform,
  tx: Tx,
  reports: readonly ReportedOrder[],
): Promise<RecordedSale[]> {
  if (reports.length === 0) return []
  // One moment for the whole batch: a sale must not be dated past the end of the cycle that was chosen for it.
  // Never before its event, either: the clock may have been put back since.
  const acceptedAt = Math.max(platform.clock.now(), ...reports.map((report) => report.receivedAt ?? 0))
  const facts = await loadFacts(platform, tx, reports)
  const rows = reports.map((report, index) =>
    rowOf(platform.ids.next(), report, facts[index] as SaleFacts, acceptedAt),
  )
  const accepted = rows.flatMap((row) => billedSale(row) ?? [])
  const cycles = await addSalesToCycles(platform, tx, accepted, acceptedAt)
  for (const row of rows)
    if (row.acceptance_status === 'accepted') row.billing_cycle_id = cycles.get(row.merchant_id) ?? null
  await insertUnrecorded(platform, tx, rows)
  const parties = new Set<string>()
  for (const row of rows) {
    parties.add(row.merchant_id)
    if (row.creator_id !== null) parties.add(row.creator_id)
  }
  afterCommit(tx, () => {
    for (const party of parties) platform.signals.send(newsOf(party))
  })
  await writeEntries(platform, tx, accepted.map(saleAccepted), acceptedAt)
  return rows.map((row) => ({ saleId: row.id, acceptanceStatus: row.acceptance_status, known: false }))
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
  const { suspended, emails } = await standingOf(db, [...creatorIds, ...merchantIds])
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

/**
 * Decides and writes down at once, so that of the facts and checks of a large batch only the receipts' text is kept in memory. The
 * billing cycle is filled in when it is known.
 */
function rowOf(saleId: string, report: ReportedOrder, facts: SaleFacts, acceptedAt: number): SaleRow {
  const decision = decideSale(facts)
  // Another merchant's link is no business of this one's, and its creator has no part in this sale.
  const click = facts.click?.link.merchant_id === report.merchantId ? facts.click : null
  const receipt: SaleReceipt = { facts, decision }
  return {
    id: saleId,
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
    billing_cycle_id: null,
    ordered_at: report.order.created_at,
    created_at: acceptedAt,
    event_id: report.eventId,
    receipt: JSON.stringify(receipt),
  }
}

/** What an accepted sale is billed for; `null` for a rejected one. */
function billedSale(row: SaleRow): SaleToBill | null {
  if (row.acceptance_status !== 'accepted' || row.creator_id === null) return null
  return {
    saleId: row.id,
    merchantId: row.merchant_id,
    creatorId: row.creator_id,
    commission: row.commission,
    platformFee: row.platform_fee,
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
