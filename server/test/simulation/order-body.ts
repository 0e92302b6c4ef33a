import type { LinePlan, OrderPlan } from './story.ts'

/** Ids of the world's products, as its stores number them. */
export const PRODUCTS = ['8123456789012', '8123456789013', '820982911946154600', '8123456789999']

export interface OrderFacts {
  /** The store's id of the order, digits. */
  id: string
  name: string
  /** Epoch ms. */
  placedAt: number
  /** When it was last changed, epoch ms. */
  updatedAt: number
  /** What stands where the tracking reference belongs. */
  reference: string
  creatorEmail: string
}

/** The bytes that a store would send for an order, broken or not. */
export function orderBody(plan: OrderPlan, facts: OrderFacts): string {
  const body = {
    id: 'ORDER-ID',
    name: facts.name,
    created_at: writtenTime(facts.placedAt, plan.offset),
    updated_at: writtenTime(facts.updatedAt, plan.offset),
    currency: plan.broken === 'no currency' ? null : plan.currency,
    test: plan.test,
    financial_status: plan.status === 'cancelled' ? 'paid' : plan.status,
    cancelled_at: ['cancelled', 'voided'].includes(plan.status) ? '2026-11-01T00:00:00Z' : null,
    taxes_included: plan.taxesIncluded,
    ...buyer(plan, facts),
    ...trackedBy(plan, facts.reference),
    discount_codes: plan.codes.map((code) => ({ code, amount: '0.00', type: 'fixed_amount' })),
    line_items: plan.lines.map((line, index) => ({
      id: index + 1,
      ...lineItem(line, index === 0 ? plan.broken : 'no'),
      ...(index === 0 && plan.reference.place === 'line' && { properties: propertiesWith(facts.reference) }),
    })),
    ...refundsOf(plan),
  }
  // Put in as digits: they can be more than a JavaScript number holds.
  const text = JSON.stringify(body)
    .replace('"ORDER-ID"', facts.id)
    .replaceAll(/"product_id":"(\d+)"/g, '"product_id":$1')
    .replaceAll('/', '\\/')
  return plan.broken === 'half' ? text.slice(0, text.length / 2) : text
}

function lineItem(line: LinePlan, broken: OrderPlan['broken']): Record<string, unknown> {
  const price = { negative: `-${line.price}`, number: 1250.5, exponent: '1e3' }[broken as string]
  return {
    product_id: typeof line.product === 'number' ? PRODUCTS[line.product] : null,
    ...(line.product === 'deleted' && { product_exists: false }),
    title: line.extra === 'fee' ? 'Cash on Delivery fee' : 'Kurta',
    ...(line.extra === 'tip' && { tip_payment_gateway: 'manual' }),
    quantity: line.quantity,
    ...(line.removed > 0 && !line.isReturn
      ? { current_quantity: Math.max(0, line.quantity - line.removed) }
      : {}),
    price: price ?? line.price,
    total_discount: '0.00',
    discount_allocations: line.discounts.map((amount) => ({ amount })),
    tax_lines: line.taxes.map((amount) => ({ title: 'GST', price: amount })),
    gift_card: line.giftCard,
  }
}

/** Returned items, and amounts that were paid back without any. */
function refundsOf({ lines, refunds }: OrderPlan): Record<string, unknown> {
  const refund_line_items = lines.flatMap(({ removed, isReturn }, index) =>
    removed > 0 && isReturn ? [{ line_item_id: index + 1, quantity: removed }] : [],
  )
  const order_adjustments = refunds.map(({ amount, ofShipping }) => {
    return { amount: `-${amount}`, kind: ofShipping ? 'shipping_refund' : 'refund_discrepancy' }
  })
  const isEmpty = refund_line_items.length + order_adjustments.length === 0
  return isEmpty ? {} : { refunds: [{ refund_line_items, order_adjustments }] }
}

function buyer(plan: OrderPlan, facts: OrderFacts): Record<string, unknown> {
  if (plan.buyer === 'unknown') return { email: null, contact_email: null, customer: null }
  const email = {
    'a stranger': 'bushra@example.pk',
    'the creator': facts.creatorEmail.toUpperCase(),
    "the creator's mailbox": facts.creatorEmail.replace('@', '+shop@'),
  }[plan.buyer]
  return plan.taxesIncluded ? { email } : { email: '', contact_email: email }
}

function trackedBy(plan: OrderPlan, reference: string): Record<string, unknown> {
  const { place } = plan.reference
  const query = `utm_source=x&aff_ref=${encodeURIComponent(reference)}`
  return {
    note_attributes:
      place === 'note'
        ? [
            { name: 'gift', value: 'yes' },
            { name: 'aff_ref', value: reference },
          ]
        : [],
    landing_site: {
      // What the store's script wrote comes before the first page.
      note: '/products/kurta?aff_ref=of-another-creator',
      line: '/products/kurta?aff_ref=of-another-creator',
      landing: `/products/kurta?${query}`,
      url: `https://shop.pk/products/kurta?${query}#reviews`,
      none: plan.taxesIncluded ? null : '/',
    }[place],
  }
}

function propertiesWith(reference: string): Record<string, string>[] {
  return [
    { name: 'Engraving', value: 'aff_ref' },
    { name: '_aff_ref', value: reference },
  ]
}

const OFFSETS = { Z: 0, '+05:00': 5 * 60, '-03:30': -(3 * 60 + 30) }

function writtenTime(moment: number, offset: OrderPlan['offset']): string {
  const local = new Date(moment + OFFSETS[offset] * 60_000).toISOString()
  return local.replace('Z', offset)
}
