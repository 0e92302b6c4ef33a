import { type Selectable, type SqlBool, sql } from 'kysely'
import { inList, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { countRows, type ScanCount, type ScanPage, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Schema } from '../platform/database/schema.ts'
import type { OrderKey } from '../sales/sales.service.ts'

export type PendingOrderRow = Selectable<Schema['pending_orders']>

const asked = valuesTable<OrderKey>('asked', { store_id: 'uuid', order_id: 'text' })

/** The pending orders of these orders, locked until the transaction ends, not checked. */
export function lockPendingOrders(tx: Tx, orders: readonly OrderKey[]): Promise<PendingOrderRow[]> {
  return locked(tx)
    .where(
      sql<SqlBool>`id in (
        select pending.id from ${asked(dialectOf(tx), orders)}
        join pending_orders as pending on pending.store_id = asked.store_id and pending.order_id = asked.order_id)`,
    )
    .orderBy('id')
    .execute()
}

function locked(tx: Tx) {
  return tx
    .selectFrom('pending_orders')
    .selectAll()
    .$if(dialectOf(tx) === 'postgresql', (query) => query.forNoKeyUpdate())
}

/** Pending orders placed before `before` (epoch ms) that are still pending, the oldest first, after the last of the page before. */
export function duePage(
  tx: Tx,
  before: number,
  after: Pick<PendingOrderRow, 'placed_at' | 'id'> | null,
  limit: number,
): Promise<PendingOrderRow[]> {
  return locked(tx)
    .where('state', '=', sql.lit('pending'))
    .where('placed_at', '<', before)
    .$if(after !== null, (query) =>
      query.where(sql<SqlBool>`(placed_at, id) > (${after?.placed_at}, ${after?.id})`),
    )
    .orderBy('placed_at')
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** A pending order with the slug of its link and the creator of its sale. */
export type ListedPendingOrder = PendingOrderRow & { slug: string; sale_creator_id: string | null }

export interface PendingOrderFilter {
  state?: PendingOrderRow['state'] | undefined
  offerId?: string | undefined
  /** On the time of placement, epoch ms: inclusive, exclusive. */
  from?: number | null
  to?: number | null
  limit: number
  /** Only pending orders older than this id. */
  before: string | null
}

function inScope(db: Queries, scope: ScanScope) {
  const pending = db.selectFrom('pending_orders as pending')
  if (scope === 'all') return pending
  return 'merchantId' in scope
    ? pending.where('pending.merchant_id', '=', scope.merchantId)
    : pending.where('pending.creator_id', '=', scope.creatorId)
}

function listed(pending: ReturnType<typeof inScope>) {
  return pending
    .innerJoin('affiliate_links as link', 'link.id', 'pending.link_id')
    .leftJoin('sales as sale', 'sale.id', 'pending.sale_id')
    .selectAll('pending')
    .select(['link.slug', 'sale.creator_id as sale_creator_id'])
}

/** Pending orders in the caller's scope, newest first. */
export function findPendingOrders(
  db: Queries,
  scope: ScanScope,
  { state, offerId, from, to, limit, before }: PendingOrderFilter,
): Promise<ListedPendingOrder[]> {
  return listed(inScope(db, scope))
    .$if(state !== undefined, (query) => query.where('pending.state', '=', state ?? 'pending'))
    .$if(offerId !== undefined, (query) => query.where('pending.offer_id', '=', offerId ?? ''))
    .$if(typeof from === 'number', (query) => query.where('pending.placed_at', '>=', from ?? 0))
    .$if(typeof to === 'number', (query) => query.where('pending.placed_at', '<', to ?? 0))
    .$if(before !== null, (query) => query.where('pending.id', '<', before ?? ''))
    .orderBy('pending.id', 'desc')
    .limit(limit)
    .execute()
}

function stepOf(db: Queries, scope: ScanScope, step: ScanPage) {
  return inScope(db, scope)
    .where('pending.id', '<', step.below)
    .orderBy('pending.id', 'desc')
    .limit(step.size)
}

export function readPendingOrders(
  db: Queries,
  scope: ScanScope,
  step: ScanPage,
): Promise<ListedPendingOrder[]> {
  return listed(stepOf(db, scope, step)).execute()
}

/** Counts by the time of placement, which is the period of a list too. */
export function countPendingOrders(db: Queries, scope: ScanScope, step: ScanPage): Promise<ScanCount> {
  return countRows(
    db,
    step,
    stepOf(db, scope, step).select(['pending.id', 'pending.placed_at as created_at']),
  )
}

export function pendingOrdersById(db: Queries, ids: readonly string[]): Promise<ListedPendingOrder[]> {
  return listed(inScope(db, 'all'))
    .where(sql<SqlBool>`pending.id ${inList(dialectOf(db), 'uuid', ids)}`)
    .orderBy('pending.id')
    .execute()
}

/** Pending orders of these stores by the store's order id, or by the order's name (which repeats across stores). */
export function pendingOrdersOfOrder(
  db: Queries,
  order: { id: string } | { name: string },
  storeIds: readonly string[],
): Promise<ListedPendingOrder[]> {
  return listed(inScope(db, 'all'))
    .where(({ eb }) =>
      'id' in order ? eb('pending.order_id', '=', order.id) : eb('pending.order_name', '=', order.name),
    )
    .where(sql<SqlBool>`pending.store_id ${inList(dialectOf(db), 'uuid', storeIds)}`)
    .orderBy('pending.id')
    .limit(50)
    .execute()
}
