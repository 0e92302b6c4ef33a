import { DAY_MS } from '../../shared/durations.ts'
import type { PendingOrder } from '../../shared/schemas/pending-orders.ts'
import { flagForgedRows } from '../flags/forged-rows.service.ts'
import { ordersTakenBack } from '../inbox/events.service.ts'
import { subscriptionsOf } from '../notifications/channels/webhooks/endpoints.service.ts'
import { type NewEvent, publishEvents } from '../notifications/outbox.service.ts'
import { type Tx, WriteConflict } from '../platform/database/database.ts'
import { type KeysetScan, pageItems, type ScanScope } from '../platform/database/keyset-scan.ts'
import { changeRows, insertRows, splitRows, TamperedRow } from '../platform/database/protected-rows.ts'
import { createLoopYield } from '../platform/loop-yield.ts'
import type { Platform } from '../platform/platform.ts'
import { attributionOf, decideSale } from '../sales/accept-sale.rule.ts'
import { isGivenBack } from '../sales/order-change.rule.ts'
import { type OrderNames, searchOrder, withNames } from '../sales/sale-explanation.service.ts'
import { clickIdsOf, type SaleFacts } from '../sales/sale-facts.ts'
import {
  findOutcomes,
  flagGivenBack,
  loadFacts,
  type OrderKey,
  type ReportedOrder,
} from '../sales/sales.service.ts'
import type { OrderFacts } from '../shopify/order-facts.ts'
import type { PlacedTopic } from '../shopify/topics.ts'
import { storeIdsOf } from '../stores/stores.service.ts'
import {
  afterCancellation,
  afterReport,
  afterSale,
  type DecidedOrder,
  type PendingOrderFacts,
  type PendingTerms,
  type PlacedReport,
  versionOf,
  wasPaid,
} from './pending-order.rule.ts'
import { wirePendingOrder } from './pending-order-wire.ts'
import {
  countPendingOrders,
  duePage,
  type ListedPendingOrder,
  lockPendingOrders,
  type PendingOrderRow,
  pendingOrdersById,
  pendingOrdersOfOrder,
  readPendingOrders,
} from './pending-orders.store.ts'

export { findPendingOrders, type ListedPendingOrder } from './pending-orders.store.ts'

/** An order that a store reported as placed, changed or canceled, parsed and validated. */
export interface PlacedOrder {
  eventId: string
  storeId: string
  merchantId: string
  order: OrderFacts
  topic: PlacedTopic
  /** When the store triggered the event, epoch ms; from an unsigned header. */
  triggeredAt: number | null
  /** Of the event's body, hex. */
  bodyHash: string
}

/**
 * The outcome of a report: the pending order that it is about, or why there is none; `isTakenBack` if it is to be found when more is known of
 * the order.
 */
export type PlacedOutcome = { pendingOrderId: string } | { reason: string; isTakenBack: boolean }

/** An order of the batch: its pending order as it was stored, and as it is by now. */
interface Subject {
  id: string
  key: OrderKey & { merchant_id: string }
  stored: PendingOrderRow | null
  facts: PendingOrderFacts | null
}

/**
 * Applies what stores say of orders that wait for a payment, and the sales of `decided` orders to their pending orders, for the whole
 * batch in the caller's transaction, after its sales were written. An order that leads to no link costs no query. Moves no money; an
 * accepted sale whose order was taken back is flagged. Outcomes are in the order of `placed`.
 */
