import { DAY, HOUR, MINUTE, type PeriodLength } from '../oracle/calendar.ts'
import type { CallAnswer } from '../oracle/calls.ts'
import { either, fc, oftener } from '../testkit/property.ts'
import { longList } from './long-list.ts'

/*
 * A story of some weeks: a small marketplace and what happens in it, as plain data. Every number that picks something (a merchant, an
 * offer) is taken modulo how many there are, so that any part can be left out and the rest still makes sense.
 */

type Drawn<A> = A extends fc.Arbitrary<infer T> ? T : never

const none = fc.constant<never[]>([])
/** More often the first, so that what happens concerns the same people. */
const anyOf = oftener([5, 0], [2, 1], [1, 2], [1, 3])
const mostly = (chance: number) => oftener([chance, true], [100 - chance, false])

/** Round figures, at which thresholds are met exactly, and figures that end in half a paisa. */
const RATES = [1000, 1000, 1000, 1250, 500, 333, 1, 3000]
const PRICES = [
  ...['1000.00', '1000.00', '1000.00', '1000.00', '2500.00', '800.00', '1250.50'],
  ...['99.99', '0.05', '9.09', '10.00', '12.345', '3.335'],
]
const AMOUNTS = fc.constantFrom('0.00', '10.00', '33.33', '0.01', '100.005', '25.00', '5000.00')
const upToTwo = <T>(item: fc.Arbitrary<T>, minLength = 0) => fc.array(item, { minLength, maxLength: 2 })

const terms = fc.record({
  rate: either<number>([4, fc.constantFrom(...RATES)], [1, fc.integer({ min: 1, max: 3000 })]),
  windowDays: fc.constantFrom(30, 7, 1, 2),
  /** Indices into the products of the world; none means all. */
  products: either<number[]>([3, none], [2, fc.subarray([0, 1, 2], { minLength: 1 })]),
})
export type OfferTerms = Drawn<typeof terms>

/** `until`: the next boundary on Karachi's calendar, `plus` ms after it (or before). */
export type Wait = { ms: number } | { until: PeriodLength; plus: number }

const wait = either<Wait>(
  [4, fc.integer({ min: 0, max: 90 }).map((minutes) => ({ ms: minutes * MINUTE }))],
  [4, fc.integer({ min: 1, max: 30 }).map((hours) => ({ ms: hours * HOUR }))],
  [1, fc.integer({ min: 1, max: 9 }).map((days) => ({ ms: days * DAY }))],
  [
    2,
    fc.record({
      until: fc.constantFrom('daily', 'daily', 'weekly', 'monthly'),
      plus: fc.constantFrom(0, -1, 1, -30 * MINUTE, -5 * HOUR, 5 * HOUR),
    }),
  ],
)

const line = fc.record({
  /** An index into the products of the world, a custom item, or a product that the shop has deleted. */
  product: oftener<number | null | 'deleted'>([8, 0], [6, 1], [4, 2], [2, 3], [2, null], [1, 'deleted']),
  quantity: oftener<number>([6, 1], [3, 2], [2, 3], [1, 7]),
  /** Taken away again, by an edit or a return. */
  removed: oftener([16, 0], [2, 1], [1, 2], [1, 9]),
  isReturn: mostly(40),
  /** Not goods. */
  extra: oftener([30, null], [1, 'tip'], [1, 'fee']),
  /** As text: it may have more than two decimals. */
  price: either(
    [4, fc.constantFrom(...PRICES)],
    [1, fc.nat({ max: 9_999_999 }).map((paisa) => (paisa / 100).toFixed(2))],
  ),
  discounts: either<string[]>([3, none], [1, upToTwo(AMOUNTS)]),
  taxes: either<string[]>([2, none], [1, upToTwo(AMOUNTS)]),
  giftCard: mostly(5),
})
export type LinePlan = Drawn<typeof line>

const CODES = ['SANA10', 'LAWN-5', 'EID_2026']
/** In any case, and codes that belong to no link. */
const TYPED_CODES = [...CODES, ...CODES, ' sana10 ', 'eid_2026', 'WELCOME10', 'ten off']

