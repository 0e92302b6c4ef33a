import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import { MalformedOrder } from './fields.ts'
import { type OrderFacts, readOrderFacts } from './order-facts.ts'

const line = {
  id: 14012345678901,
  product_id: 8123456789012,
  title: 'Ajrak Shawl',
  quantity: 3,
  current_quantity: 2,
  price: '1850.00',
  total_discount: '0.00',
  discount_allocations: [{ amount: '100.00' }, { amount: '55.50' }],
  tax_lines: [{ price: '282.20', rate: 0.18, title: 'GST' }],
  gift_card: false,
}
const BODY = {
  id: 6100000000001,
  name: '#1001',
  created_at: '2026-03-01T00:30:00+05:00',
  currency: 'PKR',
  test: false,
  financial_status: 'paid',
  cancelled_at: null,
  taxes_included: true,
  email: '  Ayesha.K@Example.com ',
  note_attributes: [],
  landing_site: null,
  line_items: [line],
}

const bodyWithId = (id: string) => JSON.stringify(BODY).replace('"id":6100000000001', `"id":${id}`)

function read(changes: Record<string, unknown> = {}): OrderFacts {
  return readOrderFacts(JSON.stringify({ ...BODY, ...changes }), 'aff_ref')
}
function readLine(changes: Record<string, unknown>) {
  return read({ line_items: [{ ...line, ...changes }] }).lines[0]
}
function refusal(read: () => unknown): string {
  try {
    read()
  } catch (error) {
    if (error instanceof MalformedOrder) return error.reason
    throw error
  }
  throw new Error('was read')
}

const isRefused = (reading: () => unknown, reason: RegExp) => assert.match(refusal(reading), reason)

test('an order becomes plain, checked facts', () => {
  assert.equal(read({ unknown_field: { deep: [1, 2] } }), {
    ...{ order_id: '6100000000001', order_name: '#1001', currency: 'PKR', test: false, cancelled: false },
    ...{ created_at: Date.UTC(2026, 1, 28, 19, 30), updated_at: null },
    ...{ financial_status: 'paid', taxes_included: true, buyer_emails: ['ayesha.k@example.com'] },
    ...{ buyer_names: [], shop_hosts: [], discount_codes: [], references: [] },
    lines: [
      {
        ...{ product_id: '8123456789012', title: 'Ajrak Shawl', quantity: 2, original_quantity: 3 },
        ...{ unit_price: 185_000, discount: 15_550, tax: 28_220, gift_card: false },
      },
    ],
  })
  assert.equal(JSON.parse(JSON.stringify(read())), read())
})

test('the time of the last change may be missing or malformed', () => {
  const updated = (updated_at: unknown) => read({ updated_at }).updated_at
  assert.is(updated('2026-03-01T12:00:00+05:00'), Date.UTC(2026, 2, 1, 7))
  for (const odd of [null, '', 'yesterday', 5, {}, '2026-02-31T00:00:00Z']) assert.is(updated(odd), null)
})

test('a bare body is enough: what Shopify may leave out has a meaning', () => {
  const bare = {
    id: 7,
    created_at: '2026-03-01T12:00:00Z',
    currency: 'PKR',
    line_items: [{ quantity: 1, price: '5' }],
  }
  const facts = readOrderFacts(JSON.stringify(bare), 'aff_ref')
  const { order_name, financial_status, buyer_emails, taxes_included, lines } = facts
  assert.equal([order_name, financial_status, buyer_emails, taxes_included], ['7', null, [], false])
  assert.equal(lines, [
    {
      ...{ product_id: null, title: '', quantity: 1, original_quantity: 1 },
      ...{ unit_price: 500, discount: 0, tax: 0, gift_card: false },
    },
  ])
})

