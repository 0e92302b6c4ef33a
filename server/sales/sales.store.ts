import { type Selectable, type SqlBool, sql } from 'kysely'
import { bulkInsert, type ColumnTypes, inList, valuesTable } from '../platform/database/bulk-values.ts'
import { dialectOf, type Queries, type Tx } from '../platform/database/database.ts'
import {
  countRows,
  type OwnScope,
  type ScanCount,
  type ScanPage,
  type ScanScope,
} from '../platform/database/keyset-scan.ts'
import type { Schema } from '../platform/database/schema.ts'
import { firstIdAt, ID_SLACK_MS } from '../platform/ids.ts'

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

/** The outcomes of these orders, without what explains them. */
export async function findOutcomes(db: Queries, orders: readonly OrderKey[]) {
  if (orders.length === 0) return []
  const found = await sql<Omit<SaleRow, 'receipt'>>`
    select ${sql.join(OUTCOME.map((column) => sql.ref(`sale.${column}`)))}
    from ${reportedOrders(dialectOf(db), orders)}
    join sales as sale on sale.store_id = reported.store_id and sale.order_id = reported.order_id`.execute(db)
  return found.rows
}

/** The sales of these stores with these order names, which repeat across stores. */
export function findRecordedByName(
  db: Queries,
  storeIds: readonly string[],
  names: readonly string[],
): Promise<SaleRow[]> {
  const dialect = dialectOf(db)
  return db
    .selectFrom('sales')
    .selectAll()
    .where(sql<SqlBool>`store_id ${inList(dialect, 'uuid', storeIds)}`)
    .where(sql<SqlBool>`order_name ${inList(dialect, 'text', names)}`)
    .execute()
}

const COLUMNS: ColumnTypes<SaleRow> = {
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
}

const OUTCOME = Object.keys(COLUMNS).filter((column) => column !== 'receipt')

export const insertSales = bulkInsert('sales', COLUMNS)

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

/** The former decisions of those of these sales that were decided again. */
export function formerDecisions(
  db: Queries,
  saleIds: readonly string[],
): Promise<Selectable<Schema['sale_decisions']>[]> {
  return db
    .selectFrom('sale_decisions')
    .selectAll()
    .where(sql<SqlBool>`sale_id ${inList(dialectOf(db), 'uuid', saleIds)}`)
    .execute()
}

export interface SaleFilter {
  /** What these columns hold. */
  columns?: { [Column in keyof SaleRow]?: SaleRow[Column] | undefined }
  ids?: readonly string[] | undefined
  storeIds?: readonly string[] | undefined
  /** Epoch ms: inclusive, exclusive. */
  from?: number | null
  to?: number | null
  limit: number
  /** Only sales older than this id. */
  before: string | null
  /** Only the sale with this id and newer ones. */
  since?: string | undefined
}

/** A sale with its link's slug and its click's sub id. */
export type SaleWithSlug = SaleRow & { slug: string | null; sub_id: string | null }

/** A column for a condition. SQLite, which may have no statistics, looks for no index of one that is not `indexed`. */
function columnOf(db: Queries, column: string, indexed: boolean) {
  const name = sql.ref(`sales.${column}`)
  return indexed || dialectOf(db) === 'postgresql' ? name : sql`+${name}`
}

function salesInScope(db: Queries, scope: ScanScope, indexed = true) {
  const sales = db.selectFrom('sales')
  if (scope === 'all') return sales
  return 'merchantId' in scope
    ? sales.where(columnOf(db, 'merchant_id', indexed), '=', scope.merchantId)
    : sales.where(columnOf(db, 'creator_id', indexed), '=', scope.creatorId)
}

function salesWithSlug(db: Queries, scope: ScanScope, indexed = true) {
  return salesInScope(db, scope, indexed)
    .leftJoin('affiliate_links as link', 'link.id', 'sales.link_id')
    .leftJoin('clicks as click', 'click.id', 'sales.click_id')
    .selectAll('sales')
    .select(['link.slug', 'click.sub_id'])
}

