// database: none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ExportedOrder } from '../shopify/order-export.ts'
import { type ComparedSale, compareOrder, otherSubtotal } from './order-comparison.rule.ts'

const CONNECTED_AT = Date.UTC(2026, 9, 1)
const DAY = 86_400_000

const exported: ExportedOrder = {
  id: '6100000000001',
  name: '#1001',
  financial_status: 'paid',
  currency: 'PKR',
  created_at: CONNECTED_AT + DAY,
  paid_at: CONNECTED_AT + DAY,
  cancelled: false,
  subtotal: 450_000,
}
const line = {
  product_id: '8123456789012',
  title: 'Lawn Suit',
  quantity: 2,
  original_quantity: 2,
  unit_price: 250_000,
  discount: 50_000,
  tax: 0,
  gift_card: false,
}
const saleOf = (changes: Partial<typeof line> = {}): ComparedSale => ({
  rejection_reason: null,
  order: { currency: 'PKR', lines: [{ ...line, ...changes }] },
})

const it = suite("the comparison with a store's export")

it('says what became of a paid order', () => {
  assert.equal(compareOrder(exported, saleOf(), CONNECTED_AT), { kind: 'accepted' })
  const rejected = { rejection_reason: 'no_tracking_reference', order: null } as const
  assert.equal(compareOrder(exported, rejected, CONNECTED_AT), {
    kind: 'rejected',
    reason: 'no_tracking_reference',
  })
  assert.equal(compareOrder(exported, null, CONNECTED_AT), { kind: 'never_reported' })
})

it('expects no report of orders that are not paid or canceled', () => {
  for (const changes of [{ financial_status: 'pending' }, { cancelled: true }])
    assert.equal(compareOrder({ ...exported, ...changes }, null, CONNECTED_AT), {
      kind: 'not_due',
      why: 'not_paid',
    })
})

it('expects no report of orders paid before the store was connected, yet knows one that came', () => {
  const earlier = { ...exported, paid_at: CONNECTED_AT - 1 }
  const notDue = { kind: 'not_due', why: 'before_connection' }
  assert.equal(compareOrder(earlier, null, CONNECTED_AT), notDue)
  assert.equal(compareOrder(earlier, saleOf(), CONNECTED_AT), { kind: 'accepted' })
  assert.equal(compareOrder({ ...exported, paid_at: CONNECTED_AT }, null, CONNECTED_AT), {
    kind: 'never_reported',
  })
  const withoutPaidAt = { ...exported, paid_at: null }
  assert.equal(compareOrder({ ...withoutPaidAt, created_at: CONNECTED_AT - 1 }, null, CONNECTED_AT), notDue)
  assert.equal(compareOrder({ ...withoutPaidAt, created_at: null }, null, CONNECTED_AT), {
    kind: 'never_reported',
  })
})

it("finds the reported amount that differs from the export's subtotal", () => {
  assert.is(otherSubtotal(exported, saleOf()), null)
  assert.is(otherSubtotal({ ...exported, subtotal: 449_999 }, saleOf()), 450_000)
  assert.is(otherSubtotal({ ...exported, currency: 'USD' }, saleOf()), 450_000)
  assert.is(otherSubtotal({ ...exported, subtotal: null }, saleOf()), null)
  assert.is(otherSubtotal(exported, { rejection_reason: 'not_paid', order: null }), null)
})

it('accepts an edited order with its lines as ordered or as they are after the edit', () => {
  const edited = saleOf({ quantity: 1 })
  assert.is(otherSubtotal(exported, edited), null)
  assert.is(otherSubtotal({ ...exported, subtotal: 225_000 }, edited), null)
  assert.is(otherSubtotal({ ...exported, subtotal: 200_000 }, edited), 450_000)
  const added = saleOf({ quantity: 1, original_quantity: 0, discount: 0 })
  assert.is(otherSubtotal({ ...exported, subtotal: 250_000 }, added), null)
})

it.run()