test('ids above 2^53 keep every digit, and so does a text of digits next to them', () => {
  const text = JSON.stringify({ ...BODY, note: '[12345678901234567890' })
    .replace('6100000000001', '820982911946154508')
    .replace('8123456789012', ' 9007199254740993')
  const facts = readOrderFacts(text, 'aff_ref')
  assert.is(facts.order_id, '820982911946154508')
  assert.is(facts.lines[0]?.product_id, '9007199254740993')
  const anyId = fc.bigInt({ min: 1n, max: 2n ** 64n - 1n })
  fc.assert(
    fc.property(anyId, fc.constantFrom('', ' ', '\n\t'), (id, space) => {
      assert.is(readOrderFacts(bodyWithId(`${space}${id}`), 'aff_ref').order_id, String(id))
    }),
    { numRuns: 300 },
  )
})

test('an id that is no whole number above 0 is refused', () => {
  for (const id of '0 -5 1.5 8.2e17 1e300 "00012" "x" {} true 123456789012345678901234'.split(' ')) {
    const reason = refusal(() => readOrderFacts(bodyWithId(id), 'aff_ref'))
    assert.match(reason, /^id is no whole number above 0/, id)
  }
  const reasons = [null, undefined].map((id) => refusal(() => read({ id })))
  assert.equal(reasons, ['id is missing', 'id is missing'])
})

test('what is no order is refused with a plain reason', () => {
  const reasonOf = (text: string) => refusal(() => readOrderFacts(text, 'aff_ref'))
  for (const text of ['', '{', 'nope', '{"id":1}}', '\ufeff{}', '{"id":1234567890123456789,}'])
    assert.is(reasonOf(text), 'not JSON', text)
  for (const text of ['<?xml version="1.0"?><order/>', ' <order>'])
    assert.is(reasonOf(text), 'XML instead of JSON', text)
  for (const text of ['null', '[]', '7', '"order"']) assert.is(reasonOf(text), 'not an object', text)
  const ofOrder: [changes: Record<string, unknown>, reason: RegExp][] = [
    [{ line_items: undefined }, /line_items is no list/],
    [{ line_items: [null] }, /line_items is no list of objects/],
    [{ line_items: Array(1001).fill(line) }, /more than 1000/],
    [{ currency: 'pkr' }, /currency/],
    [{ currency: undefined }, /currency/],
    [{ test: 'false' }, /test is neither/],
    [{ taxes_included: 1 }, /taxes_included is neither/],
  ]
  for (const [changes, reason] of ofOrder) isRefused(() => read(changes), reason)
  const ofLine: [changes: Record<string, unknown>, reason: RegExp][] = [
    [{ quantity: -1 }, /line_items\[0\]\.quantity/],
    [{ quantity: '1' }, /quantity/],
    [{ current_quantity: 0.5 }, /current_quantity/],
    [{ gift_card: 'no' }, /gift_card/],
    [{ product_id: 'shawl' }, /product_id/],
    [{ tax_lines: {} }, /tax_lines is no list/],
    // A reason never repeats a value.
    [{ price: 'ayesha@example.com' }, /^(?!.*ayesha).*price/],
  ]
  for (const [changes, reason] of ofLine) isRefused(() => readLine(changes), reason)
})

test('an order of a billion rupees is read, one of more is refused; other currencies have a wider bound', () => {
  const tooMuch = /its amounts exceed Rs 1,000,000,000.00/
  const taxed = (price: string) => ({ ...line, tax_lines: [{ price }] })
  const one = { quantity: 1, current_quantity: 1 }
  assert.is(readLine({ price: '1000000000.00', ...one })?.unit_price, 100_000_000_000)
  const refused = [
    () => readLine({ price: '1000000000.005', ...one }),
    () => readLine({ price: '99999999999.99', quantity: 1015 }),
    () => readLine({ price: '1.00', quantity: Number.MAX_SAFE_INTEGER }),
    () => read({ line_items: [taxed('500000000.00'), taxed('500000000.01')] }),
  ]
  for (const reading of refused) isRefused(reading, tooMuch)
  const inRial = (quantity: number) =>
    read({ currency: 'IRR', line_items: [{ ...line, price: '99999999999.99', ...one, quantity }] })
  assert.is(inRial(1).lines[0]?.unit_price, 9_999_999_999_999)
  isRefused(() => inRial(2), /amounts are out of range/)
  isRefused(() => readLine({ price: '100000000000.00' }), /no decimal amount/)
})