/** By these columns an index finds few of a merchant's sales. */
const SEARCHED: readonly string[] = ['order_id', 'order_name', 'billing_cycle_id']

/**
 * Sales in the caller's scope, newest first. With `storeIds` (whose few sales are sorted) or a merchant's cycle by their indexes, else by
 * the scope's.
 */
export function findSales(db: Queries, scope: ScanScope, filter: SaleFilter): Promise<SaleWithSlug[]> {
  const { columns = {}, ids, storeIds } = filter
  const isOfMerchant = scope !== 'all' && 'merchantId' in scope
  const isSearched = storeIds !== undefined || (isOfMerchant && columns.billing_cycle_id !== undefined)
  return salesWithSlug(db, scope, !isSearched)
    .where((eb) =>
      eb.and(
        Object.entries(columns).flatMap(([column, value]) =>
          value === undefined
            ? []
            : eb(columnOf(db, column, isSearched && SEARCHED.includes(column)), '=', value),
        ),
      ),
    )
    .$if(ids !== undefined, (query) =>
      query.where(sql<SqlBool>`sales.id ${inList(dialectOf(db), 'uuid', ids ?? [])}`),
    )
    .$if(storeIds !== undefined, (query) =>
      query.where(sql<SqlBool>`sales.store_id ${inList(dialectOf(db), 'uuid', storeIds ?? [])}`),
    )
    .where(inPlace(filter))
    .orderBy(columnOf(db, 'id', storeIds === undefined), 'desc')
    .limit(filter.limit)
    .execute()
}

/** The id of the oldest of the `size` newest sales in scope and place; `undefined` where there are fewer. */
export async function endOfWindow(
  db: Queries,
  scope: ScanScope,
  place: Pick<SaleFilter, 'from' | 'to' | 'before'>,
  size: number,
): Promise<string | undefined> {
  const newest = salesInScope(db, scope).select('sales.id').where(inPlace(place))
  const window = newest.orderBy('sales.id', 'desc').limit(size).as('newest')
  const ids = db.selectFrom(window).select((eb) => eb.fn.countAll<number>().as('count'))
  const { count, end } = await ids
    .select(sql<string | null>`min(cast(id as text))`.as('end'))
    .executeTakeFirstOrThrow()
  return count === size && end !== null ? end : undefined
}

/** The part of the list that a page is of. Times bound the ids as well, so that no list is read from its beginning to get to them. */
function inPlace({
  from = null,
  to = null,
  before,
  since,
}: Pick<SaleFilter, 'from' | 'to' | 'before' | 'since'>) {
  const id = sql.ref('sales.id')
  const created = sql.ref('sales.created_at')
  return sql<SqlBool>`${sql.join(
    [
      sql`true`,
      ...(from === null ? [] : [sql`${created} >= ${from}`, sql`${id} >= ${firstIdAt(from - ID_SLACK_MS)}`]),
      ...(to === null ? [] : [sql`${created} < ${to}`, sql`${id} < ${firstIdAt(to + ID_SLACK_MS)}`]),
      ...(before === null ? [] : [sql`${id} < ${before}`]),
      ...(since === undefined ? [] : [sql`${id} >= ${since}`]),
    ],
    sql` and `,
  )}`
}

/** The id of any merchant's link by its slug. */
export async function linkIdOfSlug(db: Queries, slug: string): Promise<string | undefined> {
  const links = db.selectFrom('affiliate_links').select('id').where('slug', '=', slug)
  return (await links.executeTakeFirst())?.id
}

export function findSale(db: Queries, scope: ScanScope, saleId: string): Promise<SaleWithSlug | undefined> {
  return salesWithSlug(db, scope).where('sales.id', '=', saleId).executeTakeFirst()
}

