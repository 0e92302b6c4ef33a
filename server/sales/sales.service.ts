import type { Sale } from '../../shared/schemas/sales.ts'
import type { OrderSource } from '../../shared/schemas/stores.ts'
import { addSalesToCycles, type SaleToBill } from '../billing/billing.service.ts'
import { linksOfClicks } from '../clicks/clicks.service.ts'
import { flagOrders, type OrderNote } from '../flags/order-flags.service.ts'
import { saleAccepted } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { type CodedOrder, couponsOfOrders } from '../links/coupons.service.ts'
import { isoTime } from '../platform/clock.ts'
import { afterCommit, type Queries, type Tx, WriteConflict } from '../platform/database/database.ts'
import { type KeysetScan, pageItems, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import type { OrderFacts, OrderLine } from '../shopify/order-facts.ts'
import { siblingStores } from '../stores/stores.service.ts'
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
  readReceipt,
  type SaleReceipt,
} from './accept-sale.rule.ts'
import { changesInTurn } from './order-change.rule.ts'
import { type SuspiciousDate, suspiciousDates } from './order-dates.rule.ts'
import { notifyFirstSales, publishSales } from './sale-events.service.ts'
import {
  clickIdsOf,
  hasBuyerName,
  isBuyer,
  isUnknownProduct,
  type SaleClick,
  type SaleFacts,
  saleOrderOf,
  withKnownProducts,
} from './sale-facts.ts'
import { wireSale } from './sale-wire.ts'
import {
  countSales,
  type ExportedSale,
  findOutcomes,
  findRecorded,
  insertSales,
  type OrderKey,
  readSales,
  replaceDecision,
  type SaleRow,
} from './sales.store.ts'

