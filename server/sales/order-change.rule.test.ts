import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { LINE, ORDER } from '../test/testkit/sale-facts.ts'
import { type ComparedOrder, changedBeforePayment, changedParts, changesInTurn } from './order-change.rule.ts'
import type { SaleOrder } from './sale-facts.ts'

const OTHER_CLICK_ID = '0197a3c0-5b1e-7d42-9c3f-2a64d1f0b8e8'
const [line, order] = [LINE, ORDER]
const withoutReference: SaleOrder = { ...order, tracking_reference: null, tracking_source: null }
const cheaper: SaleOrder = { ...order, lines: [{ ...line, unit_price: 100 }] }
const earlier: SaleOrder = { ...order, created_at: order.created_at - 1 }

const code = { code: 'SANA10', starts_at: 0, ends_at: null, offer_status: 'live' as const }
const withCode: ComparedOrder = { ...withoutReference, coupons: [code] }
const withEndedCode: ComparedOrder = { ...withoutReference, coupons: [{ ...code, ends_at: 1 }] }

const changed = (changes: Partial<SaleOrder>) => changedParts(order, { ...order, ...changes })

test('an order that is reported again as it was has not changed', () => {
  assert.equal(changed({}), [])
  assert.equal(changedParts(withoutReference, withoutReference), [])
})

test('what decides neither payee nor amount is no change', () => {
  assert.equal(changed({ order_name: '#1001-A', financial_status: 'refunded', cancelled: true }), [])
  assert.equal(changed({ lines: [{ ...line, title: 'Lawn suit, unstitched' }] }), [])
  assert.equal(changed({ tracking_source: 'note_attributes' }), [])
})

test('an order that was decided as paid is refunded when it comes again as refunded as a whole, voided or canceled', () => {
  const receipt = JSON.stringify({ facts: { order }, decision: { rule_version: 4 } })
  const unpaid = JSON.stringify({
    facts: { order: { ...order, financial_status: 'pending' } },
    decision: { rule_version: 4 },
  })
  const again = (changes: Partial<SaleOrder>, former = receipt, decided = false) =>
    changesInTurn(new Map([['k', former]]), [{ key: 'k', order: { ...order, ...changes }, decided }])[0]
  for (const financial_status of ['refunded', 'voided'])
    assert.equal(again({ financial_status }), ['refunded'])
  assert.equal(again({ cancelled: true }), ['refunded'])
  for (const financial_status of ['paid', 'partially_refunded', null])
    assert.equal(again({ financial_status }), [])
  assert.equal(again({ financial_status: 'refunded' }, unpaid), [])
  assert.equal(again({ financial_status: 'refunded' }, receipt, true), [])
})

test('a reference that is added, dropped or exchanged is a change', () => {
  assert.equal(changedParts(withoutReference, order), ['tracking_reference'])
  assert.equal(changedParts(order, withoutReference), ['tracking_reference'])
  assert.equal(changed({ tracking_reference: OTHER_CLICK_ID }), ['tracking_reference'])
})

test('a reference that is no click id counts as none', () => {
  assert.equal(changedParts(withoutReference, { ...withoutReference, tracking_source: 'landing_site' }), [])
})

test('a coupon code in force that is added, dropped or exchanged is a change', () => {
  const other = { ...code, code: 'BILAL10' }
  assert.equal(changedParts(withoutReference, withCode), ['coupon_code'])
  assert.equal(changedParts(withCode, withoutReference), ['coupon_code'])
  assert.equal(changedParts(withCode, { ...withCode, coupons: [other] }), ['coupon_code'])
  assert.equal(changedParts(withCode, { ...withCode, coupons: [other, code] }), ['coupon_code'])
  assert.equal(changedParts(withCode, { ...withCode, coupons: [code, other] }), [])
})

test('a code that is not in force counts as none, and keeps what it was at the decision', () => {
  assert.equal(changedParts(withoutReference, withEndedCode), [])
  assert.equal(changedParts(withEndedCode, withoutReference), [])
  assert.equal(changedParts(withCode, withEndedCode), [])
  assert.equal(changedParts(withEndedCode, withCode), [])
})

