import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type OrderLine, readOrderFacts } from '../shopify/order-facts.ts'
import { fractionOf, NONE, plus, shareOf } from '../test/oracle/exact.ts'
import { pluckAll } from '../test/testkit/pluck.ts'
import { fc } from '../test/testkit/property.ts'
import { LINE, SUIT } from '../test/testkit/sale-facts.ts'
import { basisOf, commissionOn, isCovered, platformFeeOn } from './commission.rule.ts'

function line(changes: Partial<OrderLine> = {}): OrderLine {
  return { ...LINE, unit_price: 100_000, original_quantity: changes.quantity ?? 1, ...changes }
}
const plain = (...lines: OrderLine[]) => ({ taxes_included: false, lines })
const taxed = (...lines: OrderLine[]) => ({ taxes_included: true, lines })
const net = (order: { taxes_included: boolean; lines: OrderLine[] }) => basisOf(order, null).netAmount

test('price × quantity − allocations, summed over the lines', () => {
  const order = plain(line({ quantity: 2, discount: 15_000 }), line({ unit_price: 35_050, quantity: 3 }))
  assert.is(net(order), 2 * 100_000 - 15_000 + 3 * 35_050)
})

test('taxes come off only when prices contain them, after the discount', () => {
  const lines = [line({ unit_price: 118_000, discount: 11_800, tax: 16_200 })]
  assert.is(net(taxed(...lines)), 90_000)
  assert.is(net(plain(...lines)), 106_200)
  assert.is(basisOf(plain(...lines), null).lines[0]?.tax, 0)
})

test('the receipt of a line adds up by hand', () => {
  const order = taxed(
    line({ quantity: 2, original_quantity: 3, unit_price: 110_000, discount: 10_000, tax: 48_814 }),
  )
  assert.equal(basisOf(order, [SUIT]), {
    lines: [
      {
        product_id: SUIT,
        title: 'Lawn Suit',
        quantity: 2,
        unit_price: 110_000,
        gross: 220_000,
        discount: 6_667, // 10,000 × 2 ÷ 3 = 6,666.67
        tax: 32_543, // 48,814 × 2 ÷ 3 = 32,542.67
        net: 180_790,
        counted: true,
        why_not: null,
      },
    ],
    netAmount: 180_790,
  })
})

test('shares of what remains are rounded half up, once on the total of a line', () => {
  const remaining = (discount: number, quantity: number, original_quantity: number) =>
    basisOf(plain(line({ discount, quantity, original_quantity })), null).lines[0]?.discount
  assert.is(remaining(1, 1, 2), 1) // 0.5
  assert.is(remaining(3, 1, 2), 2) // 1.5
  assert.is(remaining(1, 1, 3), 0) // 0.33
  assert.is(remaining(2, 1, 3), 1) // 0.67
  assert.is(remaining(9, 1, 6), 2) // 1.5
  assert.is(remaining(999, 0, 6), 0)
  assert.is(remaining(999, 6, 6), 999)
  assert.is(remaining(10_000_000_000_000, 999_999, 1_000_000), 9_999_990_000_000)
})

test('pieces added by an edit do not raise the discount, and an order of none keeps it whole', () => {
  assert.is(net(plain(line({ quantity: 3, original_quantity: 2, discount: 50_000 }))), 250_000)
  assert.is(net(plain(line({ quantity: 1, original_quantity: 0, discount: 10_000 }))), 90_000)
})

test('gift cards are left out, and other products when the terms name some', () => {
  const order = plain(
    line({ gift_card: true }),
    line({ product_id: '5', unit_price: 20_000 }),
    line({ product_id: null, unit_price: 3_000 }),
    line({ unit_price: 100 }),
  )
  const why = (ids: string[] | null) => basisOf(order, ids).lines.map((one) => one.why_not)
  assert.equal(why([SUIT]), ['gift_card', 'other_product', 'other_product', null])
  assert.is(basisOf(order, [SUIT]).netAmount, 100)
  assert.equal(why(null), ['gift_card', null, null, null])
  assert.is(basisOf(order, null).netAmount, 23_100)
  assert.equal(why([]), why(null), 'an empty list names no product')
  assert.is(basisOf(order, ['5', SUIT]).netAmount, 20_100)
})