export async function recordPlacedOrders(
  platform: Platform,
  tx: Tx,
  placed: readonly PlacedOrder[],
  decided: readonly ReportedOrder[],
): Promise<PlacedOutcome[]> {
  const relevant = placed.filter(isRelevant)
  if (relevant.length + decided.length === 0) return placed.map(passedOver)
  const facts = relevant.length > 0 ? await loadFacts(platform, tx, relevant) : []
  const reports = new Map(relevant.map((one, index) => [one, reportOf(one, facts[index] as SaleFacts)]))
  const leading = relevant.filter((one) => isTakenBack(one) || reports.get(one)?.terms !== null)
  const rows = await lockPendingOrders(tx, [...leading, ...decided].map(keyOf))
  // A changed row keeps no sale from being decided; a report about it is refused.
  const { authentic, forged } = splitRows(platform.keys, 'pending_orders', rows)
  const refused = new Set(forged.map(({ id }) => id))
  const changed = new Map(rows.filter(({ id }) => refused.has(id)).map((row) => [textOf(row), row]))
  await flagForgedRows(platform, tx, 'pending_orders', forged)
  const subjects = new Map(authentic.map((row) => [textOf(row), subjectOf(row)]))
  const ids = new Map<PlacedOrder, string>()
  for (const one of leading) {
    const row = changed.get(textOf(keyOf(one)))
    if (row) throw new TamperedRow('pending_orders', row)
    const subject = subjects.get(textOf(keyOf(one))) ?? newSubject(platform, one)
    subject.facts = afterReport(subject.facts, reports.get(one) as PlacedReport)
    if (subject.facts === null) continue
    subjects.set(textOf(subject.key), subject)
    ids.set(one, subject.id)
  }
  await applyTakenBack(platform, tx, subjects, placed.filter(isTakenBack), decided)
  const all = [...subjects.values()]
  const sales = await salesOf(
    tx,
    all.map(({ key }) => key),
  )
  for (const subject of all) {
    const sale = sales.get(textOf(subject.key))
    if (sale && subject.facts) subject.facts = afterSale(subject.facts, sale)
  }
  await write(platform, tx, all)
  return placed.map((one) => {
    const pendingOrderId = ids.get(one)
    return pendingOrderId === undefined ? passedOver(one) : { pendingOrderId }
  })
}

/**
 * Cancels pending orders whose stores took them back, in this batch or before they were known, and flags the accepted sales of orders that
 * were taken back before or after their payment.
 */
async function applyTakenBack(
  platform: Platform,
  tx: Tx,
  subjects: ReadonlyMap<string, Subject>,
  takenBack: readonly PlacedOrder[],
  decided: readonly ReportedOrder[],
): Promise<void> {
  const fresh = [...subjects.values()].flatMap(({ stored, key }) => (stored === null ? key : []))
  const earlier = await ordersTakenBack(tx, [...fresh, ...decided.map(keyOf)])
  const keys = new Set([...earlier, ...takenBack.map(keyOf)].map(textOf))
  for (const [key, subject] of subjects)
    if (subject.facts && keys.has(key)) subject.facts = afterCancellation(subject.facts)
  const isTakenBackOrder = (one: ReportedOrder) => {
    const key = textOf(keyOf(one))
    return keys.has(key) || subjects.get(key)?.facts?.state === 'cancelled'
  }
  await flagGivenBack(platform, tx, [...takenBack, ...decided.filter(isTakenBackOrder)])
}

function keyOf({ storeId, merchantId, order }: Pick<PlacedOrder, 'storeId' | 'merchantId' | 'order'>) {
  return { store_id: storeId, merchant_id: merchantId, order_id: order.order_id }
}

function textOf({ store_id, order_id }: OrderKey): string {
  return `${store_id}\n${order_id}`
}

function subjectOf(row: PendingOrderRow): Subject {
  return { id: row.id, key: row, stored: row, facts: row }
}

function newSubject(platform: Platform, one: PlacedOrder): Subject {
  return { id: platform.ids.next(), key: keyOf(one), stored: null, facts: null }
}

function isTakenBack({ topic, order }: PlacedOrder): boolean {
  return topic === 'cancelled' || isGivenBack(order)
}

/** Whether a report can make or change a pending order: an unpaid order that names something, or one that was taken back. */
function isRelevant(one: PlacedOrder): boolean {
  const { order } = one
  if (isTakenBack(one)) return true
  return (
    !wasPaid(order.financial_status) && (order.discount_codes.length > 0 || clickIdsOf(order).some(Boolean))
  )
}