test('text that a database would refuse is cleaned', () => {
  const facts = read({ name: '#1\u00001\ud800', line_items: [{ ...line, title: 'شال\u0007' }] })
  assert.is(facts.order_name, '#1 1\ufffd')
  assert.is(facts.lines[0]?.title, 'شال')
})

test('the buyers are all addresses of the order, once', () => {
  const emails = (changes: Record<string, unknown>) => read({ email: null, ...changes }).buyer_emails
  const customer = { email: 'C@B.pk' }
  const rows: [order: Record<string, unknown>, found: string[]][] = [
    [{ contact_email: 'A@B.pk' }, ['a@b.pk']],
    [{ email: '', customer }, ['c@b.pk']],
    [{ email: 'shop@b.pk', contact_email: 'Shop@b.pk', customer }, ['shop@b.pk', 'c@b.pk']],
    [{ billing_address: { email: 'd@b.pk' }, shipping_address: customer }, ['d@b.pk', 'c@b.pk']],
    [{ customer: null }, []],
    [{ customer: 'x', contact_email: 5 }, []],
  ]
  for (const [order, found] of rows) assert.equal(emails(order), found, JSON.stringify(order))
})

test('the hosts of the shop are those of the order page and of a whole first address', () => {
  const hosts = (changes: Record<string, unknown>) => read(changes).shop_hosts
  const page = 'https://Kurta.pk/62/orders/ab/authenticate?key=1'
  assert.equal(hosts({ order_status_url: page }), ['kurta.pk'])
  const first = 'http://shop.kurta.pk:8080/products/x?aff_ref=1'
  assert.equal(hosts({ order_status_url: page, landing_site: first }), ['kurta.pk', 'shop.kurta.pk'])
  assert.equal(hosts({ order_status_url: page, landing_site: page }), ['kurta.pk'])
  const none =
    '/products/x kurta.pk https://localhost/x https://127.0.0.1/x https://[::1]/x ftp://kurta.pk/x https://'
  const long = `https://kurta.pk/${'x'.repeat(3000)}`
  for (const value of [...none.split(' '), long, 5, { href: page }])
    assert.equal(hosts({ order_status_url: value, landing_site: value }), [], String(value))
})

test('a tip is marked, as Shopify writes it or by its title; fees by their titles', () => {
  const marks = (changes: object, order: object = {}, fees?: string[]) => {
    const body = { ...BODY, ...order, line_items: [{ ...line, ...changes }] }
    return readOrderFacts(JSON.stringify(body), 'aff_ref', fees).lines[0]?.not_goods ?? null
  }
  const none = { product_id: null, product_exists: false }
  const rows: [changes: object, order: object, mark: string | null][] = [
    [{ ...none, title: 'Tip', tip_payment_gateway: 'manual' }, {}, 'tip'],
    [{ ...none, title: 'Tip', tip_payment_gateway: null }, {}, 'tip'],
    [{ ...none, title: 'Trinkgeld', tip: { payment_gateway: 'manual' } }, {}, 'tip'],
    [{ ...none, title: ' TIP ' }, { total_tip_received: '500.00' }, 'tip'],
    [{ ...none, title: 'Tip' }, { total_tip_received: '0.00' }, null],
    [{ title: 'Tip' }, { total_tip_received: '500.00' }, null],
    [{ ...none, title: 'Cash on Delivery fee' }, {}, 'fee'],
    [{ ...none, title: 'COD Fee (Rs. 200)' }, {}, 'fee'],
    [{ title: 'Cash-on-delivery charges' }, {}, 'fee'],
    [{ ...none, title: 'ڈیلیوری چارجز' }, {}, 'fee'],
    [{ title: 'COD liver oil' }, {}, null],
    [{ ...none, title: 'Stitching to measure' }, { source_name: 'shopify_draft_order' }, null],
    [{ ...none, title: '' }, {}, null],
  ]
  for (const [changes, order, mark] of rows) assert.is(marks(changes, order), mark, JSON.stringify(changes))
  assert.is(marks({ title: 'COD fee' }, {}, []), null)
  assert.is(marks({ title: 'Urgent 24 h' }, {}, ['urgent h']), 'fee')
})