test('tips and fees are left out, unless the terms name their product; bundles count by their own product', () => {
  const fee = line({ not_goods: 'fee', product_id: '9' })
  const order = plain(line(), line({ not_goods: 'tip', product_id: null }), fee)
  const why = (ids: string[] | null) => basisOf(order, ids).lines.map((one) => one.why_not)
  assert.equal(why(null), [null, 'tip', 'fee'])
  assert.equal(why([]), [null, 'tip', 'fee'])
  assert.equal(why([SUIT]), [null, 'tip', 'fee'])
  assert.equal(why([SUIT, '9']), [null, 'tip', null])
  assert.is(basisOf(order, null).netAmount, 100_000)
  const part = line({ product_id: '5', bundle_product_id: SUIT })
  assert.equal([isCovered(part, [SUIT]), isCovered(part, ['5']), isCovered(part, ['6'])], [true, true, false])
})

test('what was refunded without items lowers each line in proportion, and the receipt shows it', () => {
  const lines = [line({ unit_price: 300_000 }), line({ product_id: '5', unit_price: 100_000 })]
  const basis = (order: object, ids: string[] | null) => basisOf({ ...plain(...lines), ...order }, ids)
  assert.equal(pluckAll(basis({ amount_refunded: 100_000 }, [SUIT]).lines, 'refunded', 'net'), [
    [75_000, 225_000],
    [25_000, 75_000],
  ])
  assert.is(basis({ amount_refunded: 100_000 }, [SUIT]).netAmount, 225_000)
  assert.is(basis({ amount_refunded: 100_000 }, null).netAmount, 300_000)
  assert.is(basis({ amount_refunded: 900_000 }, null).netAmount, 0)
  assert.not.ok('refunded' in (basis({}, null).lines[0] ?? {}))
  // Tax is a part of what was given back.
  const taxedOrder = { ...taxed(line({ unit_price: 118_000, tax: 18_000 })), amount_refunded: 59_000 }
  assert.is(basisOf(taxedOrder, null).netAmount, 50_000)
  const returned = { ...plain(line({ quantity: 0, original_quantity: 1 })), amount_refunded: 5 }
  assert.is(basisOf(returned, null).netAmount, 0)
})

test('a line is never below zero and takes nothing from the others', () => {
  const odd = line({ discount: 150_000 })
  assert.is(net(plain(odd)), 0)
  assert.is(net(plain(odd, line())), 100_000)
  assert.is(net(taxed(line({ discount: 90_000, tax: 20_000 }))), 0)
})

test('commission and fee are rounded half up to the paisa', () => {
  assert.is(commissionOn(499_900, 1250), 62_488) // 62,487.5
  assert.is(commissionOn(100, 1250), 13) // 12.5
  assert.is(commissionOn(100, 1249), 12) // 12.49
  assert.is(commissionOn(1, 5000), 1) // 0.5
  assert.is(commissionOn(1, 4999), 0)
  assert.is(commissionOn(0, 9000), 0)
  assert.is(commissionOn(9_999_999_999_999, 9000), 8_999_999_999_999)
  assert.is(platformFeeOn(62_488, 1000), 6_249) // 6,248.8
  assert.is(platformFeeOn(5, 1000), 1) // 0.5
  assert.is(platformFeeOn(62_488, 0), 0)
})

test('a rate above the whole or an amount below zero is a bug', () => {
  assert.throws(() => commissionOn(100, 10_001))
  assert.throws(() => commissionOn(-1, 1000))
  assert.throws(() => commissionOn(0.5, 1000))
})

const anyLine: fc.Arbitrary<OrderLine> = fc.record({
  product_id: fc.constantFrom(SUIT, '5', '6', null),
  title: fc.string({ maxLength: 5 }),
  quantity: fc.nat(20),
  original_quantity: fc.nat(20),
  unit_price: fc.nat(10_000_000),
  discount: fc.nat(2_000_000),
  tax: fc.nat(2_000_000),
  gift_card: fc.boolean(),
})
const anyOrder = fc.record({ taxes_included: fc.boolean(), lines: fc.array(anyLine, { maxLength: 8 }) })
const anyProducts = fc.option(fc.subarray([SUIT, '5', '6']))

