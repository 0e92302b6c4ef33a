import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type RejectionReason, SALE_REJECTION_REASONS } from '../../shared/rejection-reasons.ts'
import type { LinkTerms } from '../links/links.service.ts'
import { sha256 } from '../platform/crypto/vault.ts'
import { type OrderLine, readOrderFacts } from '../shopify/order-facts.ts'
import type { OracleReason } from '../test/oracle/sale.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { fc } from '../test/testkit/property.ts'
import { CLICK, CLICK_ID, CLICKED_AT, FACTS, LINE, LINK, ORDER, SUIT } from '../test/testkit/sale-facts.ts'
import {
  attributionOf,
  CLOCK_TOLERANCE_MS,
  decideSale,
  isKnownVersion,
  isUsableClick,
  namedBy,
  orderSource,
  readReceipt,
  SALE_RULE_VERSION,
  type SaleReceipt,
} from './accept-sale.rule.ts'
import { type SaleClick, type SaleCoupon, type SaleFacts, type SaleOrder, saleOrderOf } from './sale-facts.ts'

const DAY = 86_400_000
const [link, click, line, order, facts] = [LINK, CLICK, LINE, ORDER, FACTS]

const coupon: SaleCoupon = {
  code: 'BILAL10',
  starts_at: CLICKED_AT - DAY,
  ends_at: null,
  offer_status: 'live',
  creator_suspended: false,
  buyer_is_creator: false,
  buyer_name_matches: false,
  link: { ...link, id: 'link of the code', creator_id: 'other creator', commission_rate: 1000 },
}
const untracked: SaleFacts = {
  ...facts,
  order: { ...order, tracking_reference: null, tracking_source: null },
  click: null,
}
const withCoupon = (changes: Partial<SaleCoupon>, given = facts): SaleFacts => ({
  ...given,
  coupons: [{ ...coupon, ...changes }],
})

/** A line whose product the shop has deleted. */
const unknown: OrderLine = { ...line, product_id: null, product_unknown: true }

const withOrder = (changes: Partial<SaleOrder>): SaleFacts => ({ ...facts, order: { ...order, ...changes } })
const withClick = (changes: Partial<SaleClick>): SaleFacts => ({ ...facts, click: { ...click, ...changes } })
const withLink = (changes: Partial<LinkTerms>): SaleFacts => withClick({ link: { ...link, ...changes } })
const reasonFor = (given: SaleFacts) => decideSale(given).rejection_reason
const verdictOf = (given: SaleFacts, name: RejectionReason) =>
  decideSale(given).checks.find((check) => check.name === name)

test('an order in order is accepted, with every check on the receipt and half paisa rounded up', () => {
  const decision = decideSale(facts)
  const { checks, basis_lines: _, ...outcome } = decision
  assert.equal(
    checks.map(({ name, verdict }) => [name, verdict]),
    SALE_REJECTION_REASONS.map((name) => [
      name,
      ['coupon_not_in_force', 'product_unknown'].includes(name) ? 'not_applicable' : 'passed',
    ]),
  )
  assert.equal(outcome, {
    rule_version: SALE_RULE_VERSION,
    ...{ acceptance_status: 'accepted', rejection_reason: null, attributed_by: 'click' },
    ...{ net_amount: 499_900, commission_rate: 1250, commission: 62_488 },
    ...{ platform_fee_rate: 1000, platform_fee: 6_249 },
  })
})

