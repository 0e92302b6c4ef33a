import type { Paisa } from '../../shared/money.ts'
import { setAsideReasons } from '../inbox/set-aside.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import type { Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { ExportedOrder } from '../shopify/order-export.ts'
import { claimsOf } from '../stores/stores.service.ts'
import { readReceipt } from './accept-sale.rule.ts'
import { type ComparedSale, compareOrder, otherSubtotal } from './order-comparison.rule.ts'
import { type ComparedSaleRow, findCompared, findComparedByName } from './sales.store.ts'

const BATCH = 1000

export interface ListedOrder {
  orderId: string | null
  orderName: string
  /** Epoch ms. */
  paidAt: number | null
  subtotal: Paisa | null
  currency: string
}

/** Counts of everything; the lists hold at most `limit` orders each. */
export interface OrderComparison {
  orders: number
  notPaid: number
  beforeConnection: number
  accepted: number
  neverReported: { count: number; items: (ListedOrder & { setAside: string | null })[] }
  rejected: {
    count: number
    reasons: Record<string, number>
    items: (ListedOrder & { reason: string; saleId: string })[]
  }
  otherAmounts: { count: number; items: (ListedOrder & { reported: Paisa; saleId: string })[] }
}

export interface CompareOptions {
  /** A shop domain or a store's id. */
  store: string
  limit: number
  /** Lists rejected orders of every reason; otherwise those without a tracking reference, most orders of a shop, are only counted. */
  all: boolean
  progress(orders: number): void
}

/**
 * Compares the orders of a store's own export with the sales, and changes nothing. Needs the same memory for any number of orders.
 * Refuses with `not_found`.
 */
export async function compareOrders(
  { database }: Platform,
  exported: AsyncIterable<ExportedOrder>,
  options: CompareOptions,
): Promise<OrderComparison> {
  const db = database.reader
  const claims = await claimsOf(db, options.store)
  if (claims.length === 0) throw new Refusal('not_found', `Store ${options.store} not found.`)
  const storeIds = claims.map(({ id }) => id)
  const connectedAt = Math.min(...claims.map(({ created_at }) => created_at))
  const comparison: OrderComparison = {
    orders: 0,
    notPaid: 0,
    beforeConnection: 0,
    accepted: 0,
    neverReported: { count: 0, items: [] },
    rejected: { count: 0, reasons: {}, items: [] },
    otherAmounts: { count: 0, items: [] },
  }
  for await (const orders of inBatches(exported, BATCH)) {
    const sales = await salesOfOrders(db, storeIds, orders)
    await addBatch(db, comparison, { orders, sales, storeIds, connectedAt, ...options })
    options.progress(comparison.orders)
  }
  return comparison
}

async function* inBatches<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let batch: T[] = []
  for await (const item of items) {
    batch.push(item)
    if (batch.length < size) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/** By order id; for orders without one, by name. */
async function salesOfOrders(
  db: Queries,
  storeIds: readonly string[],
  orders: readonly ExportedOrder[],
): Promise<Map<string, ComparedSaleRow>> {
  const keys = orders.flatMap(({ id }) =>
    id === null ? [] : storeIds.map((store_id) => ({ store_id, order_id: id })),
  )
  const names = orders.flatMap(({ id, name }) => (id === null ? name : []))
  return new Map([
    ...(await findComparedByName(db, storeIds, names)).map((sale) => [sale.order_name ?? '', sale] as const),
    ...(await findCompared(db, keys)).map((sale) => [sale.order_id, sale] as const),
  ])
}

interface Batch extends Pick<CompareOptions, 'limit' | 'all'> {
  orders: readonly ExportedOrder[]
  sales: ReadonlyMap<string, ComparedSaleRow>
  storeIds: readonly string[]
  connectedAt: number
}

async function addBatch(db: Queries, to: OrderComparison, batch: Batch): Promise<void> {
  const { sales, limit, all } = batch
  const missing: ListedOrder[] = []
  for (const exported of batch.orders) {
    to.orders += 1
    const row = sales.get(exported.id ?? exported.name) ?? null
    const sale = row && comparedSale(row)
    const found = compareOrder(exported, sale, batch.connectedAt)
    const listed = listedOrder(exported)
    if (found.kind === 'not_due') to[found.why === 'not_paid' ? 'notPaid' : 'beforeConnection'] += 1
    if (found.kind === 'accepted') to.accepted += 1
    if (found.kind === 'never_reported') missing.push(listed)
    if (found.kind === 'rejected') {
      const { rejected } = to
      const { reason } = found
      rejected.count += 1
      rejected.reasons[reason] = (rejected.reasons[reason] ?? 0) + 1
      if ((all || reason !== 'no_tracking_reference') && rejected.items.length < limit)
        rejected.items.push({ ...listed, reason, saleId: row?.id ?? '' })
    }
    const reported = found.kind === 'accepted' && sale ? otherSubtotal(exported, sale) : null
    if (reported === null) continue
    to.otherAmounts.count += 1
    if (to.otherAmounts.items.length < limit)
      to.otherAmounts.items.push({ ...listed, reported, saleId: row?.id ?? '' })
  }
  to.neverReported.count += missing.length
  const room = missing.slice(0, limit - to.neverReported.items.length)
  const ids = room.flatMap(({ orderId }) => orderId ?? [])
  const reasons = await setAsideReasons(db, batch.storeIds, ids)
  to.neverReported.items.push(
    ...room.map((order) => ({ ...order, setAside: reasons.get(order.orderId ?? '') ?? null })),
  )
}

function comparedSale(row: ComparedSaleRow): ComparedSale {
  return {
    rejection_reason: row.rejection_reason,
    order: readReceipt(row.receipt ?? '')?.facts.order ?? null,
  }
}

function listedOrder({ id, name, paid_at, subtotal, currency }: ExportedOrder): ListedOrder {
  return {
    orderId: id,
    orderName: name.slice(0, 100),
    paidAt: paid_at,
    subtotal,
    currency: currency.slice(0, 3),
  }
}