const order = fc.record({
  /** What the reference's place holds. */
  reference: fc.record({
    place: oftener([8, 'landing'], [6, 'note'], [3, 'line'], [3, 'url'], [2, 'none']),
    what: oftener([50, 'click'], [2, 'upper case'], [1, 'unknown'], [1, 'words']),
  }),
  /** Discount codes as the buyer typed them. */
  codes: either<string[]>([3, none], [2, upToTwo(fc.constantFrom(...TYPED_CODES), 1)]),
  buyer: oftener([30, 'a stranger'], [2, 'unknown'], [1, 'the creator'], [1, "the creator's mailbox"]),
  test: mostly(2),
  status: oftener(
    [50, 'paid'],
    [2, 'partially_refunded'],
    [8, 'pending'],
    [1, 'refunded'],
    [1, 'cancelled'],
    [1, 'voided'],
  ),
  /** Amounts that were paid back without items, and whether for the shipping. */
  refunds: either<{ amount: string; ofShipping: boolean }[]>(
    [14, none],
    [1, upToTwo(fc.record({ amount: AMOUNTS, ofShipping: mostly(20) }), 1)],
  ),
  currency: oftener([60, 'PKR'], [1, 'USD']),
  taxesIncluded: mostly(40),
  bigId: mostly(20),
  offset: fc.constantFrom('Z', '+05:00', '-03:30'),
  lines: fc.array(line, { minLength: 1, maxLength: 3 }),
  broken: either(
    [120, fc.constant('no')],
    [5, fc.constantFrom('half', 'negative', 'number', 'exponent', 'no currency')],
  ),
})
export type OrderPlan = Drawn<typeof order>

/** After the order was placed or, if later, the step; up to three days late, in any order. Ms. */
const delay = either<number>(
  [3, fc.constant(0)],
  [2, fc.integer({ min: 1, max: 120 }).map((minutes) => minutes * MINUTE)],
  [1, fc.integer({ min: 1, max: 72 }).map((hours) => hours * HOUR)],
)

const firstDelivery = fc.record({
  delay,
  id: fc.constant('first'),
  body: fc.constant('same'),
  secret: oftener([30, 'present'], [2, 'former'], [1, 'foreign']),
  topic: oftener([40, 'orders/paid'], [1, 'orders/updated']),
})

/** The order is reported again, with other facts (`paid`: the same order, paid by now); a sale that waits for payment is decided again. */
const laterReport = fc.record({
  delay,
  id: oftener([20, 'fresh'], [1, 'first']),
  body: oftener(
    [12, 'paid'],
    [2, 'paid, other amounts'],
    [1, 'paid, other click'],
    [1, 'other click'],
    [1, 'other date'],
  ),
  secret: fc.constant('present'),
  topic: fc.constant('orders/paid'),
})

const double = fc.record({
  delay,
  id: fc.constantFrom('first', 'fresh'),
  body: oftener([30, 'same'], [1, 'other']),
  secret: oftener([30, 'present'], [1, 'former']),
  topic: fc.constant('orders/paid'),
})

/** The store pays everything back after the payment, or cancels the order. */
const paidBack = fc.record({
  delay,
  id: fc.constant('fresh'),
  body: fc.constant('paid back'),
  secret: fc.constant('present'),
  topic: oftener([3, 'orders/updated'], [1, 'orders/cancelled']),
})

/** The order is reported before its payment; a bare body names neither a reference nor a code. */
const placedReport = fc
  .tuple(
    delay,
    oftener(
      [6, { topic: 'orders/create', body: 'unpaid' }],
      [3, { topic: 'orders/updated', body: 'unpaid, other amounts' }],
      [2, { topic: 'orders/cancelled', body: 'unpaid, cancelled' }],
      [2, { topic: 'orders/cancelled', body: 'unpaid, cancelled, bare' }],
    ),
  )
  .map(([delay, report]) => ({ delay, ...report, id: 'fresh', secret: 'present' }) as const)

export type DeliveryPlan = Drawn<
  typeof firstDelivery | typeof laterReport | typeof double | typeof paidBack | typeof placedReport