test('a line of the catalogue without its product is a deleted product; a custom item of staff is none', () => {
  const none = { product_id: null, product_exists: false }
  const isUnknown = (changes: object, order: Record<string, unknown> = {}) =>
    read({ ...order, line_items: [{ ...line, ...changes }] }).lines[0]?.product_unknown ?? false
  const draft = { source_name: 'shopify_draft_order' }
  assert.is(isUnknown(none), true)
  assert.is(isUnknown({ ...none, sku: 'AJ-1' }, draft), true)
  assert.is(isUnknown({ ...none, vendor: 'Chenab' }, draft), true)
  assert.is(isUnknown({ ...none, sku: '', vendor: null }, draft), false)
  assert.is(isUnknown({ ...none, title: 'COD fee' }), false)
  assert.is(isUnknown({ ...none, gift_card: true }), false)
  assert.is(isUnknown({ product_exists: false }), false)
  assert.is(isUnknown({ product_id: null }), false)
})

test('the product of a bundle is read from the group of a line', () => {
  const bundleOf = (changes: object, order: Record<string, unknown> = {}) =>
    read({ ...order, line_items: [{ ...line, ...changes }] }).lines[0]?.bundle_product_id ?? null
  const line_item_groups = [{ id: 5, product_id: 77 }, { id: 6 }, null]
  assert.is(bundleOf({ line_item_group: { id: 5, title: 'Eid box', product_id: 77 } }), '77')
  assert.is(bundleOf({ sales_line_item_group_id: 5 }, { line_item_groups }), '77')
  assert.is(bundleOf({ line_item_group: { id: 5 } }, { line_item_groups }), '77')
  const odd = [{ sales_line_item_group_id: 6 }, { line_item_group: 'x' }, { sales_line_item_group_id: null }]
  for (const changes of odd) assert.is(bundleOf(changes, { line_item_groups }), null, JSON.stringify(changes))
})

test('without current_quantity, returned items are taken off; with it they are not taken off twice', () => {
  const refunds = [
    { refund_line_items: [{ line_item_id: line.id, quantity: 1 }] },
    { refund_line_items: [{ line_item_id: line.id, quantity: 1 }, null, { line_item_id: 5 }] },
    {},
    null,
  ]
  const { current_quantity: _, ...older } = line
  const left = (one: object) => read({ refunds, line_items: [one] }).lines[0]?.quantity
  const others = [{ ...older, current_quantity: null }, line, { ...older, id: 9 }, { ...older, quantity: 1 }]
  assert.equal([older, ...others].map(left), [1, 1, 2, 3, 0])
})

const one = { product_id: 7, title: 'Kurta', quantity: 1, price: '1000.00' }
const moneyOf = (order: Record<string, unknown>) => {
  const { lines, discount_spread, amount_refunded, unclear } = read(order)
  return { discounts: lines.map(({ discount }) => discount), discount_spread, amount_refunded, unclear }
}
const NOTHING = { discount_spread: undefined, amount_refunded: undefined, unclear: undefined }

test('discounts that no line carries: by the subtotal, by free shipping, or the body does not tell', () => {
  const two = { ...one, price: '500.00' }
  const shipped = [{ price: '200.00', discount_allocations: [] as object[] }]
  const freely = [{ price: '200.00', discount_allocations: [{ amount: '200.00' }] }]
  const order = (
    line_items: object[],
    total?: unknown,
    subtotal?: unknown,
    shipping_lines = [] as object[],
  ) => ({
    ...{ line_items, total_discounts: total, subtotal_price: subtotal, shipping_lines },
  })
  const rows: [order: Record<string, unknown>, discounts: number[], more?: object][] = [
    [order([{ ...one, total_discount: '300.00' }]), [30_000]],
    [order([one], '300.00'), [30_000], { discount_spread: 30_000 }],
    [order([one, two], '300.01', '1199.99', shipped), [20_001, 10_000], { discount_spread: 30_001 }],
    // A discount on shipping.
    [order([one], '200.00', '1000.00', shipped), [0]],
    [order([one], '200.00', undefined, freely), [0]],
    [order([one], '300.00', undefined, shipped), [0], { unclear: ['discount'] }],
    // Less is missing than the discount says, or more.
    [order([one], '300.00', '900.00', shipped), [10_000], { discount_spread: 10_000 }],
    [order([one], '300.00', '500.00'), [0], { unclear: ['subtotal'] }],
    [order([one], 'ten', 7), [0]],
  ]
  for (const [body, discounts, more] of rows)
    assert.equal(moneyOf(body), { ...NOTHING, discounts, ...more }, JSON.stringify(body))
  const tip = { ...one, title: 'Tip', tip_payment_gateway: 'manual' }
  assert.equal(moneyOf({ line_items: [one, tip], total_discounts: '300.00' }).discounts, [30_000, 0])
})

