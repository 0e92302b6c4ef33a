import type { LinkTerms } from '../../links/links.service.ts'
import type { SaleClick, SaleFacts, SaleOrder } from '../../sales/sale-facts.ts'
import type { OrderLine } from '../../shopify/order-facts.ts'

/** The facts of an order in order, an hour after its click. */

export const SUIT = '8123456789012'
export const CLICK_ID = '0197a3c0-5b1e-7d42-9c3f-2a64d1f0b8e7'
export const CLICKED_AT = Date.UTC(2026, 2, 1, 19, 0)

export const LINK: LinkTerms = {
  id: '0197a3c0-0000-7000-8000-000000000001',
  slug: 'lawn-by-sana',
  merchant_id: 'merchant',
  offer_id: 'offer',
  creator_id: 'creator',
  commission_rate: 1250,
  attribution_window_days: 30,
  product_ids: [SUIT],
  locked_at: CLICKED_AT - 90 * 86_400_000,
}
export const CLICK: SaleClick = { id: CLICK_ID, created_at: CLICKED_AT, tracked: true, link: LINK }
export const LINE: OrderLine = {
  product_id: SUIT,
  title: 'Lawn Suit',
  quantity: 1,
  original_quantity: 1,
  unit_price: 499_900,
  discount: 0,
  tax: 0,
  gift_card: false,
}
export const ORDER: SaleOrder = {
  order_id: '6100000000001',
  order_name: '#1001',
  created_at: CLICKED_AT + 3_600_000,
  currency: 'PKR',
  test: false,
  financial_status: 'paid',
  cancelled: false,
  taxes_included: false,
  tracking_reference: CLICK_ID,
  tracking_source: 'landing_site',
  lines: [LINE],
}
export const FACTS: SaleFacts = {
  order: ORDER,
  buyer_is_creator: false,
  buyer_name_matches: false,
  reporting_merchant_id: 'merchant',
  click: CLICK,
  creator_suspended: false,
  merchant_suspended: false,
  platform_fee_rate: 1000,
}