>

/** About 30 % of all deliveries are doubles, and one in a hundred has another body under its old id. */
const deliveries: fc.Arbitrary<DeliveryPlan[]> = fc
  .tuple(
    firstDelivery,
    either<DeliveryPlan[]>([80, none], [20, upToTwo(laterReport, 1)]),
    either<DeliveryPlan[]>([70, none], [30, upToTwo(double, 1)], [5, upToTwo(paidBack, 1)]),
  )
  .map(([first, later, more]) => [first, ...later, ...more])

/** Half of all orders are placed first, and paid up to twenty days later or never. */
const life: fc.Arbitrary<DeliveryPlan[]> = fc
  .tuple(
    either<DeliveryPlan[]>([1, none], [1, fc.array(placedReport, { minLength: 1, maxLength: 3 })]),
    deliveries,
    oftener([4, 0], [3, DAY], [2, 5 * DAY], [1, 20 * DAY], [2, null]),
  )
  .map(([placed, paid, after]) => {
    if (placed.length === 0) return paid
    if (after === null) return placed
    return [...placed, ...paid.map((one) => ({ ...one, delay: one.delay + after }))]
  })

const minutesAfterClick = (minutes: number) => ({ from: 'click', ms: minutes * MINUTE }) as const

/** A visit of a creator's link (applied for and approved at its first use), and an order that comes of it. */
const sale = fc.record({
  kind: fc.constant('sale'),
  merchant: anyOf,
  offer: anyOf,
  creator: anyOf,
  /** Which store reports it: the merchant's, or another one. */
  store: fc.record({ of: oftener([30, 'merchant'], [1, 'other merchant']), index: anyOf }),
  /** From the visit to the order, ms; `window` counts from the end of the link's window. */
  gap: either<{ from: 'click' | 'window'; ms: number }>(
    [20, fc.integer({ min: 0, max: 300 }).map(minutesAfterClick)],
    [1, fc.constantFrom(0, -5 * MINUTE, -5 * MINUTE - 1, -HOUR).map((ms) => ({ from: 'click', ms }))],
    [1, fc.constantFrom(0, 1, -1, -HOUR).map((ms) => ({ from: 'window', ms }))],
  ),
  order,
  deliveries: life,
})
export type SaleAction = Drawn<typeof sale>

/** What the processor says. */
const word = {
  /** How it differs from what it should be. */
  twist: either(
    [14, fc.constant('right')],
    [5, fc.constantFrom('other amount', 'other currency', 'other reference', 'unknown', 'broken')],
  ),
  deliveries: upToTwo(
    fc.record({
      delay,
      id: fc.constantFrom('first', 'fresh'),
      signature: oftener([20, 'right'], [1, 'forged'], [1, 'early'], [1, 'late']),
    }),
    1,
  ),
}
export type WordPlan = { [Part in keyof typeof word]: Drawn<(typeof word)[Part]> }

/** How many cycles or payouts back from the latest. */
const back = oftener([8, 0], [2, 1], [1, 2])

const payment = fc.record({ kind: fc.constant('payment'), merchant: anyOf, back, ...word })
export type PaymentAction = Drawn<typeof payment>

const payout = fc.record({
  kind: fc.constant('payout'),
  creator: anyOf,
  back,
  word: oftener([1, 'confirmed'], [2, 'failed']),
  /** Whether the processor's own record says the same. */
  honest: mostly(90),
  ...word,
})
export type PayoutAction = Drawn<typeof payout>

const stray = fc.record({
  kind: fc.constant('stray'),
  what: fc.constantFrom('unknown invoice', 'unknown payout', 'unknown type', 'no words'),
})
export type StrayAction = Drawn<typeof stray>

/** The processor is done with what it holds of either kind. */
const settleAll = fc.record({
  kind: fc.constant('settle all'),
  what: fc.constantFrom('invoices', 'payouts', 'payouts', 'everything'),
  payouts: fc.constantFrom('confirmed', 'failed', 'failed'),
})
export type SettleAllAction = Drawn<typeof settleAll>

