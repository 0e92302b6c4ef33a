import type { Sale } from '../../shared/schemas/sales.ts'
import type { OrderSource } from '../../shared/schemas/stores.ts'
import { addSalesToCycles, type SaleToBill } from '../billing/billing.service.ts'
import { type LinkedClick, linksOfClicks } from '../clicks/clicks.service.ts'
import { flagOrders, type OrderNote } from '../flags/order-flags.service.ts'
import { saleAccepted } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { type CodedOrder, couponsOfOrders } from '../links/coupons.service.ts'
import { isoTime } from '../platform/clock.ts'
import { afterCommit, type Queries, type Tx, WriteConflict } from '../platform/database/database.ts'
import { type KeysetScan, pageItems, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import type { OrderFacts } from '../shopify/order-facts.ts'
import { accountTitlesOf } from '../users/sealed-accounts.service.ts'
import { peopleOf } from '../users/users.service.ts'
import {
  attributionOf,
  couponInForce,
  decideSale,
  endOfSecond,
  isPaid,
  isUsableClick,
  namedBy,
  orderSource,
  type SaleDecision,
  type SaleReceipt,
} from './accept-sale.rule.ts'
import { notifyFirstSales } from './first-sales.service.ts'
import { changesInTurn, decidedOrder } from './order-change.rule.ts'
import { type SuspiciousDate, suspiciousDates } from './order-dates.rule.ts'
import { publishSales } from './sale-events.service.ts'
import { clickIdsOf, hasBuyerName, isBuyer, type SaleFacts, saleOrderOf } from './sale-facts.ts'
import { wireSale } from './sale-wire.ts'
import {
  countRejections,
  countSales,
  findRecorded,
  findSale,
  findSales,
  insertSales,
  type OrderKey,
  orderNamesBySale,
  readSales,
  replaceDecision,
  type SaleFilter,
  type SaleRow,
  type SaleScope,
  type SaleWithSlug,
} from './sales.store.ts'

export {
  hasAcceptedSale,
  linkEarnings,
  type SaleFilter,
  type SaleRow,
  type SaleScope,
  type SaleWithSlug,
} from './sales.store.ts'

/** An order that a store reported, parsed and validated. */
export interface ReportedOrder {
  eventId: string
  storeId: string
  merchantId: string
  order: OrderFacts
  /** When its event was received, epoch ms. */
  receivedAt?: number
  /** When the store triggered the event, epoch ms; from an unsigned header. */
  triggeredAt?: number | null
}

/**
 * The outcome of a reported order. `known`: the order was recorded before and nothing changed. `decidedAgain`: it was recorded as
 * unpaid before.
 */
export interface RecordedSale {
  saleId: string
  acceptanceStatus: 'accepted' | 'rejected'
  known: boolean
  decidedAgain: boolean
  /** What led the order to a link; `null` for a test order and unless this is its first decision. */
  source: OrderSource | null
}

/**
 * Turns reported orders into sales: loads all facts, decides each sale, then writes sales, cycle totals and journal entries for the
 * whole batch in the caller's transaction. Each order of a store is one sale, however often it is reported. A sale rejected as
 * `not_paid` is decided again, once, when its order is reported as paid. Results are in the order of `reports`.
 */
export async function recordOrders(
  platform: Platform,
  tx: Tx,
  reports: readonly ReportedOrder[],
): Promise<RecordedSale[]> {
  const orders = reports.map(orderOf)
  const keys = orders.map(orderKey)
  const current = new Map((await findRecorded(tx, orders)).map((row) => [orderKey(row), row]))
  const receipts = new Map([...current].map(([key, row]) => [key, row.receipt]))
  const decided = new Map<number, DecidedOrder>()
  // One round for most batches; another one if a batch has several reports of one order.
  for (;;) {
    const indexes = nextToDecide(reports, keys, current, decided)
    if (indexes.length === 0) break
    const tasks = indexes.map((index) => ({
      report: reports[index] as ReportedOrder,
      former: current.get(keys[index] as string) ?? null,
    }))
    for (const [position, order] of (await decideOrders(platform, tx, tasks)).entries()) {
      const index = indexes[position] as number
      decided.set(index, order)
      current.set(keys[index] as string, order.row)
    }
  }
  const saleOf = (index: number) => current.get(keys[index] as string) as SaleRow
  await flagChanges(platform, tx, reports, { keys, receipts, decided, saleOf })
  await flagDates(platform, tx, reports, decided)
  return reports.map((_report, index) => {
    const sale = saleOf(index)
    return {
      saleId: sale.id,
      acceptanceStatus: sale.acceptance_status,
      known: !decided.has(index),
      decidedAgain: decided.get(index)?.again ?? false,
      source: decided.get(index)?.source ?? null,
    }
  })
}

function orderOf(report: ReportedOrder): OrderKey {
  return { store_id: report.storeId, order_id: report.order.order_id }
}

function orderKey(order: OrderKey): string {
  return `${order.store_id}\n${order.order_id}`
}

/** For each order the index of the first report that creates its sale or decides it again. */
function nextToDecide(
  reports: readonly ReportedOrder[],
  keys: readonly string[],
  current: ReadonlyMap<string, SaleRow>,
  decided: ReadonlyMap<number, unknown>,
): number[] {
  const indexes = new Map<string, number>()
  for (const [index, { order }] of reports.entries()) {
    const key = keys[index] as string
    if (decided.has(index) || indexes.has(key)) continue
    const row = current.get(key)
    if (!row || isDecidedAgain(row, order)) indexes.set(key, index)
  }
  return [...indexes.values()]
}

function isDecidedAgain(sale: SaleRow, order: OrderFacts): boolean {
  return sale.rejection_reason === 'not_paid' && sale.decided_at === null && isPaid(order)
}

interface DecisionTask {
  report: ReportedOrder
  /** The sale that is decided again; `null` for a new one. */
  former: SaleRow | null
}

interface DecidedOrder {
  row: SaleRow
  /** Whether this is the sale's second decision. */
  again: boolean
  source: OrderSource | null
  suspicious: SuspiciousDate[]
}

/** Decides and writes one sale per task. No two tasks may have the same order. Results are in the order of `tasks`. */
async function decideOrders(
  platform: Platform,
  tx: Tx,
  tasks: readonly DecisionTask[],
): Promise<DecidedOrder[]> {
  // One time for the whole batch, so that no sale is dated after the end of its cycle. If the clock was set back, it is still not
  // before the event or the former decision.
  const decidedAt = Math.max(
    platform.clock.now(),
    ...tasks.map(({ report, former }) => Math.max(report.receivedAt ?? 0, former?.created_at ?? 0)),
  )
  const reports = tasks.map(({ report }) => report)
  const facts = await loadFacts(platform, tx, reports)
  const rows = tasks.map((task, index) => {
    const saleFacts = facts[index] as SaleFacts
    const id = task.former?.id ?? platform.ids.next()
    return saleRow(id, task, saleFacts, decideSale(saleFacts), decidedAt)
  })
  const accepted = rows.flatMap((row) => billedSale(row) ?? [])
  const cycles = await addSalesToCycles(platform, tx, accepted, decidedAt)
  for (const row of rows)
    if (row.acceptance_status === 'accepted') row.billing_cycle_id = cycles.get(row.merchant_id) ?? null
  await notifyFirstSales(platform, tx, rows)
  await writeSales(platform, tx, rows)
  await writeEntries(platform, tx, accepted.map(saleAccepted), decidedAt)
  await publishSales(
    platform,
    tx,
    rows.map((row, index) => ({ ...row, slug: slugOf(row, facts[index] as SaleFacts) })),
  )
  notifyParties(platform, tx, [...rows, ...tasks.flatMap(({ former }) => former ?? [])])
  return rows.map((row, index) => {
    const saleFacts = facts[index] as SaleFacts
    const again = tasks[index]?.former !== null
    return {
      row,
      again,
      source: again || saleFacts.order.test ? null : orderSource(saleFacts),
      suspicious: datesOf(platform, reports[index] as ReportedOrder, saleFacts, row),
    }
  })
}

function slugOf({ link_id: linkId }: SaleRow, facts: SaleFacts): string | null {
  return linkId === null ? null : (attributionOf(facts)?.link.slug ?? null)
}

function notifyParties(platform: Platform, tx: Tx, rows: readonly SaleRow[]): void {
  const parties = new Set(
    rows.flatMap(({ merchant_id, creator_id }) => (creator_id ? [merchant_id, creator_id] : [merchant_id])),
  )
  afterCommit(tx, () => {
    for (const party of parties) platform.topics.send(userTopic(party))
  })
}

/** The place of the first reference with a usable click; else of the first with a click of the merchant; else the first. */
function placeOfClick(
  { merchantId, order }: Pick<ReportedOrder, 'merchantId' | 'order'>,
  clicks: ReadonlyMap<string, LinkedClick>,
): number {
  const found = clickIdsOf(order).map((id) => {
    const linked = clicks.get(id ?? '')
    return linked && { ...linked.click, link: linked.link }
  })
  const to = { merchantId, createdAt: order.created_at }
  const usable = found.findIndex((click) => click && isUsableClick(click, to))
  return Math.max(
    0,
    usable !== -1 ? usable : found.findIndex((click) => click?.link.merchant_id === merchantId),
  )
}

function codedOrder(
  { merchantId, order }: Pick<ReportedOrder, 'merchantId' | 'order'>,
  codes: readonly string[] = order.discount_codes,
): CodedOrder {
  return { merchantId, codes, createdAt: endOfSecond(order.created_at) }
}

/** Loads everything that the sale rule needs, for all orders at once. */
export async function loadFacts(
  platform: Pick<Platform, 'config' | 'keys'>,
  db: Queries,
  reports: readonly Pick<ReportedOrder, 'merchantId' | 'order'>[],
): Promise<SaleFacts[]> {
  const clicks = await linksOfClicks(
    db,
    platform.keys,
    reports.flatMap(({ order }) => clickIdsOf(order).filter((id) => id !== null)),
  )
  const orders = reports.map((report) => saleOrderOf(report.order, placeOfClick(report, clicks)))
  const coupons = await couponsOfOrders(
    db,
    platform.keys,
    reports.map((report) => codedOrder(report)),
  )
  const links = [...clicks.values(), ...coupons.flat()].map(({ link }) => link)
  const creatorIds = [...new Set(links.map((link) => link.creator_id))]
  const merchantIds = [...new Set(reports.map((report) => report.merchantId))]
  const people = await peopleOf(db, [...creatorIds, ...merchantIds])
  const isSuspended = (id: string) => typeof people.get(id)?.suspended_at === 'number'
  const named = reports.some((report) => report.order.buyer_names.length > 0)
  const titles = await accountTitlesOf(db, named ? creatorIds : [])
  return reports.map((report, index) => {
    const order = orders[index] as SaleFacts['order']
    const found = clicks.get(order.tracking_reference ?? '') ?? null
    const aboutCreator = (link: { creator_id: string } | undefined) => ({
      creator_suspended: link !== undefined && isSuspended(link.creator_id),
      buyer_is_creator:
        link !== undefined && isBuyer(report.order, people.get(link.creator_id)?.email ?? null),
      buyer_name_matches: link !== undefined && hasBuyerName(report.order, titles.get(link.creator_id) ?? []),
    })
    const codes = (coupons[index] ?? []).map((coupon) => ({ ...coupon, ...aboutCreator(coupon.link) }))
    return {
      order,
      reporting_merchant_id: report.merchantId,
      click: found && { ...found.click, link: found.link },
      ...(codes.length > 0 && { coupons: codes }),
      ...aboutCreator(found?.link),
      merchant_suspended: isSuspended(report.merchantId),
      platform_fee_rate: platform.config.PLATFORM_FEE_RATE,
    }
  })
}

/** The row of a decided sale, without its billing cycle. A click or code that earns nothing is only on the receipt. */
function saleRow(
  id: string,
  { report, former }: DecisionTask,
  facts: SaleFacts,
  decision: SaleDecision,
  decidedAt: number,
): SaleRow {
  const attribution = attributionOf(facts)
  const receipt: SaleReceipt = { facts, decision }
  return {
    id,
    store_id: report.storeId,
    merchant_id: report.merchantId,
    order_id: report.order.order_id,
    order_name: report.order.order_name,
    acceptance_status: decision.acceptance_status,
    rejection_reason: decision.rejection_reason,
    ...namedBy(attribution),
    net_amount: decision.net_amount,
    commission_rate: decision.commission_rate,
    commission: decision.commission,
    platform_fee: decision.platform_fee,
    billing_cycle_id: null,
    ordered_at: report.order.created_at,
    created_at: former?.created_at ?? decidedAt,
    decided_at: former ? decidedAt : null,
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

/** Throws `WriteConflict` if another worker recorded one of the sales, so that the transaction is retried and finds it. */
async function writeSales(platform: Platform, tx: Tx, rows: readonly SaleRow[]): Promise<void> {
  const fresh = rows.filter((row) => row.decided_at === null)
  try {
    if (fresh.length > 0) await insertSales(tx, fresh)
    for (const row of rows) {
      if (row.decided_at === null || (await replaceDecision(tx, row))) continue
      throw new WriteConflict('one of the sales has been decided again')
    }
  } catch (error) {
    if (platform.database.faultOf(error)?.kind !== 'unique') throw error
    throw new WriteConflict('one of the orders has been recorded')
  }
}

/** Flags reports that differ from the report that their sale is based on. */
async function flagChanges(
  platform: Platform,
  tx: Tx,
  reports: readonly ReportedOrder[],
  batch: {
    keys: readonly string[]
    receipts: ReadonlyMap<string, string>
    decided: ReadonlyMap<number, DecidedOrder>
    saleOf(index: number): SaleRow
  },
): Promise<void> {
  const { keys, receipts, decided, saleOf } = batch
  if (receipts.size === 0 && new Set(keys).size === keys.length) return
  const coupons = await couponsOfOrders(
    tx,
    platform.keys,
    reports.map((report, index) => codedOrder(report, decided.has(index) ? [] : report.order.discount_codes)),
  )
  const compared = reports.map(({ order }, index) => ({
    key: keys[index] as string,
    order: decidedOrder(decided.get(index)?.row.receipt ?? '') ?? {
      ...saleOrderOf(order),
      coupons: coupons[index] ?? [],
    },
    references: clickIdsOf(order),
    decided: decided.has(index),
  }))
  const notes = changesInTurn(receipts, compared).flatMap((changed, index) => {
    if (changed.length === 0) return []
    const details = { changed, decided_again: decided.has(index) }
    return noteOf(reports[index] as ReportedOrder, saleOf(index).id, details)
  })
  await flagOrders(platform, tx, 'order_changed', notes)
}

async function flagDates(
  platform: Platform,
  tx: Tx,
  reports: readonly ReportedOrder[],
  decided: ReadonlyMap<number, DecidedOrder>,
): Promise<void> {
  const notes = [...decided].flatMap(([index, { row, suspicious }]) => {
    if (suspicious.length === 0) return []
    const report = reports[index] as ReportedOrder
    const { receivedAt, triggeredAt, order } = report
    return noteOf(report, row.id, {
      suspicious,
      created_at: wireTimeOf(order.created_at),
      received_at: wireTimeOf(receivedAt),
      triggered_at: wireTimeOf(triggeredAt),
    })
  })
  await flagOrders(platform, tx, 'order_date_suspicious', notes)
}

function datesOf(
  { config }: Platform,
  report: ReportedOrder,
  facts: SaleFacts,
  sale: SaleRow,
): SuspiciousDate[] {
  const { coupons = [] } = facts
  const codes = [couponInForce(facts) ?? coupons].flat()
  const receivedAt = report.receivedAt ?? sale.decided_at ?? sale.created_at
  const dates = {
    createdAt: facts.order.created_at,
    receivedAt,
    triggeredAt: report.triggeredAt ?? null,
    clickedAt: attributionOf(facts)?.click?.created_at ?? null,
    codeStartedAt: codes.length > 0 ? Math.max(...codes.map((code) => code.starts_at)) : null,
    firstReportedAt: Math.min(receivedAt, sale.created_at),
  }
  return suspiciousDates(dates, config.FLAG_ORDER_AGE_DAYS)
}

function wireTimeOf(time: number | null | undefined): string | null {
  return time === null || time === undefined ? null : isoTime(time)
}

function noteOf(report: ReportedOrder, saleId: string, details: Record<string, unknown>): OrderNote {
  return {
    storeId: report.storeId,
    merchantId: report.merchantId,
    order: { sale_id: saleId, order_id: report.order.order_id, event_id: report.eventId, ...details },
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

/** How many orders of a store were rejected since `since` (epoch ms), by reason. */
export async function rejectionsOf(
  { database }: Platform,
  store: { id: string; merchant_id: string },
  since: number,
): Promise<Record<string, number>> {
  const rows = await countRejections(database.reader, store, since)
  return Object.fromEntries(rows.map((row) => [row.rejection_reason ?? '', row.orders]))
}

/** The store's order id and name of a sale. */
export interface SaleName {
  orderId: string
  orderName: string | null
}

/** By sale id, for a few thousand ids at most. */
export async function saleNamesOf(db: Queries, saleIds: readonly string[]): Promise<Map<string, SaleName>> {
  const rows = await orderNamesBySale(db, [...new Set(saleIds)])
  return new Map(rows.map((row) => [row.id, { orderId: row.order_id, orderName: row.order_name }]))
}

/** Sales for an export, as their merchant or creator sees them; `all` as merchants do, with the merchant's id. */
export function scanSales(platform: Platform, scope: ScanScope): KeysetScan<Sale & { merchant_id?: string }> {
  const db = platform.database.reader
  const shape = (row: Awaited<ReturnType<typeof readSales>>[number]) => {
    if (scope === 'all') return { ...wireSale(row, 'merchant'), merchant_id: row.merchant_id }
    return wireSale(row, 'merchantId' in scope ? 'merchant' : 'creator')
  }
  return {
    count: (step) => countSales(db, scope, step),
    read: async (step) => pageItems(step, await readSales(db, scope, step), shape),
  }
}
