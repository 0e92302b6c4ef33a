import { addSalesToCycles, type SaleToBill } from '../billing/billing.service.ts'
import { linksOfClicks } from '../clicks/clicks.service.ts'
import { saleAccepted } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { flagOrders, type OrderNote } from '../moderation/order-flags.service.ts'
import { toWireTime } from '../platform/clock.ts'
import { afterCommit, LostRace, type Queries, type Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import { newsOf } from '../platform/signals.ts'
import type { OrderFacts } from '../shopify/order-facts.ts'
import { accountTitlesOf } from '../users/payout-destinations.service.ts'
import { standingOf } from '../users/users.service.ts'
import { decideSale, isPaid, type SaleDecision } from './accept-sale.rule.ts'
import { changesInTurn } from './order-change.rule.ts'
import { type SuspiciousDate, suspiciousDates } from './order-dates.rule.ts'
import { hasBuyerName, isBuyer, type SaleFacts, saleOrderOf } from './sale-facts.ts'
import {
  type FormerDecision,
  findRecorded,
  findSale,
  findSales,
  formerDecisions,
  insertSales,
  type OrderKey,
  replaceDecision,
  type SaleFilter,
  type SaleRow,
  type SaleScope,
  type SaleWithSlug,
} from './sales.store.ts'

export type { FormerDecision, SaleFilter, SaleRow, SaleScope, SaleWithSlug } from './sales.store.ts'

/** An order that a store reported, read and checked. */
export interface ReportedOrder {
  eventId: string
  storeId: string
  merchantId: string
  order: OrderFacts
  /** When its event came in, epoch ms. */
  receivedAt?: number
  /** When the store says that the event was triggered, epoch ms; unsigned. */
  triggeredAt?: number | null
}

/**
 * The outcome of a reported order. `known`: it had been recorded before, and nothing changed. `decidedAgain`: it had been recorded
 * as unpaid.
 */
export interface RecordedSale {
  saleId: string
  acceptanceStatus: 'accepted' | 'rejected'
  known: boolean
  decidedAgain: boolean
}

/** What is kept of a decision for ever: enough to take it again, nothing about the buyer. */
export interface SaleReceipt {
  facts: SaleFacts
  decision: SaleDecision
}

/**
 * Turns reported orders into sales: all facts first, each decision by the rule, then rows, cycle totals and journal, set-wise and in
 * the caller's transaction. An order of a store is one sale, however often it is reported. A sale rejected as `not_paid` is decided
 * again, once, when its order is reported as paid. Answers in the order of `reports`.
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
  for (;;) {
    const places = placesToDecide(reports, keys, current, decided)
    if (places.length === 0) break
    const tasks = places.map((place) => ({
      report: reports[place] as ReportedOrder,
      former: current.get(keys[place] as string) ?? null,
    }))
    for (const [index, order] of (await decideOrders(platform, tx, tasks)).entries()) {
      const place = places[index] as number
      decided.set(place, order)
      current.set(keys[place] as string, order.row)
    }
  }
  const saleOf = (place: number) => current.get(keys[place] as string) as SaleRow
  await flagChanges(platform, tx, reports, { keys, receipts, decided, saleOf })
  await flagDates(platform, tx, reports, decided)
  return reports.map((_report, place) => {
    const sale = saleOf(place)
    return {
      saleId: sale.id,
      acceptanceStatus: sale.acceptance_status,
      known: !decided.has(place),
      decidedAgain: decided.get(place)?.again ?? false,
    }
  })
}

async function flagChanges(
  platform: Platform,
  tx: Tx,
  reports: readonly ReportedOrder[],
  batch: {
    keys: readonly string[]
    receipts: ReadonlyMap<string, string>
    decided: ReadonlyMap<number, DecidedOrder>
    saleOf(place: number): SaleRow
  },
): Promise<void> {
  const { keys, receipts, decided, saleOf } = batch
  if (receipts.size === 0 && new Set(keys).size === keys.length) return
  const judged = reports.map(({ order }, place) => ({
    key: keys[place] as string,
    order: saleOrderOf(order),
    decided: decided.has(place),
  }))
  const notes = changesInTurn(receipts, judged).flatMap((changed, place) => {
    if (changed.length === 0) return []
    const details = { changed, decided_again: decided.has(place) }
    return noteOf(reports[place] as ReportedOrder, saleOf(place).id, details)
  })
  await flagOrders(platform, tx, 'order_changed', notes)
}

async function flagDates(
  platform: Platform,
  tx: Tx,
  reports: readonly ReportedOrder[],
  decided: ReadonlyMap<number, DecidedOrder>,
): Promise<void> {
  const notes = [...decided].flatMap(([place, { row, suspicious }]) => {
    if (suspicious.length === 0) return []
    const report = reports[place] as ReportedOrder
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

function wireTimeOf(moment: number | null | undefined): string | null {
  return moment === null || moment === undefined ? null : toWireTime(moment)
}

function noteOf(report: ReportedOrder, saleId: string, details: Record<string, unknown>): OrderNote {
  return {
    storeId: report.storeId,
    merchantId: report.merchantId,
    order: { sale_id: saleId, order_id: report.order.order_id, event_id: report.eventId, ...details },
  }
}

function orderOf(report: ReportedOrder): OrderKey {
  return { store_id: report.storeId, order_id: report.order.order_id }
}

function orderKey(order: OrderKey): string {
  return `${order.store_id}\n${order.order_id}`
}

/** Of each order the first report that makes a sale, or that decides its sale again. */
function placesToDecide(
  reports: readonly ReportedOrder[],
  keys: readonly string[],
  current: ReadonlyMap<string, SaleRow>,
  decided: ReadonlyMap<number, unknown>,
): number[] {
  const places = new Map<string, number>()
  for (const [place, { order }] of reports.entries()) {
    const key = keys[place] as string
    if (decided.has(place) || places.has(key)) continue
    const row = current.get(key)
    if (!row || isDecidedAgain(row, order)) places.set(key, place)
  }
  return [...places.values()]
}

function isDecidedAgain(sale: SaleRow, order: OrderFacts): boolean {
  return sale.rejection_reason === 'not_paid' && sale.decided_at === null && isPaid(order)
}

interface DecisionTask {
  report: ReportedOrder
  /** The sale that is decided again. */
  former: SaleRow | null
}

interface DecidedOrder {
  row: SaleRow
  /** Whether it is the second decision of its sale. */
  again: boolean
  suspicious: SuspiciousDate[]
}

/** In the order of `tasks`, which name no order twice. */
async function decideOrders(
  platform: Platform,
  tx: Tx,
  tasks: readonly DecisionTask[],
): Promise<DecidedOrder[]> {
  // One moment for the whole batch: a sale must not be dated past the end of the cycle that was chosen for it.
  // Never before its event or its former decision, either: the clock may have been put back since.
  const decidedAt = Math.max(
    platform.clock.now(),
    ...tasks.map(({ report, former }) => Math.max(report.receivedAt ?? 0, former?.created_at ?? 0)),
  )
  const facts = await loadFacts(
    platform,
    tx,
    tasks.map(({ report }) => report),
  )
  const rows = tasks.map((task, index) =>
    rowOf(task.former?.id ?? platform.ids.next(), task, facts[index] as SaleFacts, decidedAt),
  )
  const accepted = rows.flatMap((row) => billedSale(row) ?? [])
  const cycles = await addSalesToCycles(platform, tx, accepted, decidedAt)
  for (const row of rows)
    if (row.acceptance_status === 'accepted') row.billing_cycle_id = cycles.get(row.merchant_id) ?? null
  await writeSales(platform, tx, rows)
  const parties = new Set<string>()
  for (const row of rows) {
    parties.add(row.merchant_id)
    if (row.creator_id !== null) parties.add(row.creator_id)
  }
  for (const { former } of tasks) if (former?.creator_id) parties.add(former.creator_id)
  afterCommit(tx, () => {
    for (const party of parties) platform.signals.send(newsOf(party))
  })
  await writeEntries(platform, tx, accepted.map(saleAccepted), decidedAt)
  return rows.map((row, index) => ({
    row,
    again: tasks[index]?.former !== null,
    suspicious: datesOf(platform, tasks[index] as DecisionTask, facts[index] as SaleFacts, decidedAt),
  }))
}

function datesOf(
  { config }: Platform,
  { report }: DecisionTask,
  { click, order }: SaleFacts,
  decidedAt: number,
): SuspiciousDate[] {
  const own = click?.link.merchant_id === report.merchantId ? click : null
  const dates = {
    createdAt: order.created_at,
    receivedAt: report.receivedAt ?? decidedAt,
    triggeredAt: report.triggeredAt ?? null,
    clickedAt: own?.created_at ?? null,
  }
  return suspiciousDates(dates, config.FLAG_ORDER_AGE_DAYS)
}

/** A worker that lost its lease may be a moment behind its successor: run again, it finds the sale and then the loss. */
async function writeSales(platform: Platform, tx: Tx, rows: readonly SaleRow[]): Promise<void> {
  const fresh = rows.filter((row) => row.decided_at === null)
  try {
    if (fresh.length > 0) await insertSales(tx, fresh)
    for (const row of rows) {
      if (row.decided_at === null || (await replaceDecision(tx, row))) continue
      throw new LostRace('one of the sales has been decided again')
    }
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
  const named = reports.some((report) => report.order.buyer_names.length > 0)
  const titles = await accountTitlesOf(db, named ? creatorIds : [])
  return reports.map((report, index) => {
    const order = orders[index] as SaleFacts['order']
    const found = clicks.get(order.tracking_reference ?? '') ?? null
    const creatorId = found?.link.creator_id
    return {
      order,
      buyer_is_creator: creatorId !== undefined && isBuyer(report.order, emails.get(creatorId) ?? null),
      buyer_name_matches: creatorId !== undefined && hasBuyerName(report.order, titles.get(creatorId) ?? []),
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
function rowOf(
  saleId: string,
  { report, former }: DecisionTask,
  facts: SaleFacts,
  decidedAt: number,
): SaleRow {
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
    created_at: former?.created_at ?? decidedAt,
    decided_at: former ? decidedAt : null,
    event_id: report.eventId,
    receipt: JSON.stringify(receipt),
    buyer_name_matches: click && facts.buyer_name_matches ? 1 : 0,
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

/** The former decisions of a sale, oldest first: at most one, of an order that was reported unpaid first. */
export async function formerDecisionsOf(db: Queries, sale: SaleRow): Promise<FormerDecision[]> {
  if (sale.decided_at === null) return []
  const former = (await formerDecisions(db, [sale.id])).get(sale.id)
  return former ? [former] : []
}
