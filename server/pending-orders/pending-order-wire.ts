import { CURRENCY, formatMoney } from '../../shared/money.ts'
import type { Role } from '../../shared/schemas/common.ts'
import type { PendingOrder } from '../../shared/schemas/pending-orders.ts'
import { isoTime } from '../platform/clock.ts'
import type { OrderNames } from '../sales/sale-explanation.service.ts'
import type { ListedPendingOrder } from './pending-orders.store.ts'

/** A pending order as its merchant or creator sees it. A creator does not see a sale that is credited to someone else. */
export function wirePendingOrder(row: ListedPendingOrder & OrderNames, role: Role): PendingOrder {
  const isHidden = role === 'creator' && row.sale_creator_id !== row.creator_id
  return {
    id: row.id,
    order_name: row.order_name,
    state: row.state,
    offer: row.offer ?? { id: row.offer_id, title: '' },
    creator: row.creator ?? { id: row.creator_id, display_name: '' },
    affiliate_link_slug: row.slug,
    attributed_by: row.coupon_code === null ? 'click' : 'coupon',
    expected_commission: formatMoney(row.expected_commission),
    currency: CURRENCY,
    sale_id: isHidden ? null : row.sale_id,
    placed_at: isoTime(row.placed_at),
    updated_at: isoTime(row.updated_at),
    ...(role !== 'creator' && { order_id: row.order_id, store: row.store }),
  }
}
