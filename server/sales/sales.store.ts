import { type Selectable, sql } from 'kysely'
import type { Dialect, Queries, Tx } from '../platform/database.ts'
import { insertOf } from '../platform/row-set.ts'
import type { Schema } from '../platform/schema.ts'

export type SaleRow = Selectable<Schema['sales']>

/** The sales that are there already for these orders. */
export async function findRecorded(
  db: Queries,
  orders: readonly { storeId: string; orderId: string }[],
): Promise<Pick<SaleRow, 'id' | 'store_id' | 'order_id' | 'acceptance_status'>[]> {
  const found: Pick<SaleRow, 'id' | 'store_id' | 'order_id' | 'acceptance_status'>[] = []
  for (const [storeId, ofStore] of Map.groupBy(orders, (order) => order.storeId)) {
    found.push(
      ...(await db
        .selectFrom('sales')
        .select(['id', 'store_id', 'order_id', 'acceptance_status'])
        .where('store_id', '=', storeId)
        .where(
          'order_id',
          'in',
          ofStore.map((order) => order.orderId),
        )
        .execute()),
    )
  }
  return found
}

const newSales = insertOf<SaleRow>('sales', {
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
  event_id: 'uuid',
  receipt: 'text',
})

export async function insertSales(tx: Tx, dialect: Dialect, sales: readonly SaleRow[]): Promise<void> {
  await newSales(dialect, sales).execute(tx)
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