const suspension = { role: fc.constantFrom('merchant', 'creator'), who: anyOf }
const ofStore = { merchant: anyOf, store: anyOf }

const ACTIONS = [
  [55, sale],
  [3, fc.record({ kind: fc.constant('terms'), merchant: anyOf, offer: anyOf, terms })],
  [
    3,
    fc.record({
      ...{ kind: fc.constant('status'), merchant: anyOf, offer: anyOf },
      to: oftener([12, 'live'], [3, 'paused'], [1, 'ended']),
    }),
  ],
  [
    8,
    fc.record({
      ...{ kind: fc.constant('coupon'), merchant: anyOf, offer: anyOf, creator: anyOf },
      code: fc.constantFrom(...CODES, ...CODES, null),
    }),
  ],
  [1, fc.record({ kind: fc.constant('suspend'), ...suspension })],
  [3, fc.record({ kind: fc.constant('reinstate'), ...suspension })],
  [
    3,
    fc.record({
      ...{ kind: fc.constant('credit'), merchant: anyOf },
      size: fc.constantFrom('all', 'too much', 'half', 'a paisa'),
      reference: oftener([5, 'new'], [1, 'again'], [1, 'taken']),
    }),
  ],
  [8, fc.record({ kind: fc.constant('close'), ahead: mostly(35) })],
  [7, fc.record({ kind: fc.constant('run payouts') })],
  [5, settleAll],
  /** All cycles closed and paid, all creators paid. */
  [5, fc.record({ kind: fc.constant('pay day') })],
  [7, payment],
  [14, payout],
  [2, stray],
  [1, fc.record({ kind: fc.constant('look-ups'), down: mostly(50) })],
  [1, fc.record({ kind: fc.constant('destination'), creator: anyOf })],
  [1, fc.record({ kind: fc.constant('resolve'), creator: anyOf })],
  [1, fc.record({ kind: fc.constant('secret'), ...ofStore })],
  [1, fc.record({ kind: fc.constant('remove store'), ...ofStore })],
  [2, fc.record({ kind: fc.constant('connect store'), ...ofStore })],
] as const
export type Action = Drawn<(typeof ACTIONS)[number][1]>

const step = fc.record({
  wait,
  action: either<Action>(...ACTIONS.map(([weight, one]): [number, fc.Arbitrary<Action>] => [weight, one])),
  /** Whether the workers get round to their work after it. */
  work: mostly(40),
})
export type Step = Drawn<typeof step>

/** Ordinary days, the end of a year, the eve of a 29 February, and of one that does not come. */
const STARTS = [
  '2026-11-02T07:00:00Z',
  '2027-12-20T03:00:00Z',
  '2028-02-18T18:59:59Z',
  '2027-02-20T12:00:00Z',
]

const answer = either<CallAnswer>(
  [5, fc.constant('ok')],
  [4, fc.constantFrom('lost', 'dropped', 'throttled', 'refused')],
)

/** Stories of `events` steps, which shrink to as few as it takes. */
export function storiesOf(events: number) {
  return fc.record({
    // First, since leaving out steps is what makes a story short.
    steps: longList(step, events),
    /** Epoch ms. */
    start: fc.constantFrom(...STARTS).map((text) => Date.parse(text)),
    settings: fc.record({
      feeRate: fc.constantFrom(1000, 0, 3333),
      payoutUnit: fc.constantFrom(1, 1, 100),
      threshold: fc.constantFrom(10_000, 10_000, 10_000, 12_500, 25_000, 100_000, 1),
      period: fc.constantFrom('monthly', 'weekly', 'daily'),
    }),
    merchants: fc.array(fc.record({ stores: fc.constantFrom(1, 2), offers: upToTwo(terms, 1) }), {
      minLength: 1,
      maxLength: 3,
    }),
    creators: fc.array(fc.record({ hasDestination: mostly(85) }), { minLength: 2, maxLength: 4 }),
    /** How the processor takes the calls: one list a subject, one answer a call; `ok` after its end. */
    answers: fc.array(fc.array(answer, { maxLength: 3 }), { maxLength: 6 }),
  })
}
export type Story = Drawn<ReturnType<typeof storiesOf>>
