// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { application } from '../../shared/schemas/applications.ts'
import { billingCycle } from '../../shared/schemas/billing.ts'
import { exportedClick, exportResource } from '../../shared/schemas/jobs.ts'
import { payout } from '../../shared/schemas/payouts.ts'
import { pendingOrder } from '../../shared/schemas/pending-orders.ts'
import { sale } from '../../shared/schemas/sales.ts'
import { exportColumns, mayExport } from './export-columns.rule.ts'

const WIRE = {
  sales: sale,
  payouts: payout,
  clicks: exportedClick,
  billing_cycles: billingCycle,
  applications: application,
  pending_orders: pendingOrder,
} satisfies Record<z.infer<typeof exportResource>, z.ZodObject>

/** The wire's fields, with dots into nested objects. */
function fieldsOf(schema: z.ZodObject, before = ''): string[] {
  return Object.entries(schema.shape).flatMap(([name, field]) => {
    let inner = field as z.ZodType
    while (inner instanceof z.ZodOptional || inner instanceof z.ZodNullable)
      inner = inner.unwrap() as z.ZodType
    return inner instanceof z.ZodObject ? fieldsOf(inner, `${before}${name}.`) : [before + name]
  })
}

for (const resource of exportResource.options) {
  test(`an admin's columns of ${resource} are the wire's fields, and whose it is`, () => {
    const columns = exportColumns(resource, 'admin').map(({ path }) => path)
    assert.equal(
      columns.filter((path) => path !== 'merchant_id').toSorted(),
      fieldsOf(WIRE[resource]).toSorted(),
    )
    assert.is(
      columns.includes('merchant_id'),
      ['sales', 'billing_cycles', 'pending_orders'].includes(resource),
    )
  })
}

test('merchants and creators see their own columns', () => {
  const paths = (...of: Parameters<typeof exportColumns>) => exportColumns(...of).map(({ path }) => path)
  assert.ok(paths('sales', 'merchant').includes('platform_fee'))
  assert.not(paths('sales', 'creator').includes('platform_fee'))
  assert.not(paths('payouts', 'merchant').includes('failure_reason'))
  assert.not(paths('payouts', 'merchant').includes('processor_payout_id'))
  assert.not(paths('payouts', 'creator').includes('creator.id'))
  const clicks = ['id', 'affiliate_link_slug', 'tracked', 'kind', 'created_at']
  assert.equal(paths('clicks', 'creator'), [...clicks, 'sub_id'])
  assert.equal(paths('clicks', 'merchant'), clicks)
  assert.ok(paths('pending_orders', 'merchant').includes('order_id'))
  for (const path of ['order_id', 'store.id', 'store.shop_domain', 'merchant_id'])
    assert.not(paths('pending_orders', 'creator').includes(path))
  assert.not(mayExport('creator', 'billing_cycles'))
  assert.ok(mayExport('creator', 'clicks') && mayExport('merchant', 'billing_cycles'))
})

test('columns of sales keep their positions: a new one is the last, for every role', () => {
  const later = ['decided_at', 'attributed_by']
  const ends = {
    creator: ['created_at', ...later, 'sub_id'],
    merchant: ['created_at', ...later],
    admin: ['created_at', 'merchant_id', ...later, 'sub_id'],
  }
  for (const [role, end] of Object.entries(ends)) {
    const paths = exportColumns('sales', role as keyof typeof ends).map(({ path }) => path)
    const expected = ['ordered_at', ...end]
    assert.equal(paths.slice(-expected.length), expected, role)
  }
})

test.run()
