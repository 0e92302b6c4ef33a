// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  afterCancellation,
  afterReport,
  afterSale,
  type DecidedOrder,
  type PendingOrderFacts,
  type PendingTerms,
  type PlacedReport,
  paidRate,
  versionOf,
  wasPaid,
} from './pending-order.rule.ts'

const terms = (expected_commission: number, link_id = 'link'): PendingTerms => ({
  order_name: '#1001',
  placed_at: 1000,
  offer_id: 'offer',
  creator_id: 'creator',
  coupon_code: null,
  link_id,
  expected_commission,
})

const report = (version: string, changes: Partial<PlacedReport> = {}): PlacedReport => ({
  version,
  paid: false,
  terms: terms(100),
  ...changes,
})

const CREATE = report('1')
const UPDATED = report('2', { terms: terms(200) })
const WITHOUT_LINK = report('3', { terms: null })
const PAID = report('4', { paid: true, terms: terms(300) })
const SALE: DecidedOrder = { id: 'sale', terms: terms(250, 'another link') }
const SALE_WITHOUT_LINK: DecidedOrder = { id: 'sale', terms: null }

const standing = (state: PendingOrderFacts['state'], version: string, expected = 100): PendingOrderFacts => ({
  ...terms(expected),
  state,
  version,
  sale_id: state === 'became_sale' ? 'sale' : null,
})

/** Every state against every report: the state after it, and the version and commission where they are others. */
const TABLE: [
  from: string,
  report: PlacedReport,
  to: [state: string, version: string, expected: number] | null,
][] = [
  ['none', CREATE, ['pending', '1', 100]],
  ['none', WITHOUT_LINK, null],
  ['none', PAID, null],
  ['pending', UPDATED, ['pending', '2', 200]],
  ['pending', WITHOUT_LINK, ['pending', '1', 100]],
  ['pending', PAID, ['pending', '1', 100]],
  ['expired', UPDATED, ['expired', '2', 200]],
  ['expired', WITHOUT_LINK, ['expired', '1', 100]],
  ['expired', PAID, ['expired', '1', 100]],
  ['cancelled', UPDATED, ['cancelled', '2', 200]],
  ['cancelled', PAID, ['cancelled', '1', 100]],
  ['became_sale', UPDATED, ['became_sale', '2', 200]],
  ['became_sale', PAID, ['became_sale', '1', 100]],
]

test('each report in each state leads to one state', () => {
  for (const [from, given, expected] of TABLE) {
    const current = from === 'none' ? null : standing(from as PendingOrderFacts['state'], '1')
    const after = afterReport(current, given)
    assert.equal(after && [after.state, after.version, after.expected_commission], expected, from)
  }
})

test('a report that says nothing new changes nothing: a duplicate, and an earlier form of the order', () => {
  for (const state of ['pending', 'expired', 'cancelled', 'became_sale'] as const) {
    const current = standing(state, '2', 200)
    for (const given of [CREATE, UPDATED, WITHOUT_LINK, PAID]) assert.is(afterReport(current, given), current)
  }
})

test('a cancellation ends the waiting, but not a sale', () => {
  for (const state of ['pending', 'expired', 'cancelled'] as const)
    assert.is(afterCancellation(standing(state, '1')).state, 'cancelled')
  assert.is(afterCancellation(standing('became_sale', '1')).state, 'became_sale')
})

test('a sale ends the waiting from every state, with its own link and commission', () => {
  for (const state of ['pending', 'expired', 'cancelled', 'became_sale'] as const) {
    const after = afterSale(standing(state, '1'), SALE)
    assert.equal(after, { ...standing('became_sale', '1', 250), link_id: 'another link' })
    assert.equal(afterSale(standing(state, '1'), SALE_WITHOUT_LINK), standing('became_sale', '1'))
  }
})

test('versions go by the time of the change, then placement first, then by the trigger, at last by the body', () => {
  const version = (updatedAt: number, placement: boolean, triggeredAt: number | null, bodyHash: string) =>
    versionOf({ updatedAt, placement, triggeredAt, bodyHash })
  const ascending = [
    version(-5, true, null, 'ff'),
    version(999, false, 9, 'ff'),
    version(1000, true, 9, 'ff'),
    version(1000, false, null, 'ff'),
    version(1000, false, 1, 'aa'),
    version(1000, false, 1, 'ab'),
    version(1_790_000_000_000, true, null, 'aa'),
  ]
  assert.equal([...ascending].reverse().sort(), ascending)
})

test('an order that was paid once waits for nothing', () => {
  for (const status of ['paid', 'partially_refunded', 'refunded']) assert.ok(wasPaid(status), status)
  for (const status of [null, 'pending', 'authorized', 'partially_paid', 'voided', 'expired'])
    assert.not(wasPaid(status))
})

test('the paid rate needs 20 decided orders, and has two decimals at most', () => {
  assert.is(paidRate({ decided: 19, paid: 19 }), null)
  assert.is(paidRate({ decided: 20, paid: 0 }), 0)
  assert.is(paidRate({ decided: 21, paid: 14 }), 66.67)
  assert.is(paidRate({ decided: 800, paid: 57 }), 7.13, 'half up')
})

test.run()