export {
  findOutcomes,
  findSale,
  findSales,
  hasAcceptedSale,
  linkEarnings,
  type OrderKey,
  rejectionsOf,
  type SaleName,
  type SaleWithSlug,
  saleNamesOf,
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
  /** The lines of an earlier report, which may name products that the shop has deleted since. */
  earlier?: readonly OrderLine[]
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

/** A report while it is worked on. */
interface Report extends ReportedOrder {
  /** Identifies store and order. */
  key: string
  /** What was decided because of it; `null` if the order was known and nothing changed. */
  decision: Decision | null
}

interface Decision {
  sale: SaleRow
  /** The sale as it was decided first; `null` for a new one. */
  former: SaleRow | null
  facts: SaleFacts
}

/**
 * Turns reported orders into sales: loads all facts, decides each sale, then writes sales, cycle totals and journal entries for the
 * whole batch in the caller's transaction. Each order is one sale, however often it is reported, also when the shop has another name by
 * then: Shopify's order ids are unique over all shops. A sale rejected as `not_paid` is decided again, once, when its order is reported
 * as paid. Results are in the order of `reported`.
 */
export async function recordOrders(
  platform: Platform,
  tx: Tx,
  reported: readonly ReportedOrder[],
): Promise<RecordedSale[]> {
  const reports = reported.map((report): Report => {
    return { ...report, key: orderKey(report), decision: null }
  })
  const siblings = await siblingStores(tx, [...new Set(reports.map(({ storeId }) => storeId))])
  const recorded = await findRecorded(
    tx,
    reports.flatMap((report) => orderKeys(report, siblings)),
  )
  const sales = new Map(recorded.map((row) => [keyOfSale(row), row]))
  const receipts = new Map(recorded.map((row) => [keyOfSale(row), row.receipt]))
  // One round for most batches; another one if a batch has several reports of one order.
  for (;;) {
    const next = nextToDecide(reports, sales)
    if (next.length === 0) break
    await decideOrders(platform, tx, next, sales, siblings)
  }
  await flagChanges(platform, tx, reports, receipts, sales)
  await flagDates(platform, tx, reports)
  await flagUnclear(platform, tx, reports)
  return reports.map(({ key, decision }) => {
    const { id, acceptance_status } = sales.get(key) as SaleRow
    return {
      saleId: id,
      acceptanceStatus: acceptance_status,
      known: decision === null,
      decidedAgain: decision !== null && decision.former !== null,
      source: decision && !decision.former && !decision.facts.order.test ? orderSource(decision.facts) : null,
    }
  })
}

/** Where the sale of an order may be: at its store, or at another one of the same merchant, under which the shop was connected before. */
function orderKeys({ storeId, order }: ReportedOrder, siblings: ReadonlyMap<string, string[]>): OrderKey[] {
  return [storeId, ...(siblings.get(storeId) ?? [])].map((store_id) => ({
    store_id,
    order_id: order.order_id,
  }))
}

function orderKey({ merchantId, order }: Pick<ReportedOrder, 'merchantId' | 'order'>): string {
  return `${merchantId}\n${order.order_id}`
}

function keyOfSale({ merchant_id, order_id }: Pick<SaleRow, 'merchant_id' | 'order_id'>): string {
  return `${merchant_id}\n${order_id}`
}

/** For each order the first report that creates its sale or decides it again. */
function nextToDecide(reports: readonly Report[], sales: ReadonlyMap<string, SaleRow>): Report[] {
  const next = new Map<string, Report>()
  for (const report of reports) {
    if (report.decision || next.has(report.key)) continue
    const sale = sales.get(report.key)
    if (!sale || isDecidedAgain(sale, report.order)) next.set(report.key, report)
  }
  return [...next.values()]
}

function isDecidedAgain(sale: SaleRow, order: OrderFacts): boolean {
  return sale.rejection_reason === 'not_paid' && sale.decided_at === null && isPaid(order)
}

/** Decides and writes one sale per report, and sets it in the report and in `sales`. No two reports may have the same order. */
async function decideOrders(
  platform: Platform,
  tx: Tx,
  reports: readonly Report[],
  sales: Map<string, SaleRow>,
  siblings: ReadonlyMap<string, string[]>,
): Promise<void> {
  // One time for the whole batch, so that no sale is dated after the end of its cycle. If the clock was set back, it is still not
  // before the event or the former decision.
  const decidedAt = Math.max(
    platform.clock.now(),
    ...reports.map(({ key, receivedAt = 0 }) => Math.max(receivedAt, sales.get(key)?.created_at ?? 0)),
  )
  const facts = await loadFacts(
    platform,
    tx,
    reports.map((report) => ({ ...report, earlier: earlierLines(report, sales.get(report.key)) })),
  )
  const decisions = reports.map((report, index): Decision => {
    const former = sales.get(report.key) ?? null
    const saleFacts = facts[index] as SaleFacts
    const id = former?.id ?? platform.ids.next()
    report.decision = { sale: saleRow(id, report, former, saleFacts, decidedAt), former, facts: saleFacts }
    return report.decision
  })
  const rows = decisions.map(({ sale }) => sale)
  const accepted = rows.flatMap((row) => billedSale(row) ?? [])
  const cycles = await addSalesToCycles(platform, tx, accepted, decidedAt)
  for (const row of rows)
    if (row.acceptance_status === 'accepted') row.billing_cycle_id = cycles.get(row.merchant_id) ?? null
  await refuseRecordedElsewhere(tx, reports, siblings)
  await notifyFirstSales(platform, tx, rows)
  await writeSales(platform, tx, rows)
  await writeEntries(platform, tx, accepted.map(saleAccepted), decidedAt)
  await publishSales(platform, tx, decisions.map(withSlug))
  notifyParties(platform, tx, [...rows, ...decisions.flatMap(({ former }) => former ?? [])])
  for (const report of reports) if (report.decision) sales.set(report.key, report.decision.sale)
}

function earlierLines({ earlier = [] }: Report, former: SaleRow | undefined): readonly OrderLine[] {
  return [...(readReceipt(former?.receipt ?? '')?.facts.order.lines ?? []), ...earlier]
}

/**
 * Throws `WriteConflict` if meanwhile another worker recorded one of these orders for another store of its merchant, whose cycle is locked
 * by now. No constraint spans two stores.
 */
async function refuseRecordedElsewhere(
  tx: Tx,
  reports: readonly Report[],
  siblings: ReadonlyMap<string, string[]>,
): Promise<void> {
  if (siblings.size === 0) return
  const fresh = reports.filter(({ decision }) => decision?.former === null)
  const elsewhere = fresh.flatMap((report) => orderKeys(report, siblings).slice(1))
  if ((await findRecorded(tx, elsewhere)).length > 0)
    throw new WriteConflict('one of the orders has been recorded under another name of its shop')
}

function withSlug({ sale, facts }: Decision) {
  return { ...sale, slug: sale.link_id === null ? null : (attributionOf(facts)?.link.slug ?? null) }
}

function notifyParties(platform: Platform, tx: Tx, rows: readonly SaleRow[]): void {
  const parties = new Set(rows.flatMap(({ merchant_id, creator_id }) => [merchant_id, creator_id]))
  afterCommit(tx, () => {
    for (const party of parties) if (party !== null) platform.topics.send(userTopic(party))
  })
}

/**
 * The index of the reference that counts: the newest usable click in the first place that has one; else the first click of the merchant;
 * else the first reference.
 */
function indexOfClick(
  { merchantId, order }: Pick<ReportedOrder, 'merchantId' | 'order'>,
  clicks: ReadonlyMap<string, SaleClick>,
): number {
  const found = clickIdsOf(order).map((id) => clicks.get(id ?? ''))
  const to = { merchantId, createdAt: order.created_at }
  const isUsable = (click: SaleClick | undefined) => click !== undefined && isUsableClick(click, to)
  const first = found.findIndex(isUsable)
  if (first === -1)
    return Math.max(
      0,
      found.findIndex((click) => click?.link.merchant_id === merchantId),
    )
  const times = found.map((click, index) =>
    order.references[index]?.source === order.references[first]?.source && isUsable(click)
      ? (click?.created_at ?? 0)
      : 0,
  )
  return times.indexOf(Math.max(...times))
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
  reports: readonly Pick<ReportedOrder, 'merchantId' | 'order' | 'earlier'>[],
): Promise<SaleFacts[]> {
  const clickIds = reports.flatMap(({ order }) => clickIdsOf(order).filter((id) => id !== null))
  const linked = await linksOfClicks(db, platform.keys, clickIds)
  const clicks = new Map([...linked].map(([id, { click, link }]) => [id, { ...click, link }]))
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
    const lines = withKnownProducts(report.order.lines, report.earlier ?? [])
    const order = saleOrderOf({ ...report.order, lines }, indexOfClick(report, clicks))
    const click = clicks.get(order.tracking_reference ?? '') ?? null
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
      click,
      ...(codes.length > 0 && { coupons: codes }),
      ...aboutCreator(click?.link),
      merchant_suspended: isSuspended(report.merchantId),
      platform_fee_rate: platform.config.PLATFORM_FEE_RATE,
    }
  })
}

