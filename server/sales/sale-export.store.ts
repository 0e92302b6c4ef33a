import type { Queries } from '../platform/database.ts'
import { countRows, type Step, type StepCount, type WalkScope } from '../platform/walk.ts'
import type { SaleWithSlug } from './sales.store.ts'

/** A sale without its receipt, which is most of a row and no part of an export. */
export type ExportedSale = Omit<SaleWithSlug, 'receipt' | 'event_id' | 'click_id' | 'buyer_name_matches'>

function stepOf(db: Queries, scope: WalkScope, step: Step) {
  let query = db.selectFrom('sales').where('sales.id', '<', step.below)
  if (scope !== 'all') {
    query =
      'merchantId' in scope
        ? query.where('sales.merchant_id', '=', scope.merchantId)
        : query.where('sales.creator_id', '=', scope.creatorId)
  }
  return query.orderBy('sales.id', 'desc').limit(step.size)
}

export function readSales(db: Queries, scope: WalkScope, step: Step): Promise<ExportedSale[]> {
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

export function countSales(db: Queries, scope: WalkScope, step: Step): Promise<StepCount> {
  return countRows(db, step, stepOf(db, scope, step).select(['sales.id', 'sales.created_at']))
}
