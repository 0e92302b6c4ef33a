import type { Paisa } from '../../shared/money.ts'
import { setAsideReasons } from '../inbox/set-aside.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { inBatches } from '../platform/database/batches.ts'
import type { Queries } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import type { ExportedOrder } from '../shopify/order-export.ts'
import { claimsOf } from '../stores/stores.service.ts'
import { readReceipt } from './accept-sale.rule.ts'
import { compareOrder, otherSubtotal } from './order-comparison.rule.ts'
import { findRecorded, findRecordedByName, type SaleRow } from './sales.store.ts'

const BATCH = 1000

export interface ListedOrder {
  order_id: string | null
  order_name: string
  /** Epoch ms. */
  paid_at: number | null
  subtotal: Paisa | null
  currency: string
}

/** `count` of everything; `items` holds at most `limit` orders. */
interface Listed<Item> {
  count: number
  items: (ListedOrder & Item)[]
}

export interface OrderComparison {
  orders: number
  not_paid: number
  before_connection: number
  accepted: number
  never_reported: Listed<{ set_aside: string | null }>
  rejected: Listed<{ rejection_reason: string; sale_id: string }> & { reasons: Record<string, number> }
  other_amounts: Listed<{ reported_subtotal: Paisa; sale_id: string }>
}

interface CompareOptions {
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
  { store, limit, all, progress }: CompareOptions,
): Promise<OrderComparison> {
  const db = database.reader
  const claims = await claimsOf(db, store)
  if (claims.length === 0) throw new Refusal('not_found', `Store ${store} not found.`)
  const storeIds = claims.map(({ id }) => id)
  const connectedAt = Math.min(...claims.map(({ created_at }) => created_at))
  const result: OrderComparison = {
    orders: 0,
    not_paid: 0,
    before_connection: 0,
    accepted: 0,
    never_reported: { count: 0, items: [] },
    rejected: { count: 0, reasons: {}, items: [] },
    other_amounts: { count: 0, items: [] },
  }
  for await (const orders of inBatches(exported, BATCH)) {
    const sales = await salesOfOrders(db, storeIds, orders)
    const missing: ListedOrder[] = []
    for (const order of orders) {
      const sale = sales.get(order.id ?? order.name) ?? null
      const found = compareOrder(order, sale, connectedAt)
      const listed = listedOrder(order)
      result.orders += 1
      if (found === 'never_reported') missing.push(listed)
      else if (found !== 'rejected') result[found] += 1
      if (!sale) continue
      const { id: sale_id, rejection_reason } = sale
      if (found === 'rejected' && rejection_reason !== null) {
        const isListed = all || rejection_reason !== 'no_tracking_reference'
        const { reasons } = result.rejected
        reasons[rejection_reason] = (reasons[rejection_reason] ?? 0) + 1
        add(result.rejected, isListed ? limit : 0, { ...listed, rejection_reason, sale_id })
      }
      if (found !== 'accepted') continue
      const reported_subtotal = otherSubtotal(order, readReceipt(sale.receipt)?.facts.order ?? null)
      if (reported_subtotal !== null)
        add(result.other_amounts, limit, { ...listed, reported_subtotal, sale_id })
    }
    const shown = missing.slice(0, limit - result.never_reported.items.length)
    const ids = shown.flatMap(({ order_id }) => order_id ?? [])
    const reasons = await setAsideReasons(db, storeIds, ids)
    for (const order of missing)
      add(result.never_reported, limit, { ...order, set_aside: reasons.get(order.order_id ?? '') ?? null })
    progress(result.orders)
  }
  return result
}

function add<Item>(list: Listed<Item>, limit: number, item: ListedOrder & Item): void {
  list.count += 1
  if (list.items.length < limit) list.items.push(item)
}

/** By order id; for orders without one, by name. */
async function salesOfOrders(
  db: Queries,
  storeIds: readonly string[],
  orders: readonly ExportedOrder[],
): Promise<Map<string, SaleRow>> {
  const keys = orders.flatMap(({ id }) =>
    id === null ? [] : storeIds.map((store_id) => ({ store_id, order_id: id })),
  )
  const names = orders.flatMap(({ id, name }) => (id === null ? name : []))
  return new Map([
    ...(await findRecordedByName(db, storeIds, names)).map((sale) => [sale.order_name ?? '', sale] as const),
    ...(await findRecorded(db, keys)).map((sale) => [sale.order_id, sale] as const),
  ])
}

function listedOrder({ id, name, paid_at, subtotal, currency }: ExportedOrder): ListedOrder {
  return {
    order_id: id,
    order_name: name.slice(0, 100),
    paid_at,
    subtotal,
    currency: currency.slice(0, 3),
  }
}