test('amounts that were refunded without items', () => {
  const refunded = (...refunds: object[]) => moneyOf({ line_items: [one], refunds }).amount_refunded
  const adjusted = (amount: string, more: object = { kind: 'refund_discrepancy' }) => ({
    refund_line_items: [],
    order_adjustments: [{ amount, ...more }],
  })
  const paid = (status: string, amount: string) => ({ transactions: [{ kind: 'refund', status, amount }] })
  const items = { refund_line_items: [{ line_item_id: 1, quantity: 1 }] }
  const rows: [refunds: object[], paisa: number | undefined][] = [
    [[adjusted('-300.00')], 30_000],
    [[adjusted('-300.00'), adjusted('-100.00', { reason: 'Refund discrepancy' })], 40_000],
    [[adjusted('-200.00', { kind: 'shipping_refund' })], undefined],
    [[adjusted('-200.00', { reason: 'Shipping refund' })], undefined],
    // Given back before its item came back.
    [[adjusted('-300.00'), adjusted('300.00')], undefined],
    [[adjusted('-5000.00')], 100_000],
    [[paid('success', '250.00')], 25_000],
    [[paid('failure', '250.00')], undefined],
    [[{ ...items, transactions: [{ kind: 'refund', amount: '9.00' }] }], undefined],
  ]
  for (const [refunds, paisa] of rows) assert.is(refunded(...refunds), paisa, JSON.stringify(refunds))
  const status = { line_items: [one], financial_status: 'partially_refunded' }
  assert.equal(moneyOf(status).unclear, ['refund'])
  const returned = { line_items: [{ ...one, quantity: 2, current_quantity: 1 }] }
  for (const more of [{ refunds: [adjusted('-1.00')] }, returned])
    assert.is(moneyOf({ ...status, ...more }).unclear, undefined, JSON.stringify(more))
})

test('a subtotal that the lines do not add up to is noted, and never decides', () => {
  const gone = { ...one, fulfillable_quantity: 0 }
  const half = { ...one, quantity: 2, current_quantity: 1 }
  const refunds = [{ order_adjustments: [{ amount: '-300.00', kind: 'refund_discrepancy' }] }]
  const tip = { ...one, title: 'Tip', tip_payment_gateway: 'manual' }
  const noted: Record<string, unknown>[] = [
    { line_items: [one, gone], subtotal_price: '1000.00' },
    { line_items: [one, gone], subtotal_price: '2000.00', current_subtotal_price: '1000.00' },
  ]
  const right: Record<string, unknown>[] = [
    { line_items: [one, gone], subtotal_price: '2000.00' },
    // Rounding.
    { line_items: [one, gone], subtotal_price: '2000.02' },
    { line_items: [half], subtotal_price: '2000.00' },
    { line_items: [half], current_subtotal_price: '1000.00' },
    { line_items: [one], refunds, current_subtotal_price: '700.00' },
    { line_items: [one, tip], subtotal_price: '1000.00' },
  ]
  for (const order of noted) assert.equal(moneyOf(order).unclear, ['subtotal'], JSON.stringify(order))
  for (const order of right) assert.is(moneyOf(order).unclear, undefined, JSON.stringify(order))
})