/** By the oracle's reasons, so that this does not compile while the oracle lacks one of the rule's. */
const EXAMPLES: Record<OracleReason, SaleFacts[]> = {
  test_order: [withOrder({ test: true })],
  not_paid: [
    withOrder({ financial_status: null }),
    withOrder({ financial_status: 'pending' }),
    withOrder({ financial_status: 'partially_paid' }),
    withOrder({ financial_status: 'refunded' }),
    withOrder({ cancelled: true }),
  ],
  currency_not_pkr: [withOrder({ currency: 'USD' }), withOrder({ currency: 'INR' })],
  no_tracking_reference: [{ ...withOrder({ tracking_reference: null, tracking_source: null }), click: null }],
  coupon_not_in_force: [
    withCoupon({ ends_at: order.created_at }, untracked),
    withCoupon({ starts_at: order.created_at + 1000 }, untracked),
    ...(['draft', 'paused', 'ended', null] as const).map((offer_status) =>
      withCoupon({ offer_status }, untracked),
    ),
  ],
  unknown_tracking_reference: [
    { ...facts, click: null },
    { ...withOrder({ tracking_reference: null }), click: null },
  ],
  other_merchants_link: [withLink({ merchant_id: 'someone else' })],
  untracked_click: [withClick({ tracked: false })],
  click_after_order: [withOrder({ created_at: CLICKED_AT - CLOCK_TOLERANCE_MS - 1 })],
  outside_attribution_window: [
    withOrder({ created_at: CLICKED_AT + 30 * DAY + 1 }),
    withLink({ attribution_window_days: 0 }),
  ],
  creator_suspended: [
    { ...facts, creator_suspended: true },
    withCoupon({ creator_suspended: true }, untracked),
    withCoupon({ creator_suspended: true }, { ...facts, creator_suspended: true }),
  ],
  merchant_suspended: [{ ...facts, merchant_suspended: true }],
  self_purchase: [{ ...facts, buyer_is_creator: true }, withCoupon({ buyer_is_creator: true })],
  product_unknown: [
    withOrder({ lines: [unknown] }),
    withOrder({ lines: [{ ...line, product_id: '5' }, unknown] }),
    withCoupon({}, { ...untracked, order: { ...untracked.order, lines: [unknown] } }),
  ],
  product_not_in_offer: [
    withCoupon({ link: { ...coupon.link, product_ids: ['5'] } }, untracked),
    withOrder({ lines: [{ ...line, product_id: null }] }),
    withOrder({ lines: [{ ...unknown, product_id: '5' }] }),
    withOrder({ lines: [{ ...line, product_id: '5', bundle_product_id: '6' }] }),
    withLink({ product_ids: ['5'] }),
    withOrder({ lines: [] }),
  ],
  nothing_payable: [
    withOrder({ lines: [{ ...line, discount: 499_900 }] }),
    withOrder({ lines: [{ ...line, unit_price: 3 }] }),
    withOrder({ lines: [{ ...line, gift_card: true }] }),
    withOrder({ lines: [{ ...line, quantity: 0 }] }),
    withOrder({ amount_refunded: 499_900 }),
  ],
}

for (const reason of SALE_REJECTION_REASONS) {
  test(`rejected: ${reason}`, () => {
    for (const example of EXAMPLES[reason]) {
      const { acceptance_status, rejection_reason, commission, platform_fee } = decideSale(example)
      assert.equal(
        [acceptance_status, rejection_reason, commission, platform_fee],
        ['rejected', reason, 0, 0],
        JSON.stringify(example),
      )
    }
  })
}

test('still accepted: a partial refund, the last millisecond of the window and that of the clock tolerance', () => {
  for (const example of [
    withOrder({ financial_status: 'partially_refunded' }),
    withOrder({ created_at: CLICKED_AT + 30 * DAY }),
    withOrder({ created_at: CLICKED_AT }),
    withOrder({ created_at: CLICKED_AT - CLOCK_TOLERANCE_MS }),
    withLink({ attribution_window_days: 1 }),
  ])
    assert.is(reasonFor(example), null, JSON.stringify(example.order))
})

test('a rejected sale shows what it was about: the basis, over all lines while no link is known', () => {
  const lines = [line, { ...line, product_id: '5', unit_price: 100 }]
  for (const [facts, net_amount, commission_rate] of [
    [{ click: null }, 500_000, null],
    [{ creator_suspended: true }, 499_900, 1250],
  ] as const) {
    const decision = decideSale({ ...withOrder({ lines }), ...facts })
    assert.equal([decision.net_amount, decision.commission_rate], [net_amount, commission_rate])
  }
})