function passedOver(one: PlacedOrder): { reason: string; isTakenBack: boolean } {
  const { order } = one
  const why = wasPaid(order.financial_status)
    ? 'does not wait for a payment; orders/paid decides about it'
    : 'leads to no link of this merchant'
  return { reason: `order ${order.order_id} ${why}`, isTakenBack: isTakenBack(one) }
}

function reportOf(one: PlacedOrder, facts: SaleFacts): PlacedReport {
  const { order, topic, triggeredAt, bodyHash } = one
  const updatedAt = order.updated_at ?? order.created_at
  return {
    version: versionOf({ updatedAt, placement: topic === 'create', triggeredAt, bodyHash }),
    paid: wasPaid(order.financial_status),
    terms: termsOf(facts),
  }
}

/** What the order leads to, and what the rule of sales would pay for it once it is paid. */
function termsOf(facts: SaleFacts): PendingTerms | null {
  const attribution = attributionOf(facts)
  if (attribution === null) return null
  const { offer_id, creator_id, id: link_id } = attribution.link
  const asPaid = { ...facts, order: { ...facts.order, financial_status: 'paid', cancelled: false } }
  return {
    order_name: facts.order.order_name,
    placed_at: facts.order.created_at,
    offer_id,
    creator_id,
    link_id,
    coupon_code: attribution.code,
    expected_commission: decideSale(asPaid).commission,
  }
}

/** The sales of these orders. One that was rejected as unpaid may still be paid, and does not count. */
async function salesOf(tx: Tx, orders: readonly OrderKey[]): Promise<Map<string, DecidedOrder>> {
  const found = (await findOutcomes(tx, orders)).filter(({ rejection_reason: why }) => why !== 'not_paid')
  return new Map(
    found.map((sale) => {
      const { id, order_name, offer_id, creator_id, link_id, coupon_code, commission, ordered_at } = sale
      const isLinked = offer_id !== null && creator_id !== null && link_id !== null
      const named = { order_name: order_name ?? sale.order_id, placed_at: ordered_at, coupon_code }
      const terms = { ...named, expected_commission: commission }
      return [textOf(sale), { id, terms: isLinked ? { ...terms, offer_id, creator_id, link_id } : null }]
    }),
  )
}

async function write(platform: Platform, tx: Tx, subjects: readonly Subject[]): Promise<void> {
  const now = platform.clock.now()
  const fresh: PendingOrderRow[] = []
  const changed = new Map<string, Partial<PendingOrderRow>>()
  const moved: Subject[] = []
  for (const subject of subjects) {
    const { id, key, stored, facts } = subject
    if (facts === null) continue
    const isMoved = facts.state !== stored?.state
    if (isMoved) moved.push(subject)
    if (stored === null) {
      const { store_id, merchant_id, order_id } = key
      const times = { created_at: now, updated_at: now, state_at: now }
      fresh.push({ id, store_id, merchant_id, order_id, ...valuesOf(facts), ...times, row_digest: '' })
      continue
    }
    // Only what differs: SQLite writes the indexes of all columns that an update names.
    const different = Object.entries(valuesOf(facts)).filter(
      ([name, value]) => stored[name as keyof PendingOrderRow] !== value,
    )
    if (different.length === 0) continue
    changed.set(id, { ...Object.fromEntries(different), updated_at: now, ...(isMoved && { state_at: now }) })
  }
  try {
    await insertRows(tx, 'pending_orders', fresh)
  } catch (error) {
    if (platform.database.faultOf(error)?.kind !== 'unique') throw error
    throw new WriteConflict('one of the pending orders has been recorded')
  }
  const stored = subjects.flatMap((one) => (changed.has(one.id) && one.stored ? one.stored : []))
  if (stored.length > 0) await changeRows(tx, 'pending_orders', stored, (row) => changed.get(row.id) ?? {})
  await publish(platform, tx, moved)
}

function valuesOf({ state, sale_id, version, ...facts }: PendingOrderFacts) {
  const { order_name, placed_at, offer_id, creator_id, link_id, coupon_code, expected_commission } = facts
  return {
    state,
    sale_id,
    version,
    order_name,
    placed_at,
    offer_id,
    creator_id,
    link_id,
    coupon_code,
    expected_commission,
  }
}