test('0 ≤ commission ≤ basis ≤ gross, and each counted line adds up', () => {
  fc.assert(
    fc.property(anyOrder, anyProducts, fc.integer({ min: 1, max: 9000 }), (order, products, rate) => {
      const { lines, netAmount } = basisOf(order, products)
      const commission = commissionOn(netAmount, rate)
      assert.ok(commission >= 0 && commission <= netAmount)
      assert.ok(netAmount <= lines.reduce((sum, one) => sum + one.gross, 0))
      for (const one of lines) {
        assert.is(one.net, Math.max(0, one.gross - one.discount - one.tax))
        assert.is(one.counted, one.why_not === null)
      }
    }),
    { numRuns: 1000 },
  )
})

test('the basis never grows when a line is removed, and does not depend on the order of lines', () => {
  fc.assert(
    fc.property(anyOrder, anyProducts, fc.nat(), (order, products, pick) => {
      const whole = basisOf(order, products).netAmount
      const fewer = order.lines.filter((_, index) => index !== pick % Math.max(1, order.lines.length))
      assert.ok(basisOf({ ...order, lines: fewer }, products).netAmount <= whole)
      assert.is(basisOf({ ...order, lines: order.lines.toReversed() }, products).netAmount, whole)
    }),
    { numRuns: 1000 },
  )
})

/** A body with one line of these texts, read and worked out. */
function lineOfBody({ quantity, left, price, discounts, taxes }: Texts) {
  const body = {
    id: 1,
    created_at: '2026-11-01T10:00:00+05:00',
    currency: 'PKR',
    taxes_included: true,
    line_items: [
      {
        quantity,
        current_quantity: left,
        price,
        discount_allocations: discounts.map((amount) => ({ amount })),
        tax_lines: taxes.map((amount) => ({ price: amount })),
      },
    ],
  }
  // As the receipt stores it.
  const facts = JSON.parse(JSON.stringify(readOrderFacts(JSON.stringify(body), 'aff_ref')))
  return basisOf(facts, null).lines[0]
}

interface Texts {
  quantity: number
  left: number
  price: string
  discounts: string[]
  taxes: string[]
}

test('prices of more than two places are multiplied first and rounded once', () => {
  const rows: [price: string, quantity: number, gross: number][] = [
    ['1.005', 1000, 100_500],
    ['1.005', 1, 101],
    ['0.001', 4, 0],
    ['0.001', 5, 1],
    ['0.333333', 3, 100],
    ['12.3449999999', 1, 1234],
    ['0.00000000000000000001', 1, 0],
    ['999999999.995', 1, 100_000_000_000],
  ]
  for (const [price, quantity, gross] of rows) {
    const found = lineOfBody({ quantity, left: quantity, price, discounts: [], taxes: [] })
    assert.is(found?.gross, gross, price)
  }
  const parts = { price: '10', discounts: ['0.125', '0.125'], taxes: ['0.0049', '0.0049'] }
  const [whole, half] = [
    lineOfBody({ quantity: 2, left: 2, ...parts }),
    lineOfBody({ quantity: 2, left: 1, ...parts }),
  ]
  assert.equal([whole?.discount, whole?.tax, half?.discount, half?.tax], [25, 1, 13, 0])
})

test('gross, discount and tax of a line equal exact rational arithmetic, rounded half up once', () => {
  const amount = fc
    .tuple(fc.nat(999_999), fc.option(fc.stringMatching(/^[0-9]{1,20}$/), { nil: null }))
    .map(([whole, fraction]) => (fraction === null ? String(whole) : `${whole}.${fraction}`))
  const few = fc.array(amount, { maxLength: 4 })
  const pieces = fc.integer({ min: 1, max: 900 })
  fc.assert(
    fc.property(pieces, fc.nat(900), amount, few, few, (quantity, cut, price, discounts, taxes) => {
      const left = Math.max(0, quantity - cut)
      const found = lineOfBody({ quantity, left, price, discounts, taxes })
      const sum = (texts: string[]) =>
        texts.reduce((total, text) => plus(total, fractionOf(text) ?? NONE), NONE)
      assert.equal(
        [found?.gross, found?.discount, found?.tax],
        [
          shareOf(sum([price]), left, 1),
          shareOf(sum(discounts), left, quantity),
          shareOf(sum(taxes), left, quantity),
        ],
      )
    }),
    { numRuns: 1000 },
  )
})

test.run()