test('amounts of another currency never stand as rupees', () => {
  const given = withOrder({ currency: 'USD' })
  const { net_amount, basis_lines } = decideSale(given)
  assert.equal([net_amount, basis_lines], [0, []])
  assert.is(verdictOf(given, 'nothing_payable')?.verdict, 'not_applicable')
})

test("another merchant's terms are neither used nor shown", () => {
  const decision = decideSale(withLink({ merchant_id: 'someone else', product_ids: ['5'] }))
  assert.equal([decision.commission_rate, decision.net_amount], [null, 499_900])
  assert.not.match(JSON.stringify(decision), /someone else|1250|attribution_window_days/)
  const later = decision.checks.slice(SALE_REJECTION_REASONS.indexOf('other_merchants_link') + 1)
  const judged = later.filter((check) => check.verdict !== 'not_applicable').map((check) => check.name)
  assert.equal(judged, ['merchant_suspended'])
})

test('the checks after the first failure run anyway', () => {
  const both = decideSale({
    ...withOrder({ test: true, financial_status: 'pending' }),
    buyer_is_creator: true,
  })
  const failed = both.checks.filter((check) => check.verdict === 'failed').map((check) => check.name)
  assert.equal(failed, ['test_order', 'not_paid', 'self_purchase'])
})

test('terms that name no product let every product pass', () => {
  for (const product_ids of [null, []]) {
    assert.is(reasonFor(withLink({ product_ids })), null)
    assert.is(verdictOf(withLink({ product_ids }), 'product_not_in_offer')?.verdict, 'not_applicable')
  }
})

test('a coupon code in force comes before the click, whose checks then do not apply', () => {
  const decision = decideSale({ ...withCoupon({}), creator_suspended: true, buyer_is_creator: true })
  assert.equal(
    [decision.rejection_reason, decision.attributed_by, decision.commission_rate, decision.commission],
    [null, 'coupon', 1000, 49_990],
  )
  const skipped = decision.checks.filter((check) => check.verdict === 'not_applicable')
  assert.equal(pluck(skipped, 'name'), [
    ...['unknown_tracking_reference', 'other_merchants_link', 'untracked_click', 'click_after_order'],
    ...['outside_attribution_window', 'product_unknown'],
  ])
  const old = withCoupon({}, withOrder({ created_at: CLICKED_AT + 300 * DAY }))
  assert.is(reasonFor(old), null, 'a code has no attribution window')
})

test('a coupon code earns without a tracking reference, from the second of its start to before its end', () => {
  const { created_at } = order
  const decision = decideSale(withCoupon({ starts_at: created_at, ends_at: created_at + 1 }, untracked))
  assert.equal([decision.rejection_reason, decision.attributed_by], [null, 'coupon'])
  const sameSecond = withCoupon({ starts_at: created_at + 999 }, untracked)
  assert.is(reasonFor(sameSecond), null, 'the store writes whole seconds')
  assert.is(attributionOf(withCoupon({}, untracked))?.code, 'BILAL10')
})

test('a coupon code that is not in force falls back to the click', () => {
  const given = withCoupon({ ends_at: order.created_at })
  const decision = decideSale(given)
  assert.equal(
    [decision.rejection_reason, decision.attributed_by, decision.commission_rate],
    [null, 'click', 1250],
  )
  assert.equal(verdictOf(given, 'coupon_not_in_force'), {
    name: 'coupon_not_in_force',
    verdict: 'not_applicable',
    saw: {
      coupon_code: 'BILAL10',
      starts_at: coupon.starts_at,
      ends_at: order.created_at,
      offer_status: 'live',
      ordered_at: order.created_at,
    },
  })
  assert.is(reasonFor({ ...given, click: null }), 'unknown_tracking_reference')
})

test('of several coupon codes the first in force in the order of the list counts', () => {
  const ended = { ...coupon, code: 'ENDED', ends_at: CLICKED_AT }
  const second = { ...coupon, code: 'SANA15', link }
  assert.is(attributionOf({ ...facts, coupons: [ended, coupon, second] })?.code, 'BILAL10')
  assert.is(attributionOf({ ...facts, coupons: [ended, second, coupon] })?.code, 'SANA15')
})