test('each amount, the currency and the kind of tax are part of the amounts', () => {
  for (const amounts of [
    { unit_price: 499_800 },
    { quantity: 0 },
    { original_quantity: 2 },
    { discount: 100 },
    { tax: 100 },
    { gift_card: true },
    { product_id: null },
  ]) {
    assert.equal(changed({ lines: [{ ...line, ...amounts }] }), ['amounts'], JSON.stringify(amounts))
  }
  assert.equal(changed({ lines: [line, line] }), ['amounts'])
  assert.equal(changed({ lines: [] }), ['amounts'])
  assert.equal(changed({ currency: 'USD' }), ['amounts'])
  assert.equal(changed({ taxes_included: true }), ['amounts'])
})

test('all changed parts are named', () => {
  const other = { ...cheaper, created_at: 0, tracking_reference: null }
  assert.equal(changedParts(order, other), ['tracking_reference', 'amounts', 'created_at'])
})

test('an order may be edited and given its reference before it is paid, but not lose it or move in time', () => {
  assert.equal(changedBeforePayment(order, cheaper), [])
  assert.equal(changedBeforePayment(withoutReference, order), [])
  assert.equal(changedBeforePayment(order, withoutReference), ['tracking_reference'])
  assert.equal(changedBeforePayment(order, { ...cheaper, tracking_reference: OTHER_CLICK_ID }), [
    'tracking_reference',
  ])
  assert.equal(changedBeforePayment(order, earlier), ['created_at'])
  assert.equal(changedBeforePayment(withoutReference, withCode), [])
  assert.equal(changedBeforePayment(withCode, withoutReference), ['coupon_code'])
})

const receiptOn = ({ coupons = [], ...decided }: ComparedOrder) =>
  JSON.stringify({ facts: { order: decided, coupons }, decision: {} })
const report = (reported: ComparedOrder, decided = false, key = 'store 1001') => ({
  key,
  order: reported,
  decided,
})

test('the first report of an order has nothing to differ from', () => {
  assert.equal(changesInTurn(new Map(), [report(order, true)]), [[]])
})

test('a report is compared with the receipt of its own order', () => {
  const receipts = new Map([
    ['store 1001', receiptOn(order)],
    ['store 1002', receiptOn(earlier)],
  ])
  const reports = [report(cheaper), report(order), report(earlier, false, 'store 1002')]
  assert.equal(changesInTurn(receipts, reports), [['amounts'], [], []])
})

test('a report is compared with the coupon codes on the receipt', () => {
  const receipts = new Map([['store 1001', receiptOn(withCode)]])
  assert.equal(changesInTurn(receipts, [report(withoutReference)]), [['coupon_code']])
  assert.equal(changesInTurn(receipts, [report(withoutReference, true), report(withCode)]), [
    ['coupon_code'],
    ['coupon_code'],
  ])
})

test('after an order was decided on in a batch, the next report in it is compared with that one', () => {
  assert.equal(changesInTurn(new Map(), [report(order, true), report(cheaper), report(order)]), [
    [],
    ['amounts'],
    [],
  ])
  const pending = new Map([['store 1001', receiptOn(withoutReference)]])
  assert.equal(changesInTurn(pending, [report(order, true), report(order), report(withoutReference)]), [
    [],
    [],
    ['tracking_reference'],
  ])
})

test('an order that was not decided on again is compared with the receipt throughout', () => {
  const receipts = new Map([['store 1001', receiptOn(order)]])
  assert.equal(changesInTurn(receipts, [report(cheaper), report(cheaper)]), [['amounts'], ['amounts']])
})

test('a second decision flags a reference that is gone, not an amount that was edited', () => {
  const receipts = new Map([['store 1001', receiptOn(order)]])
  assert.equal(changesInTurn(receipts, [report(cheaper, true)]), [[]])
  assert.equal(changesInTurn(receipts, [report(withoutReference, true)]), [['tracking_reference']])
})

test('a receipt that cannot be read, or has no order, holds up no batch', () => {
  for (const receipt of ['', '{"facts":', '{}', '{"facts":{}}']) {
    const receipts = new Map([['store 1001', receipt]])
    assert.equal(changesInTurn(receipts, [report(order)]), [[]], receipt)
    assert.equal(changesInTurn(receipts, [report(order, true), report(cheaper)]), [[], ['amounts']], receipt)
  }
})

test.run()
