// database: none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ExportedOrder } from '../shopify/order-export.ts'
import { LINE } from '../test/testkit/sale-facts.ts'
import { compareOrder, otherSubtotal } from './order-comparison.rule.ts'

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
const line = { ...LINE, quantity: 2, original_quantity: 2, unit_price: 250_000, discount: 50_000 }
const orderOf = (changes: Partial<typeof line> = {}) => ({
  currency: 'PKR',
  lines: [{ ...line, ...changes }],
})
const accepted = { rejection_reason: null }

const it = suite("the comparison with a store's export")

it('says what became of a paid order', () => {
  const rejected = { rejection_reason: 'no_tracking_reference' } as const
  assert.is(compareOrder(exported, accepted, CONNECTED_AT), 'accepted')
  assert.is(compareOrder(exported, rejected, CONNECTED_AT), 'rejected')
  assert.is(compareOrder(exported, null, CONNECTED_AT), 'never_reported')
})

it('expects no report of orders that are not paid or canceled', () => {
  for (const changes of [{ financial_status: 'pending' }, { cancelled: true }])
    assert.is(compareOrder({ ...exported, ...changes }, null, CONNECTED_AT), 'not_paid')
})

it('expects no report of orders paid before the store was connected, yet knows one that came', () => {
  const statusOf = (paid_at: number | null, created_at: number | null, sale: typeof accepted | null = null) =>
    compareOrder({ ...exported, paid_at, created_at }, sale, CONNECTED_AT)
  const earlier = CONNECTED_AT - 1
  assert.is(statusOf(earlier, CONNECTED_AT), 'before_connection')
  assert.is(statusOf(earlier, CONNECTED_AT, accepted), 'accepted')
  assert.is(statusOf(CONNECTED_AT, earlier), 'never_reported')
  assert.is(statusOf(null, earlier), 'before_connection')
  assert.is(statusOf(null, null), 'never_reported')
})

it("finds the reported amount that differs from the export's subtotal", () => {
  assert.is(otherSubtotal(exported, orderOf()), null)
  assert.is(otherSubtotal({ ...exported, subtotal: 449_999 }, orderOf()), 450_000)
  assert.is(otherSubtotal({ ...exported, currency: 'USD' }, orderOf()), 450_000)
  assert.is(otherSubtotal({ ...exported, subtotal: null }, orderOf()), null)
  assert.is(otherSubtotal(exported, null), null)
})

it('accepts an edited order with its lines as ordered or as they are after the edit', () => {
  const edited = orderOf({ quantity: 1 })
  assert.is(otherSubtotal(exported, edited), null)
  assert.is(otherSubtotal({ ...exported, subtotal: 225_000 }, edited), null)
  assert.is(otherSubtotal({ ...exported, subtotal: 200_000 }, edited), 450_000)
  const added = orderOf({ quantity: 1, original_quantity: 0, discount: 0 })
  assert.is(otherSubtotal({ ...exported, subtotal: 250_000 }, added), null)
})

it.run()
