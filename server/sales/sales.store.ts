import { type Selectable, sql } from 'kysely'
import { dialectOf, type Queries, type Tx } from '../platform/database.ts'
import { insertOf, rowSet } from '../platform/row-set.ts'
import type { Schema } from '../platform/schema.ts'

export type SaleRow = Selectable<Schema['sales']>

/** A store's order. */
export interface OrderKey {
  store_id: string
  order_id: string
}

const reportedOrders = rowSet<OrderKey>('reported', { store_id: 'uuid', order_id: 'text' })

/** The sales that are there already for these orders. */
export async function findRecorded(db: Queries, orders: readonly OrderKey[]): Promise<SaleRow[]> {
  if (orders.length === 0) return []
  const found = await sql<SaleRow>`
    select sale.*
    from ${reportedOrders(dialectOf(db), orders)}
    join sales as sale on sale.store_id = reported.store_id and sale.order_id = reported.order_id`.execute(db)
  return found.rows
}

export const insertSales = insertOf<SaleRow>('sales', {
  id: 'uuid',
  store_id: 'uuid',
  merchant_id: 'uuid',
  order_id: 'text',
  order_name: 'text',
  acceptance_status: 'text',
  rejection_reason: 'text',
  offer_id: 'uuid',
  creator_id: 'uuid',
  link_id: 'uuid',
  click_id: 'uuid',
  net_amount: 'bigint',
  commission_rate: 'int',
  commission: 'bigint',
  platform_fee: 'bigint',
  billing_cycle_id: 'uuid',
  ordered_at: 'bigint',
  created_at: 'bigint',
  decided_at: 'bigint',
  event_id: 'uuid',
  receipt: 'long',
  buyer_name_matches: 'int',
})

/**
 * Replaces the decision of a sale that was rejected as `not_paid`, once, and keeps the former one. Answers `false` when the sale was
 * decided again meanwhile. A trigger refuses every other update of a sale.
 */
export async function replaceDecision(tx: Tx, row: SaleRow): Promise<boolean> {
  await tx
    .insertInto('sale_decisions')
    .columns(['sale_id', 'event_id', 'decided_at', 'receipt'])
    .expression((eb) =>
      eb
        .selectFrom('sales')
        .select(['id', 'event_id', 'created_at', 'receipt'])
        .where('id', '=', row.id)
        .where('rejection_reason', '=', 'not_paid')
        .where('decided_at', 'is', null),
    )
    .execute()
  const { id, store_id, merchant_id, order_id, created_at, ...decided } = row
  const { numUpdatedRows } = await tx
    .updateTable('sales')
    .set(decided)
    .where('id', '=', id)
    .where('rejection_reason', '=', 'not_paid')
    .where('decided_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export type FormerDecision = Selectable<Schema['sale_decisions']>

/** The former decisions of these sales; sales that were decided once are missing. */
export async function formerDecisions(
  db: Queries,
  saleIds: readonly string[],
): Promise<Map<string, FormerDecision>> {
  if (saleIds.length === 0) return new Map()
  const rows = await db.selectFrom('sale_decisions').selectAll().where('sale_id', 'in', saleIds).execute()
  return new Map(rows.map((row) => [row.sale_id, row]))
}

/** Whose sales a caller sees: of their stores, or of their links; `all` is for the operator. */
export type SaleScope = { merchantId: string } | { creatorId: string } | 'all'

export interface SaleFilter {
  acceptanceStatus: 'accepted' | 'rejected' | null
  offerId: string | null
  /** Epoch ms, inclusive. */
  from: number | null
  /** Epoch ms, exclusive. */
  to: number | null
  limit: number
  /** Only sales older than this id. */
  before: string | null
}

/** A sale with its link's slug. */
export type SaleWithSlug = SaleRow & { slug: string | null }

function salesInScope(db: Queries, scope: SaleScope) {
  return db
    .selectFrom('sales')
    .leftJoin('affiliate_links as link', 'link.id', 'sales.link_id')
    .selectAll('sales')
    .select('link.slug')
    .$if(scope !== 'all' && 'merchantId' in scope, (query) =>
      query.where('sales.merchant_id', '=', (scope as { merchantId: string }).merchantId),
    )
    .$if(scope !== 'all' && 'creatorId' in scope, (query) =>
      query.where('sales.creator_id', '=', (scope as { creatorId: string }).creatorId),
    )
}

export function findSales(db: Queries, scope: SaleScope, filter: SaleFilter): Promise<SaleWithSlug[]> {
  return salesInScope(db, scope)
    .$if(filter.acceptanceStatus !== null, (query) =>
      query.where('sales.acceptance_status', '=', filter.acceptanceStatus ?? 'accepted'),
    )
    .$if(filter.offerId !== null, (query) => query.where('sales.offer_id', '=', filter.offerId ?? ''))
    .$if(filter.from !== null, (query) => query.where('sales.created_at', '>=', filter.from ?? 0))
    .$if(filter.to !== null, (query) => query.where('sales.created_at', '<', filter.to ?? 0))
    .$if(filter.before !== null, (query) => query.where('sales.id', '<', filter.before ?? ''))
    .orderBy('sales.id', 'desc')
    .limit(filter.limit)
    .execute()
}

export function findSale(db: Queries, scope: SaleScope, saleId: string): Promise<SaleWithSlug | undefined> {
  return salesInScope(db, scope).where('sales.id', '=', saleId).executeTakeFirst()
}

/** Sales by the store's order id, or by the order's name (which repeats across stores). */
export function findSalesByOrder(
  db: Queries,
  order: { id: string } | { name: string },
  storeIds: readonly string[] | null,
): Promise<SaleWithSlug[]> {
  if (storeIds?.length === 0) return Promise.resolve([])
  return salesInScope(db, 'all')
    .$if('id' in order, (query) => query.where('sales.order_id', '=', (order as { id: string }).id))
    .$if('name' in order, (query) => query.where('sales.order_name', '=', (order as { name: string }).name))
    .$if(storeIds !== null, (query) => query.where('sales.store_id', 'in', storeIds ?? []))
    .orderBy('sales.id')
    .limit(50)
    .execute()
}

/** Accepted sales and their commission (paisa) by link. */
export async function sumByLink(
  db: Queries,
  linkIds: readonly string[],
): Promise<Map<string, { accepted_sales: number; commission: number }>> {
  if (linkIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('sales')
    .select([
      'link_id',
      sql<number>`count(*)`.as('accepted_sales'),
      sql<number>`sum(commission)`.as('commission'),
    ])
    .where('link_id', 'in', linkIds)
    .where('acceptance_status', '=', 'accepted')
    .groupBy('link_id')
    .execute()
  return new Map(
    rows.map((row) => [
      row.link_id ?? '',
      { accepted_sales: row.accepted_sales, commission: row.commission },
    ]),
  )
}