const suspended = { creator_suspended: true }
const otherProduct = { link: { ...coupon.link, product_ids: ['5'] } }
const giftCardOnly: SaleFacts = {
  ...withLink({ product_ids: null }),
  order: { ...order, lines: [line, { ...line, product_id: '5', gift_card: true }] },
}

test('a coupon code that cannot earn gives way to a click or code that can, and the receipt says why', () => {
  const ended: Partial<SaleCoupon> = { offer_status: 'ended' }
  for (const [changes, because] of [
    [suspended, 'creator_suspended'],
    [otherProduct, 'product_not_in_offer'],
    [ended, null],
  ] as const) {
    const given = withCoupon(changes)
    const decision = decideSale(given)
    assert.equal(
      [decision.attributed_by, decision.rejection_reason, decision.commission_rate],
      ['click', null, 1250],
    )
    const { verdict, saw } = verdictOf(given, 'coupon_not_in_force') ?? {}
    assert.is(verdict, 'not_applicable')
    assert.equal([saw?.passed_over, saw?.because], because ? ['BILAL10', because] : [undefined, undefined])
    const second = { ...coupon, code: 'SANA15', link }
    const both = { ...given, coupons: [...(given.coupons ?? []), second] }
    assert.is(attributionOf(both)?.code, 'SANA15', 'the next code')
    assert.is(verdictOf(both, 'coupon_not_in_force')?.verdict, 'passed')
  }
  assert.is(attributionOf(withCoupon(otherProduct, giftCardOnly))?.by, 'click', 'a gift card earns nothing')
  const own = withCoupon({ buyer_is_creator: true })
  assert.is(attributionOf(own)?.by, 'coupon', 'one that may not is no obstacle')
})

test('a coupon code that cannot earn stays where no click can earn either', () => {
  const clicks: SaleFacts[] = [
    untracked,
    { ...facts, creator_suspended: true },
    withClick({ tracked: false }),
    withLink({ merchant_id: 'someone else' }),
    withLink({ product_ids: ['7'] }),
    withOrder({ created_at: CLICKED_AT + 31 * DAY }),
  ]
  for (const given of clicks) assert.is(attributionOf(withCoupon(suspended, given))?.by, 'coupon')
})

test('a line of a bundle counts by the product of the bundle', () => {
  const lines = [{ ...line, product_id: '5', bundle_product_id: SUIT }]
  assert.is(reasonFor(withOrder({ lines })), null)
  const other = [{ ...line, product_id: '5', bundle_product_id: '6' }]
  assert.equal(verdictOf(withOrder({ lines: other }), 'product_not_in_offer')?.saw, {
    products_in_offer: 1,
    lines: 1,
    lines_in_offer: 0,
    lines_of_bundles: 1,
  })
})

test('a deleted product that an earlier report names counts like any other', () => {
  assert.is(reasonFor(withOrder({ lines: [{ ...unknown, product_id: SUIT }] })), null)
  assert.is(verdictOf(withOrder({ lines: [line, unknown] }), 'product_unknown')?.verdict, 'not_applicable')
  assert.is(reasonFor(withLink({ product_ids: null })), null)
})

test('a receipt of version 3 is read, decided and explained as it was', () => {
  const given: SaleFacts = { ...withCoupon(suspended), rule_version: 3 }
  const decision = decideSale(given)
  assert.equal(
    [decision.rule_version, decision.rejection_reason, decision.attributed_by],
    [3, 'creator_suspended', 'coupon'],
  )
  assert.not.ok(decision.checks.some(({ name }) => name === 'product_unknown'))
  const { rule_version: _, ...stored } = given
  const receipt = readReceipt(JSON.stringify({ facts: stored, decision }))
  assert.equal(receipt && decideSale(receipt.facts), decision)
  assert.is(receipt && attributionOf(receipt.facts)?.by, 'coupon')
  assert.equal([2, 3, 4, 5].map(isKnownVersion), [false, true, true, false])
  const todays = { facts, decision: decideSale(facts) }
  assert.equal(readReceipt(JSON.stringify(todays)), todays)
  for (const text of ['', '{}', '{"facts":{}}', '{"facts":{"order":{}}}']) assert.is(readReceipt(text), null)
})