test('what repeats the rest of a body is not read: 1000 lines that were sent already are read', () => {
  const set = { shop_money: { amount: '1.00', currency_code: 'PKR' }, presentment_money: { amount: '1.00' } }
  const sets = { price_set: set, total_discount_set: set }
  const many = Array.from({ length: 1000 }, (_, id) => ({ ...line, id, ...sets }))
  const fulfillments = [{ line_items: many, 'a[x]': '}' }]
  const body = JSON.stringify({ ...BODY, fulfillments, line_items: many, note: 'after' })
  const facts = readOrderFacts(body, 'aff_ref')
  assert.is(facts.lines.length, 1000)
  assert.equal(facts.lines[999], read().lines[0])
})

test('any JSON whatever is either read or refused as malformed', () => {
  const keys = Object.keys(BODY)
  fc.assert(
    fc.property(fc.constantFrom(...keys), fc.jsonValue(), fc.jsonValue(), (key, value, whole) => {
      const inLine = { ...BODY, line_items: [{ ...line, [key]: value }] }
      for (const body of [{ ...BODY, [key]: value }, inLine, whole]) {
        try {
          const facts = readOrderFacts(JSON.stringify(body), 'aff_ref')
          assert.equal(JSON.parse(JSON.stringify(facts)), facts)
        } catch (error) {
          assert.instance(error, MalformedOrder)
        }
      }
    }),
    { numRuns: 1000 },
  )
})

test('the buyer’s names are those of the customer and of both addresses', () => {
  const names = (changes: Record<string, unknown>) => read(changes).buyer_names
  const customer = { first_name: 'Sana', last_name: 'Mirza' }
  assert.equal(names({ customer }), ['Sana Mirza'])
  const three = {
    customer: { first_name: null, last_name: 'Mirza' },
    billing_address: { name: 'S. Mirza', ...customer },
    shipping_address: { ...customer, name: 7 },
  }
  assert.equal(names(three), ['Mirza', 'S. Mirza', 'Sana Mirza'])
  assert.equal(names({ customer: null, billing_address: 'x' }), [])
})

test('codes are also read from discount applications, from titles that staff choose, and without invisible marks', () => {
  const codes = (changes: Record<string, unknown>) => read(changes).discount_codes
  const applied = (...discount_applications: unknown[]) => codes({ discount_applications })
  assert.equal(applied({ type: 'discount_code', code: 'Sana10' }), ['SANA10'])
  assert.equal(applied({ type: 'manual', title: 'SANA10' }), ['SANA10'])
  const typed = { type: 'manual', title: 'code: sana10, WhatsApp', description: '(BILAL-5)' }
  assert.equal(applied(typed), ['CODE', 'SANA10', 'WHATSAPP', 'BILAL-5'])
  const chosen = { title: 'SANA10' }
  assert.equal(applied({ type: 'automatic', ...chosen }, { type: 'script', ...chosen }, null, 7), [])
  assert.equal(codes({ discount_codes: [{ code: '\u200eSA\u200bNA10\u2069\ufe0f' }] }), ['SANA10'])
  const both = {
    discount_codes: [{ code: 'B-1' }],
    discount_applications: [{ type: 'discount_code', code: 'b-1' }],
  }
  assert.equal(codes(both), ['B-1'])
})

test('discount codes that can be coupon codes are read upper case, once, in the sequence of the order', () => {
  const codes = [' sana10 ', 'WELCOME10', 'Sana10', 'ten off', '', 'AB', null, 7]
  const discount_codes = codes.map((code) => ({ code, amount: '10.00', type: 'percentage' }))
  assert.equal(read({ discount_codes }).discount_codes, ['SANA10', 'WELCOME10'])
  // Their upper case is in A to Z, but they are no such letters.
  const foreign = ['ſale-ı', 'straße', 'SANA\u0131', 'ﬁt10', 'ＳＡＮＡ'].map((code) => ({ code }))
  assert.equal(read({ discount_codes: foreign }).discount_codes, [])
  for (const odd of [undefined, null, 'SANA10', {}, [null, 'SANA10', []]])
    assert.equal(read({ discount_codes: odd }).discount_codes, [])
  const many = Array.from({ length: 100 }, (_, index) => ({ code: `CODE-${index}` }))
  assert.is(read({ discount_codes: many }).discount_codes.length, 25)
})

test.run()