/** The row of a decided sale, without its billing cycle. A click or code that earns nothing is only on the receipt. */
function saleRow(
  id: string,
  { storeId, merchantId, eventId }: Report,
  former: SaleRow | null,
  facts: SaleFacts,
  decidedAt: number,
): SaleRow {
  const decision = decideSale(facts)
  const receipt: SaleReceipt = { facts, decision }
  return {
    id,
    store_id: former?.store_id ?? storeId,
    merchant_id: merchantId,
    order_id: facts.order.order_id,
    order_name: facts.order.order_name,
    acceptance_status: decision.acceptance_status,
    rejection_reason: decision.rejection_reason,
    ...namedBy(attributionOf(facts)),
    net_amount: decision.net_amount,
    commission_rate: decision.commission_rate,
    commission: decision.commission,
    platform_fee: decision.platform_fee,
    billing_cycle_id: null,
    ordered_at: facts.order.created_at,
    created_at: former?.created_at ?? decidedAt,
    decided_at: former ? decidedAt : null,
    event_id: eventId,
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

/** Flags reports that differ from the report that their sale is based on. `receipts`: of the sales before the batch, by key. */
async function flagChanges(
  platform: Platform,
  tx: Tx,
  reports: readonly Report[],
  receipts: ReadonlyMap<string, string>,
  sales: ReadonlyMap<string, SaleRow>,
): Promise<void> {
  if (receipts.size === 0 && new Set(reports.map(({ key }) => key)).size === reports.length) return
  const coupons = await couponsOfOrders(
    tx,
    platform.keys,
    reports.map((report) => codedOrder(report, report.decision ? [] : report.order.discount_codes)),
  )
  const compared = reports.map((report, index) => {
    const { key, order, decision } = report
    // A product that was deleted before its order was decided is no change.
    const lines = order.lines.some(isUnknownProduct)
      ? withKnownProducts(order.lines, earlierLines(report, sales.get(key)))
      : order.lines
    return {
      key,
      order: decision
        ? { ...decision.facts.order, coupons: decision.facts.coupons ?? [] }
        : { ...saleOrderOf({ ...order, lines }), coupons: coupons[index] ?? [] },
      references: clickIdsOf(order),
      decided: decision !== null,
    }
  })
  const notes = changesInTurn(receipts, compared).flatMap((parts, index) => {
    const report = reports[index] as Report
    const sale = sales.get(report.key)
    const changed = parts.filter((part) => part !== 'refunded' || sale?.acceptance_status === 'accepted')
    if (changed.length === 0) return []
    return noteOf(report, sale?.id ?? '', { changed, decided_again: report.decision !== null })
  })
  await flagOrders(platform, tx, 'order_changed', notes)
}

/** Flags the accepted sales of orders that their stores report as refunded or canceled: each once, as long as the flag is open. */
export async function flagGivenBack(
  platform: Platform,
  tx: Tx,
  reports: readonly ReportedOrder[],
): Promise<void> {
  if (reports.length === 0) return
  const siblings = await siblingStores(tx, [...new Set(reports.map(({ storeId }) => storeId))])
  const found = await findOutcomes(
    tx,
    reports.flatMap((report) => orderKeys(report, siblings)),
  )
  const accepted = found.filter(({ acceptance_status }) => acceptance_status === 'accepted')
  const saleIds = new Map(accepted.map((sale) => [keyOfSale(sale), sale.id]))
  const notes = [...new Map(reports.map((report) => [orderKey(report), report]))].flatMap(([key, report]) => {
    const saleId = saleIds.get(key)
    return saleId === undefined ? [] : noteOf(report, saleId, { changed: ['refunded'], decided_again: false })
  })
  await flagOrders(platform, tx, 'order_changed', notes, { once: true })
}

async function flagDates(platform: Platform, tx: Tx, reports: readonly Report[]): Promise<void> {
  const notes = reports.flatMap((report) => {
    const { decision, receivedAt, triggeredAt, order } = report
    const suspicious = decision ? datesOf(platform, report, decision) : []
    if (!decision || suspicious.length === 0) return []
    return noteOf(report, decision.sale.id, {
      suspicious,
      created_at: isoTime(order.created_at),
      received_at: isoTime(receivedAt ?? null),
      triggered_at: isoTime(triggeredAt ?? null),
    })
  })
  await flagOrders(platform, tx, 'order_date_suspicious', notes)
}

function datesOf({ config }: Platform, report: Report, { sale, facts }: Decision): SuspiciousDate[] {
  const codes = [couponInForce(facts) ?? facts.coupons ?? []].flat()
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

/** Flags orders that led to a link and whose body does not tell what they earn. */
async function flagUnclear(platform: Platform, tx: Tx, reports: readonly Report[]): Promise<void> {
  const notes = reports.flatMap((report) => {
    const { decision } = report
    if (!decision || decision.sale.link_id === null) return []
    const { id, rejection_reason, acceptance_status } = decision.sale
    const isAccepted = acceptance_status === 'accepted'
    const isPaidFor = isAccepted || rejection_reason === 'nothing_payable'
    const mayBeOfOffer = isPaidFor && hasUnknownProduct(decision.facts)
    const unclear = [
      ...(rejection_reason === 'product_unknown' || mayBeOfOffer ? ['product'] : []),
      ...(isAccepted ? (decision.facts.order.unclear ?? []) : []),
    ]
    return unclear.length === 0 ? [] : noteOf(report, id, { unclear })
  })
  await flagOrders(platform, tx, 'order_unclear', notes)
}

/** Whether a line that counts for nothing may be of the products that the link's terms name. */
function hasUnknownProduct(facts: SaleFacts): boolean {
  const named = attributionOf(facts)?.link.product_ids ?? []
  return named.length > 0 && facts.order.lines.some((line) => line.quantity > 0 && isUnknownProduct(line))
}

function noteOf(report: ReportedOrder, saleId: string, details: Record<string, unknown>): OrderNote {
  return {
    storeId: report.storeId,
    merchantId: report.merchantId,
    order: { sale_id: saleId, order_id: report.order.order_id, event_id: report.eventId, ...details },
  }
}

/**
 * Sales for an export, as their merchant or creator sees them; `all` as merchants do, with the merchant's id. Only those of a billing cycle
 * unless that is `null`.
 */
export function scanSales(
  platform: Platform,
  scope: ScanScope,
  cycleId: string | null = null,
): KeysetScan<Sale & { merchant_id?: string }> {
  const db = platform.database.reader
  const shape = (row: ExportedSale) => {
    if (scope === 'all')
      return { ...wireSale(row, 'merchant'), merchant_id: row.merchant_id, sub_id: row.sub_id }
    return wireSale(row, 'merchantId' in scope ? 'merchant' : 'creator')
  }
  return {
    count: (step) => countSales(db, scope, cycleId, step),
    read: async (step) => pageItems(step, await readSales(db, scope, cycleId, step), shape),
  }
}