test('what led to the link: a coupon code in force, else the place of the tracking reference', () => {
  assert.is(orderSource(withCoupon({})), 'coupon')
  assert.is(orderSource(withCoupon({ offer_status: 'paused' })), 'landing')
  assert.is(orderSource(withOrder({ tracking_source: 'note_attributes' })), 'cart')
  assert.is(orderSource(withOrder({ tracking_source: 'line_item' })), 'line')
  assert.is(orderSource(untracked), 'none')
})

test("a sale's row names the link, the click or the code, and the same name", () => {
  const named = (given: SaleFacts | null) => Object.values(namedBy(given && attributionOf(given)))
  const columns = ['offer_id', 'creator_id', 'link_id', 'click_id', 'coupon_code', 'buyer_name_matches']
  assert.equal(Object.keys(namedBy(null)), columns)
  assert.equal(named(facts), ['offer', 'creator', link.id, CLICK_ID, null, 0])
  const byCode = ['offer', 'other creator', 'link of the code', null, 'BILAL10', 1]
  assert.equal(named(withCoupon({ buyer_name_matches: true })), byCode)
  assert.equal(named(null), [null, null, null, null, null, 0])
})

const anyLine = fc
  .record({
    product_id: fc.constantFrom(SUIT, '5', null),
    quantity: fc.nat(5),
    original_quantity: fc.nat(5),
    unit_price: fc.oneof(fc.nat(20), fc.nat(1_000_000)),
    discount: fc.nat(100_000),
    tax: fc.nat(100_000),
    gift_card: fc.boolean(),
  })
  .map((drawn) => ({ ...line, ...drawn }))
const rarely = fc.nat(9).map((roll) => roll === 0)
const anyCoupon: fc.Arbitrary<SaleCoupon> = fc.record({
  code: fc.constantFrom('BILAL10', 'SANA15'),
  starts_at: fc.integer({ min: CLICKED_AT - DAY, max: CLICKED_AT + 20 * DAY }),
  ends_at: fc.option(fc.integer({ min: CLICKED_AT + 20 * DAY, max: CLICKED_AT + 40 * DAY })),
  offer_status: fc.constantFrom('live', 'live', 'paused', null),
  creator_suspended: rarely,
  buyer_is_creator: rarely,
  buyer_name_matches: rarely,
  link: fc.constant(coupon.link),
})
const anyOrder = fc
  .record({
    created_at: fc.integer({ min: CLICKED_AT - 2 * CLOCK_TOLERANCE_MS, max: CLICKED_AT + 40 * DAY }),
    currency: fc.constantFrom('PKR', 'PKR', 'PKR', 'USD'),
    test: rarely,
    financial_status: fc.constantFrom('paid', 'paid', 'partially_refunded', 'pending', null),
    cancelled: rarely,
    taxes_included: fc.boolean(),
    tracking_reference: fc.constantFrom(CLICK_ID, CLICK_ID, null),
    tracking_source: fc.constantFrom('landing_site' as const, 'note_attributes' as const, null),
    lines: fc.array(anyLine, { maxLength: 5 }),
  })
  .map((drawn) => ({ ...order, ...drawn }))
const anyLink = fc
  .record({
    commission_rate: fc.integer({ min: 1, max: 9000 }),
    attribution_window_days: fc.integer({ min: 1, max: 365 }),
    product_ids: fc.constantFrom<string[] | null>(null, [SUIT], ['5', SUIT], []),
  })
  .map((drawn) => ({ ...link, ...drawn }))
