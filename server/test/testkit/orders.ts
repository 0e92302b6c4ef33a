import { formatMoney, type Paisa } from '../../../shared/money.ts'
import { signShopifyBody } from '../../shopify/signature.ts'

export interface OrderChanges {
  /** Epoch ms: when the order was placed. */
  createdAt: number
  /** Paisa; the one line's price. */
  price: Paisa
  /** A click's id; none when left out. */
  click?: string
  id?: string
  name?: string
  email?: string
  financialStatus?: string
  /** Epoch ms: when the order was last changed; when it was placed, unless given. */
  updatedAt?: number
  cancelled?: boolean
  test?: boolean
  currency?: string
  /** Discount codes. */
  codes?: string[]
  buyerName?: { first_name: string; last_name: string }
}

let counter = 1

/** A paid order with one line, shaped as Shopify sends it, as far as the service looks at it. */
export function orderBody(changes: OrderChanges): string {
  const number = counter++
  const order = {
    id: 0,
    name: changes.name ?? `#${1000 + number}`,
    created_at: new Date(changes.createdAt).toISOString(),
    updated_at: new Date(changes.updatedAt ?? changes.createdAt).toISOString(),
    currency: changes.currency ?? 'PKR',
    test: changes.test ?? false,
    financial_status: changes.financialStatus ?? 'paid',
    cancelled_at: changes.cancelled ? new Date(changes.createdAt).toISOString() : null,
    taxes_included: false,
    email: changes.email ?? 'bushra.buyer@example.com',
    phone: '+923331234567',
    customer: changes.buyerName ?? { first_name: 'Bushra', last_name: 'Buyerova' },
    landing_site: changes.click === undefined ? '/' : `/products/kurta?aff_ref=${changes.click}`,
    note_attributes: [],
    discount_codes: (changes.codes ?? []).map((code) => ({ code, amount: '0.00', type: 'percentage' })),
    line_items: [
      { product_id: 8_123_456_789_012, title: 'Kurta', quantity: 1, price: formatMoney(changes.price) },
    ],
  }
  // An id may have more digits than a number holds.
  return JSON.stringify(order).replace('"id":0', `"id":${changes.id ?? 7_000_000_000_000 + number}`)
}

export interface StoreAccess {
  /** As in `X-Shopify-Shop-Domain`. */
  domain: string
  secret: string
}

/** The headers with which a store signs its delivery of a paid order. */
export function orderHeaders(
  { domain, secret }: StoreAccess,
  deliveryId: string,
  body: string | Buffer,
): Record<string, string> {
  return {
    'content-type': 'application/json',
    'x-shopify-topic': 'orders/paid',
    'x-shopify-shop-domain': domain,
    'x-shopify-webhook-id': deliveryId,
    'x-shopify-hmac-sha256': signShopifyBody(Buffer.from(body), secret),
  }
}