/** Sales of these stores by the store's order id, or by the order's name (which repeats across stores). */
export function findSalesByOrder(
  db: Queries,
  order: { id: string } | { name: string },
  storeIds: readonly string[],
): Promise<SaleWithSlug[]> {
  return salesWithSlug(db, 'all')
    .where(({ eb }) =>
      'id' in order ? eb('sales.order_id', '=', order.id) : eb('sales.order_name', '=', order.name),
    )
    .where(sql<SqlBool>`sales.store_id ${inList(dialectOf(db), 'uuid', storeIds)}`)
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
    .select((eb) => ['link_id', eb.fn.countAll<number>().as('accepted_sales')])
    .select((eb) => eb.fn.sum<number>('commission').as('commission'))
    .where('link_id', 'in', linkIds)
    .where('acceptance_status', '=', 'accepted')
    .groupBy('link_id')
    .execute()
  return new Map(rows.map((row) => [row.link_id ?? '', row]))
}

/** How many orders of a store were rejected since `since` (epoch ms), by reason. */
export async function rejectionsOf(
  db: Queries,
  store: { id: string; merchant_id: string },
  since: number,
): Promise<Record<string, number>> {
  const rows = await db
    .selectFrom('sales')
    .select((eb) => ['rejection_reason', eb.fn.countAll<number>().as('orders')])
    // By the index of a merchant's sales.
    .where('merchant_id', '=', store.merchant_id)
    .where('id', '>=', firstIdAt(since))
    .where('store_id', '=', store.id)
    .where('acceptance_status', '=', 'rejected')
    .groupBy('rejection_reason')
    .execute()
  return Object.fromEntries(rows.map((row) => [row.rejection_reason ?? '', row.orders]))
}

/** What the store calls the order of a sale. */
export type SaleName = Pick<SaleRow, 'id' | 'order_id' | 'order_name'>

/** By sale id, for a few thousand ids at most. */
export async function saleNamesOf(db: Queries, ids: readonly string[]): Promise<Map<string, SaleName>> {
  const rows = await db
    .selectFrom('sales')
    .select(['id', 'order_id', 'order_name'])
    .where(sql<SqlBool>`id ${inList(dialectOf(db), 'uuid', [...new Set(ids)])}`)
    .execute()
  return new Map(rows.map((row) => [row.id, row]))
}

export function salesById(db: Queries, ids: readonly string[]): Promise<SaleRow[]> {
  return db
    .selectFrom('sales')
    .selectAll()
    .where(sql<SqlBool>`id ${inList(dialectOf(db), 'uuid', ids)}`)
    .execute()
}

/** Without what others than its merchant and creator may not see, and the large receipt. */
const { receipt, event_id, click_id, buyer_name_matches, ...SHOWN } = COLUMNS
const EXPORTED = Object.keys(SHOWN) as (keyof typeof SHOWN)[]

/** A sale without its large receipt. */
export type ExportedSale = Pick<SaleWithSlug, keyof typeof SHOWN | 'slug' | 'sub_id'>

/** By the index of the cycle, if it is of one, else by the scope's. */
function stepOf(db: Queries, scope: ScanScope, cycleId: string | null, step: ScanPage) {
  return salesInScope(db, scope, cycleId === null)
    .$if(cycleId !== null, (query) => query.where('sales.billing_cycle_id', '=', cycleId))
    .where('sales.id', '<', step.below)
    .orderBy('sales.id', 'desc')
    .limit(step.size)
}

export function readSales(
  db: Queries,
  scope: ScanScope,
  cycleId: string | null,
  step: ScanPage,
): Promise<ExportedSale[]> {
  return stepOf(db, scope, cycleId, step)
    .leftJoin('affiliate_links as link', 'link.id', 'sales.link_id')
    .leftJoin('clicks as click', 'click.id', 'sales.click_id')
    .select(EXPORTED.map((column) => `sales.${column}` as const))
    .select(['link.slug', 'click.sub_id'])
    .execute()
}

export function countSales(
  db: Queries,
  scope: ScanScope,
  cycleId: string | null,
  step: ScanPage,
): Promise<ScanCount> {
  return countRows(db, step, stepOf(db, scope, cycleId, step).select(['sales.id', 'sales.created_at']))
}

/** Whether a merchant or creator has an accepted sale. */
export async function hasAcceptedSale(db: Queries, scope: OwnScope): Promise<boolean> {
  const row = await salesInScope(db, scope)
    .select('id')
    .where('acceptance_status', '=', 'accepted')
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