const anyClick = fc.record({ tracked: rarely.map((no) => !no), link: anyLink })
const anyFacts: fc.Arbitrary<SaleFacts> = fc.record({
  order: anyOrder,
  coupons: fc.array(anyCoupon, { maxLength: 2 }),
  buyer_is_creator: rarely,
  buyer_name_matches: rarely,
  reporting_merchant_id: fc.constantFrom('merchant', 'merchant', 'merchant', 'other'),
  click: fc.option(
    anyClick.map((drawn) => ({ ...click, ...drawn })),
    { freq: 9 },
  ),
  creator_suspended: rarely,
  merchant_suspended: rarely,
  platform_fee_rate: fc.integer({ min: 0, max: 10_000 }),
})

test('a click is usable for its merchant, tracked, from the clock tolerance before it to the end of its window', () => {
  const window = 30 * DAY
  for (const [changes, at, usable] of [
    [{}, CLICKED_AT, true],
    [{}, CLICKED_AT - CLOCK_TOLERANCE_MS, true],
    [{}, CLICKED_AT - CLOCK_TOLERANCE_MS - 1, false],
    [{}, CLICKED_AT + window, true],
    [{}, CLICKED_AT + window + 1, false],
    [{ tracked: false }, CLICKED_AT, false],
    [{ link: { ...link, merchant_id: 'another' } }, CLICKED_AT, false],
  ] as const)
    assert.is(isUsableClick({ ...click, ...changes }, { merchantId: 'merchant', createdAt: at }), usable)
})

test('the reason is the first failed check; only an accepted sale pays, and never more than its basis', () => {
  fc.assert(
    fc.property(anyFacts, (given) => {
      const decision = decideSale(given)
      assert.equal(pluck(decision.checks, 'name'), [...SALE_REJECTION_REASONS])
      const failed = decision.checks.find((check) => check.verdict === 'failed')
      assert.is(decision.rejection_reason, failed?.name ?? null)
      assert.is(decision.acceptance_status, failed ? 'rejected' : 'accepted')
      assert.is(decision.commission > 0, !failed)
      assert.ok(decision.commission <= decision.net_amount)
      assert.ok(decision.platform_fee >= 0 && decision.platform_fee <= decision.commission)
      if (!failed) {
        const earns = decision.attributed_by === 'coupon' ? coupon : given.click
        assert.is(decision.commission_rate, earns?.link.commission_rate)
      }
    }),
    { numRuns: 2000 },
  )
})

test('replayed from the stored facts, a decision comes out the same', () => {
  fc.assert(
    fc.property(anyFacts, (given) => {
      const stored = JSON.stringify(given)
      const decision = decideSale(given)
      assert.equal(decideSale(JSON.parse(stored)), decision)
      assert.equal(JSON.parse(JSON.stringify(decision)), decision)
      assert.is(JSON.stringify(given), stored, 'the facts are left as they were')
    }),
    { numRuns: 1000 },
  )
})

/** Receipts are kept forever and compared as text: a faster way to write them may not write another one. */
test('a receipt is always the same text, byte for byte', () => {
  const body = {
    id: 6_200_000_000_001,
    name: '#1001 "کُرتا"',
    created_at: '2026-03-02T12:00:00+05:00',
    currency: 'PKR',
    financial_status: 'paid',
    landing_site: `/x?aff_ref=${CLICK_ID}`,
    line_items: [
      { product_id: 7, title: 'Lawn \\ 3-piece', quantity: 2, current_quantity: 1, price: '4999.00' },
      { product_id: 8, title: 'Gift', quantity: 1, price: '500.00', gift_card: true },
    ],
  }
  const given: SaleFacts = {
    ...facts,
    order: saleOrderOf(readOrderFacts(JSON.stringify(body), 'aff_ref')),
    click: { ...click, link: { ...link, id: 'link', product_ids: null, locked_at: 1_790_000_000_000 } },
  }
  const receipt: SaleReceipt = { facts: given, decision: decideSale(given) }
  const text = JSON.stringify(receipt)
  assert.is(receipt.decision.acceptance_status, 'accepted')
  assert.is(sha256(text), '557183edd25038cc3fd6edc4c4c622d1687b33a89a8615830901d33ab7058fba', text)
})

test.run()
