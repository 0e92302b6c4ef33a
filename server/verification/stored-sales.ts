import { dialectOf, type Queries } from '../platform/database/database.ts'
import type { Scope } from './scope.ts'

/** Receipts are kilobytes, so pages are small; PostgreSQL plans each page, which must take little of the time of its rows. */
const PAGE = { sqlite: 250, postgresql: 600 }

export type StoredSale = Awaited<ReturnType<typeof readSales>>[number]

/** Sales in the order of their ids, with the click that each names, which nearly always is the one that its decision looked at. */
export function readSales(db: Queries, after: string | null, scope: Scope) {
  return db
    .selectFrom('sales as sale')
    .leftJoin('clicks as click', 'click.id', 'sale.click_id')
    .select([
      'sale.id',
      'sale.merchant_id',
      'sale.order_id',
      'sale.order_name',
      'sale.offer_id',
      'sale.creator_id',
      'sale.link_id',
      'sale.click_id',
      'sale.coupon_code',
      'sale.ordered_at',
      'sale.acceptance_status',
      'sale.rejection_reason',
      'sale.net_amount',
      'sale.commission_rate',
      'sale.commission',
      'sale.platform_fee',
      'sale.receipt',
      'sale.buyer_name_matches',
      'click.link_id as clicked_link_id',
      'click.created_at as clicked_at',
      'click.tracked as click_tracked',
    ])
    .$if(after !== null, (query) => query.where('sale.id', '>', after ?? ''))
    .where(scope.isNewSale('sale.id'))
    .orderBy('sale.id')
    .limit(PAGE[dialectOf(db)])
    .execute()
}

export type StoredFormer = Awaited<ReturnType<typeof readFormerDecisions>>[number]

/** Former decisions in the order of their sales. */
export function readFormerDecisions(db: Queries, after: string | null, scope: Scope) {
  return db
    .selectFrom('sale_decisions as former')
    .innerJoin('sales as sale', 'sale.id', 'former.sale_id')
    .select(['former.sale_id', 'former.receipt', 'sale.merchant_id', 'sale.order_id'])
    .$if(after !== null, (query) => query.where('former.sale_id', '>', after ?? ''))
    .where(scope.isNewSale('former.sale_id'))
    .orderBy('former.sale_id')
    .limit(PAGE[dialectOf(db)])
    .execute()
}
