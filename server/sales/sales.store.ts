import { type Selectable, sql } from 'kysely'
import type { RejectionReason } from '../../shared/rejection-reasons.ts'
import { bulkInsert, inList, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import { countRows, type ScanCount, type ScanPage, type ScanScope } from '../platform/database/keyset-scan.ts'
import type { Schema } from '../platform/database/schema.ts'
import { firstIdAt } from '../platform/ids.ts'

export type SaleRow = Selectable<Schema['sales']>

/** A store's order. */
export interface OrderKey {
  store_id: string
  order_id: string
}

const reportedOrders = valuesTable<OrderKey>('reported', { store_id: 'uuid', order_id: 'text' })

/** The sales that exist for these orders. */
export async function findRecorded(db: Queries, orders: readonly OrderKey[]): Promise<SaleRow[]> {
  if (orders.length === 0) return []
  const found = await sql<SaleRow>`
    select sale.*
    from ${reportedOrders(dialectOf(db), orders)}
    join sales as sale on sale.store_id = reported.store_id and sale.order_id = reported.order_id`.execute(db)
  return found.rows
}

/** A sale for the comparison with a store's own orders. `receipt`: of an accepted sale, otherwise `null`. */
export type ComparedSaleRow = Pick<SaleRow, 'id' | 'order_id' | 'order_name' | 'rejection_reason'> & {
  receipt: string | null
}

/** Most orders of a shop are rejected, and their receipts are large. */
const COMPARED = sql.raw(`sale.id, sale.order_id, sale.order_name, sale.rejection_reason,
  case when sale.rejection_reason is null then sale.receipt end as receipt`)

/** The sales that exist for these orders. */
export async function findCompared(db: Queries, orders: readonly OrderKey[]): Promise<ComparedSaleRow[]> {
  if (orders.length === 0) return []
  const found = await sql<ComparedSaleRow>`
    select ${COMPARED}
    from ${reportedOrders(dialectOf(db), orders)}
    join sales as sale on sale.store_id = reported.store_id and sale.order_id = reported.order_id`.execute(db)
  return found.rows
}

/** The sales of these stores with these order names, which repeat across stores. */
export async function findComparedByName(
  db: Queries,
  storeIds: readonly string[],
  names: readonly string[],
): Promise<ComparedSaleRow[]> {
  if (names.length === 0) return []
  const dialect = dialectOf(db)
  const found = await sql<ComparedSaleRow>`
    select ${COMPARED} from sales as sale
    where sale.store_id ${inList(dialect, 'uuid', storeIds)} and sale.order_name ${inList(dialect, 'text', names)}`.execute(
    db,
  )
  return found.rows
}

export const insertSales = bulkInsert<SaleRow>('sales', {
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
  coupon_code: 'text',
  net_amount: 'bigint',
  commission_rate: 'int',
  commission: 'bigint',
  platform_fee: 'bigint',
  billing_cycle_id: 'uuid',
  ordered_at: 'bigint',
  created_at: 'bigint',
  decided_at: 'bigint',
  event_id: 'uuid',
  receipt: 'json',
  buyer_name_matches: 'int',
})

/**
 * Replaces the decision of a sale that was rejected as `not_paid`, once, and keeps the former one. Returns false if the sale has been
 * decided again already. A trigger rejects any other update of a sale.
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

/** The former decisions by sale id. Sales that were decided once are missing. */
export async function formerDecisions(
  db: Queries,
  saleIds: readonly string[],
): Promise<Map<string, FormerDecision>> {
  if (saleIds.length === 0) return new Map()
  const rows = await db.selectFrom('sale_decisions').selectAll().where('sale_id', 'in', saleIds).execute()
  return new Map(rows.map((row) => [row.sale_id, row]))
}

/** The sales that a caller sees: of own stores or own links. `all` is for the operator. */
export type SaleScope = { merchantId: string } | { creatorId: string } | 'all'

export interface SaleFilter {
  acceptanceStatus: 'accepted' | 'rejected' | null
  offerId: string | null
  rejectionReason?: RejectionReason | undefined
  creatorId?: string | undefined
  storeId?: string | undefined
  slug?: string | undefined
  orderId?: string | undefined
  orderName?: string | undefined
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
  const sales = db.selectFrom('sales')
  if (scope === 'all') return sales
  return 'merchantId' in scope
    ? sales.where('sales.merchant_id', '=', scope.merchantId)
    : sales.where('sales.creator_id', '=', scope.creatorId)
}

function salesWithSlug(db: Queries, scope: SaleScope) {
  return salesInScope(db, scope)
    .leftJoin('affiliate_links as link', 'link.id', 'sales.link_id')
    .selectAll('sales')
    .select('link.slug')
}

export function findSales(db: Queries, scope: SaleScope, filter: SaleFilter): Promise<SaleWithSlug[]> {
  return salesWithSlug(db, scope)
    .$if(filter.acceptanceStatus !== null, (query) =>
      query.where('sales.acceptance_status', '=', filter.acceptanceStatus ?? 'accepted'),
    )
    .$if(filter.offerId !== null, (query) => query.where('sales.offer_id', '=', filter.offerId ?? ''))
    .where((eb) =>
      eb.and({
        ...(filter.rejectionReason !== undefined && { 'sales.rejection_reason': filter.rejectionReason }),
        ...(filter.creatorId !== undefined && { 'sales.creator_id': filter.creatorId }),
        ...(filter.storeId !== undefined && { 'sales.store_id': filter.storeId }),
        ...(filter.slug !== undefined && { 'link.slug': filter.slug }),
        ...(filter.orderId !== undefined && { 'sales.order_id': filter.orderId }),
        ...(filter.orderName !== undefined && { 'sales.order_name': filter.orderName }),
      }),
    )
    .$if(filter.from !== null, (query) => query.where('sales.created_at', '>=', filter.from ?? 0))
    .$if(filter.to !== null, (query) => query.where('sales.created_at', '<', filter.to ?? 0))
    .$if(filter.before !== null, (query) => query.where('sales.id', '<', filter.before ?? ''))
    .orderBy('sales.id', 'desc')
    .limit(filter.limit)
    .execute()
}

export function findSale(db: Queries, scope: SaleScope, saleId: string): Promise<SaleWithSlug | undefined> {
  return salesWithSlug(db, scope).where('sales.id', '=', saleId).executeTakeFirst()
}

/** Sales by the store's order id, or by the order's name (which repeats across stores). */
export function findSalesByOrder(
  db: Queries,
  order: { id: string } | { name: string },
  storeIds: readonly string[] | null,
): Promise<SaleWithSlug[]> {
  if (storeIds?.length === 0) return Promise.resolve([])
  return salesWithSlug(db, 'all')
    .$if('id' in order, (query) => query.where('sales.order_id', '=', (order as { id: string }).id))
    .$if('name' in order, (query) => query.where('sales.order_name', '=', (order as { name: string }).name))
    .$if(storeIds !== null, (query) => query.where('sales.store_id', 'in', storeIds ?? []))
    .orderBy('sales.id')
    .limit(50)
    .execute()
}

/** The number of accepted sales and their commission (paisa) by link. Links without any are missing. */
export async function linkEarnings(
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

/** The rejected sales of a store recorded since `since` (epoch ms), by reason. */
export async function countRejections(
  db: Queries,
  store: { id: string; merchant_id: string },
  since: number,
): Promise<{ rejection_reason: RejectionReason | null; orders: number }[]> {
  return (
    db
      .selectFrom('sales')
      .select((eb) => ['rejection_reason', eb.fn.countAll<number>().as('orders')])
      // By the index of a merchant's sales.
      .where('merchant_id', '=', store.merchant_id)
      .where('id', '>=', firstIdAt(since))
      .where('store_id', '=', store.id)
      .where('acceptance_status', '=', 'rejected')
      .groupBy('rejection_reason')
      .execute()
  )
}

export async function orderNamesBySale(
  db: Queries,
  saleIds: readonly string[],
): Promise<{ id: string; order_id: string; order_name: string | null }[]> {
  if (saleIds.length === 0) return []
  return db.selectFrom('sales').select(['id', 'order_id', 'order_name']).where('id', 'in', saleIds).execute()
}

const DECISION_COLUMNS = [
  'id',
  'store_id',
  'merchant_id',
  'order_id',
  'order_name',
  'acceptance_status',
  'rejection_reason',
  'creator_id',
  'net_amount',
  'commission_rate',
  'commission',
  'platform_fee',
  'event_id',
  'receipt',
] as const

/** A sale with its decision and receipt. */
export type DecidedSaleRow = Pick<SaleRow, (typeof DECISION_COLUMNS)[number]>

export async function salesById(db: Queries, ids: readonly string[]): Promise<DecidedSaleRow[]> {
  if (ids.length === 0) return []
  return db.selectFrom('sales').select(DECISION_COLUMNS).where('id', 'in', ids).execute()
}

/** The former decisions of the sales among `ids` that were decided again. */
export async function formerSalesById(db: Queries, ids: readonly string[]): Promise<FormerSaleRow[]> {
  if (ids.length === 0) return []
  return db
    .selectFrom('sale_decisions as former')
    .innerJoin('sales as sale', 'sale.id', 'former.sale_id')
    .select(['sale.id', 'sale.store_id', 'sale.merchant_id', 'sale.order_id'])
    .select(['former.event_id', 'former.receipt'])
    .where('former.sale_id', 'in', ids)
    .execute()
}

export type FormerSaleRow = Pick<
  SaleRow,
  'id' | 'store_id' | 'merchant_id' | 'order_id' | 'event_id' | 'receipt'
>

/** A sale without its large receipt. */
export type ExportedSale = Omit<SaleWithSlug, 'receipt' | 'event_id' | 'click_id' | 'buyer_name_matches'>

function stepOf(db: Queries, scope: ScanScope, step: ScanPage) {
  return salesInScope(db, scope)
    .where('sales.id', '<', step.below)
    .orderBy('sales.id', 'desc')
    .limit(step.size)
}

export function readSales(db: Queries, scope: ScanScope, step: ScanPage): Promise<ExportedSale[]> {
  return stepOf(db, scope, step)
    .leftJoin('affiliate_links as link', 'link.id', 'sales.link_id')
    .select([
      'sales.id',
      'sales.store_id',
      'sales.merchant_id',
      'sales.order_id',
      'sales.order_name',
      'sales.acceptance_status',
      'sales.rejection_reason',
      'sales.offer_id',
      'sales.creator_id',
      'sales.link_id',
      'sales.coupon_code',
      'sales.net_amount',
      'sales.commission_rate',
      'sales.commission',
      'sales.platform_fee',
      'sales.billing_cycle_id',
      'sales.ordered_at',
      'sales.created_at',
      'sales.decided_at',
      'link.slug',
    ])
    .execute()
}

export function countSales(db: Queries, scope: ScanScope, step: ScanPage): Promise<ScanCount> {
  return countRows(db, step, stepOf(db, scope, step).select(['sales.id', 'sales.created_at']))
}

/** Whether a merchant or creator has an accepted sale. */
export async function hasAcceptedSale(
  db: Queries,
  party: 'merchant_id' | 'creator_id',
  userId: string,
): Promise<boolean> {
  const row = await db
    .selectFrom('sales')
    .select('id')
    .where(party, '=', userId)
    .where('acceptance_status', '=', 'accepted')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