const EVENT_OF = { pending: 'order.pending', cancelled: 'order.cancelled' } as const

/** Publishes new pending orders and cancellations to both sides, for the accounts with an endpoint that receives such events. */
async function publish(platform: Platform, tx: Tx, subjects: readonly Subject[]): Promise<void> {
  const moved = subjects.filter(({ facts }) => facts && facts.state in EVENT_OF)
  if (moved.length === 0) return
  const accounts = moved.flatMap(({ key, facts }) => [key.merchant_id, facts?.creator_id ?? ''])
  const subscribed = await subscriptionsOf(tx, accounts)
  if (subscribed.size === 0) return
  const rows = await pendingOrdersById(
    tx,
    moved.map(({ id }) => id),
  )
  const events = (await withNames(platform, rows, tx)).flatMap((row) => {
    const type = EVENT_OF[row.state as keyof typeof EVENT_OF]
    const parties = [['merchant', row.merchant_id] as const, ['creator', row.creator_id] as const]
    return parties.flatMap(([role, accountId]): NewEvent[] =>
      subscribed.get(accountId)?.has(type)
        ? [{ type, accountId, subjectId: row.id, data: wirePendingOrder(row, role) }]
        : [],
    )
  })
  await publishEvents(platform, tx, events)
}

/** Pending orders that expire in one transaction. */
const PAGE = 500

/** Ends the waiting of pending orders that are older than PENDING_ORDER_DAYS, page by page. Returns how many. */
export async function expirePendingOrders(platform: Platform): Promise<number> {
  const { clock, config, database } = platform
  const now = clock.now()
  const before = now - config.PENDING_ORDER_DAYS * DAY_MS
  const yieldLoop = createLoopYield()
  let expired = 0
  for (let after: PendingOrderRow | null = null; ; ) {
    const last: PendingOrderRow | null = after
    const page = await database.transaction(async (tx) => {
      const rows = await duePage(tx, before, last, PAGE)
      // A changed row keeps no other one waiting.
      const { authentic, forged } = splitRows(platform.keys, 'pending_orders', rows)
      await flagForgedRows(platform, tx, 'pending_orders', forged)
      const change = { state: 'expired', state_at: now, updated_at: now } as const
      await changeRows(tx, 'pending_orders', authentic, change)
      return { expired: authentic.length, last: rows.at(-1) ?? null }
    })
    expired += page.expired
    after = page.last
    if (after === null) return expired
    await yieldLoop()
  }
}

/** Pending orders for an export, as their merchant or creator sees them; `all` as merchants do, with the merchant's id. */
export function scanPendingOrders(
  platform: Platform,
  scope: ScanScope,
): KeysetScan<PendingOrder & { merchant_id?: string }> {
  const db = platform.database.reader
  const role = scope !== 'all' && 'creatorId' in scope ? 'creator' : 'merchant'
  return {
    count: (step) => countPendingOrders(db, scope, step),
    async read(step) {
      const rows = await withNames(platform, await readPendingOrders(db, scope, step), db)
      // As in lists, the period is that of the placement.
      const placed = rows.map((row) => ({ ...row, created_at: row.placed_at }))
      return pageItems(step, placed, (row) => ({
        ...wirePendingOrder(row, role),
        ...(scope === 'all' && { merchant_id: row.merchant_id }),
      }))
    },
  }
}

/** A pending order with its names, for an operator. */
export type ExplainedPendingOrder = ListedPendingOrder & OrderNames

/** The pending orders that `order` names: by order id or name, with or without its `#`. `store` (id or host name) narrows the search. */
export async function findPendingOrder(
  platform: Platform,
  order: string,
  store: string | null,
): Promise<ExplainedPendingOrder[]> {
  const db = platform.database.reader
  const storeIds = await storeIdsOf(db, store)
  return withNames(platform, await searchOrder(order, (by) => pendingOrdersOfOrder(db, by, storeIds)))
}
