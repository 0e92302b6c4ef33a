import { DAY, HOUR, MINUTE } from '../oracle/calendar.ts'
import { fc } from '../testkit/property.ts'
import { longList } from './long-list.ts'
import type {
  Action,
  DeliveryPlan,
  LinePlan,
  OfferTerms,
  OrderPlan,
  SaleAction,
  Step,
  Story,
  Wait,
  WordPlan,
} from './story.ts'

/** One of them, as often as its weight says. */
function oftener<T>(...choices: [weight: number, value: T][]): fc.Arbitrary<T> {
  return fc.oneof(...choices.map(([weight, value]) => ({ weight, arbitrary: fc.constant(value) })))
}

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
const AMOUNTS = ['0.00', '10.00', '33.33', '0.01', '100.005', '25.00', '5000.00']

const terms: fc.Arbitrary<OfferTerms> = fc.record({
  rate: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...RATES) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 3000 }) },
  ),
  windowDays: fc.constantFrom(30, 7, 1, 2),
  products: fc.oneof(
    { weight: 3, arbitrary: none },
    { weight: 2, arbitrary: fc.subarray([0, 1, 2], { minLength: 1 }) },
  ),
})

const wait: fc.Arbitrary<Wait> = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 90 }).map((minutes) => ({ ms: minutes * MINUTE })) },
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 30 }).map((hours) => ({ ms: hours * HOUR })) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 9 }).map((days) => ({ ms: days * DAY })) },
  {
    weight: 2,
    arbitrary: fc.record({
      until: fc.constantFrom('daily', 'daily', 'weekly', 'monthly'),
      plus: fc.constantFrom(0, -1, 1, -30 * MINUTE, -5 * HOUR, 5 * HOUR),
    }),
  },
)

const line: fc.Arbitrary<LinePlan> = fc.record({
  product: oftener<number | null>([4, 0], [3, 1], [2, 2], [1, 3], [1, null]),
  quantity: oftener([6, 1], [3, 2], [2, 3], [1, 7]),
  removed: oftener([16, 0], [2, 1], [1, 2], [1, 9]),
  price: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...PRICES) },
    { weight: 1, arbitrary: fc.nat({ max: 9_999_999 }).map((paisa) => (paisa / 100).toFixed(2)) },
  ),
  discounts: fc.oneof(
    { weight: 3, arbitrary: none },
    { weight: 1, arbitrary: fc.array(fc.constantFrom(...AMOUNTS), { maxLength: 2 }) },
  ),
  taxes: fc.oneof(
    { weight: 2, arbitrary: none },
    { weight: 1, arbitrary: fc.array(fc.constantFrom(...AMOUNTS), { maxLength: 2 }) },
  ),
  giftCard: mostly(5),
})

const CODES = ['SANA10', 'LAWN-5', 'EID_2026']
/** In any case, and codes that belong to no link. */
const TYPED_CODES = [...CODES, ...CODES, ' sana10 ', 'eid_2026', 'WELCOME10', 'ten off']

const order: fc.Arbitrary<OrderPlan> = fc.record({
  reference: fc.record({
    place: oftener<OrderPlan['reference']['place']>(
      [8, 'landing'],
      [6, 'note'],
      [3, 'line'],
      [3, 'url'],
      [2, 'none'],
    ),
    what: oftener<OrderPlan['reference']['what']>(
      [50, 'click'],
      [2, 'upper case'],
      [1, 'unknown'],
      [1, 'words'],
    ),
  }),
  codes: fc.oneof(
    { weight: 3, arbitrary: none },
    { weight: 2, arbitrary: fc.array(fc.constantFrom(...TYPED_CODES), { minLength: 1, maxLength: 2 }) },
  ),
  buyer: oftener<OrderPlan['buyer']>(
    [30, 'a stranger'],
    [2, 'unknown'],
    [1, 'the creator'],
    [1, "the creator's mailbox"],
  ),
  test: mostly(2),
  status: oftener<OrderPlan['status']>(
    [50, 'paid'],
    [2, 'partially_refunded'],
    [8, 'pending'],
    [1, 'refunded'],
    [1, 'cancelled'],
  ),
  currency: oftener<OrderPlan['currency']>([60, 'PKR'], [1, 'USD']),
  taxesIncluded: mostly(40),
  bigId: mostly(20),
  offset: fc.constantFrom('Z', '+05:00', '-03:30'),
  lines: fc.array(line, { minLength: 1, maxLength: 3 }),
  broken: oftener<OrderPlan['broken']>(
    [120, 'no'],
    [1, 'half'],
    [1, 'negative'],
    [1, 'number'],
    [1, 'exponent'],
    [1, 'no currency'],
  ),
})

/** Up to three days late, in any order. */
const delay = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 120 }).map((minutes) => minutes * MINUTE) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 72 }).map((hours) => hours * HOUR) },
)

const firstDelivery: fc.Arbitrary<DeliveryPlan> = fc.record({
  delay,
  id: fc.constant('first' as const),
  body: fc.constant('same' as const),
  secret: oftener<DeliveryPlan['secret']>([30, 'present'], [2, 'former'], [1, 'foreign']),
  topic: oftener<DeliveryPlan['topic']>([40, 'orders/paid'], [1, 'orders/updated']),
})

/** The order is reported again, with other facts; a sale that waits for payment is decided again. */
const laterReport: fc.Arbitrary<DeliveryPlan> = fc.record({
  delay,
  id: oftener<DeliveryPlan['id']>([20, 'fresh'], [1, 'first']),
  body: oftener<DeliveryPlan['body']>(
    [12, 'paid'],
    [2, 'paid, other amounts'],
    [1, 'paid, other click'],
    [1, 'other click'],
    [1, 'other date'],
  ),
  secret: fc.constant('present' as const),
  topic: fc.constant('orders/paid' as const),
})

/** About 30 % of all deliveries are doubles, and one in a hundred has another body under its old id. */
const deliveries: fc.Arbitrary<DeliveryPlan[]> = fc
  .tuple(
    firstDelivery,
    fc.oneof(
      { weight: 80, arbitrary: none },
      { weight: 20, arbitrary: fc.array(laterReport, { minLength: 1, maxLength: 2 }) },
    ),
    fc.oneof(
      { weight: 70, arbitrary: none },
      {
        weight: 30,
        arbitrary: fc.array(
          fc.record({
            delay,
            id: fc.constantFrom('first' as const, 'fresh' as const),
            body: oftener<DeliveryPlan['body']>([30, 'same'], [1, 'other']),
            secret: oftener<DeliveryPlan['secret']>([30, 'present'], [1, 'former']),
            topic: fc.constant('orders/paid' as const),
          }),
          { minLength: 1, maxLength: 2 },
        ),
      },
    ),
  )
  .map(([first, later, more]) => [first, ...later, ...more])

const placedReport: fc.Arbitrary<DeliveryPlan> = fc
  .tuple(
    delay,
    oftener<[DeliveryPlan['topic'], DeliveryPlan['body']]>(
      [6, ['orders/create', 'unpaid']],
      [3, ['orders/updated', 'unpaid, other amounts']],
      [2, ['orders/cancelled', 'unpaid, cancelled']],
    ),
  )
  .map(([delay, [topic, body]]) => ({ delay, topic, body, id: 'fresh', secret: 'present' }))

/** Half of all orders are placed first, and paid up to twenty days later or never. */
const life: fc.Arbitrary<DeliveryPlan[]> = fc
  .tuple(
    fc.oneof(
      { weight: 1, arbitrary: none },
      { weight: 1, arbitrary: fc.array(placedReport, { minLength: 1, maxLength: 3 }) },
    ),
    deliveries,
    oftener<number | null>([4, 0], [3, DAY], [2, 5 * DAY], [1, 20 * DAY], [2, null]),
  )
  .map(([placed, paid, after]) => {
    if (placed.length === 0) return paid
    if (after === null) return placed
    return [...placed, ...paid.map((one) => ({ ...one, delay: one.delay + after }))]
  })

const sale: fc.Arbitrary<SaleAction> = fc.record({
  kind: fc.constant('sale' as const),
  merchant: anyOf,
  offer: anyOf,
  creator: anyOf,
  store: fc.record({
    of: oftener<SaleAction['store']['of']>([30, 'merchant'], [1, 'other merchant']),
    index: anyOf,
  }),
  gap: fc.oneof(
    {
      weight: 20,
      arbitrary: fc
        .integer({ min: 0, max: 300 })
        .map((minutes) => ({ from: 'click' as const, ms: minutes * MINUTE })),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(0, -5 * MINUTE, -5 * MINUTE - 1, -HOUR)
        .map((ms) => ({ from: 'click' as const, ms })),
    },
    { weight: 1, arbitrary: fc.constantFrom(0, 1, -1, -HOUR).map((ms) => ({ from: 'window' as const, ms })) },
  ),
  order,
  deliveries: life,
})

const word: fc.Arbitrary<WordPlan> = fc.record({
  twist: oftener<WordPlan['twist']>(
    [14, 'right'],
    [1, 'other amount'],
    [1, 'other currency'],
    [1, 'other reference'],
    [1, 'unknown'],
    [1, 'broken'],
  ),
  deliveries: fc.array(
    fc.record({
      delay,
      id: fc.constantFrom('first' as const, 'fresh' as const),
      signature: oftener<WordPlan['deliveries'][number]['signature']>(
        [20, 'right'],
        [1, 'forged'],
        [1, 'early'],
        [1, 'late'],
      ),
    }),
    { minLength: 1, maxLength: 2 },
  ),
})

const payment = fc
  .tuple(word, anyOf, oftener([8, 0], [2, 1], [1, 2]))
  .map(([said, merchant, back]): Action => ({ kind: 'payment', merchant, back, ...said }))

const payout = fc
  .tuple(
    word,
    anyOf,
    oftener([8, 0], [2, 1], [1, 2]),
    oftener<'confirmed' | 'failed'>([1, 'confirmed'], [2, 'failed']),
    mostly(90),
  )
  .map(
    ([said, creator, back, reported, honest]): Action => ({
      kind: 'payout',
      creator,
      back,
      word: reported,
      honest,
      ...said,
    }),
  )

const role = fc.constantFrom('merchant' as const, 'creator' as const)

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 55, arbitrary: sale },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('terms'), merchant: anyOf, offer: anyOf, terms }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('status'),
      merchant: anyOf,
      offer: anyOf,
      to: oftener<'live' | 'paused' | 'ended'>([12, 'live'], [3, 'paused'], [1, 'ended']),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('coupon'),
      merchant: anyOf,
      offer: anyOf,
      creator: anyOf,
      code: fc.constantFrom(...CODES, ...CODES, null),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('suspend'), role, who: anyOf }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('reinstate'), role, who: anyOf }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('credit'),
      merchant: anyOf,
      size: fc.constantFrom('all', 'too much', 'half', 'a paisa'),
      reference: oftener<'new' | 'again' | 'taken'>([5, 'new'], [1, 'again'], [1, 'taken']),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('close'), ahead: mostly(35) }) },
  { weight: 7, arbitrary: fc.record({ kind: fc.constant('run payouts') }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('settle all'),
      what: fc.constantFrom('invoices', 'payouts', 'payouts', 'everything'),
      payouts: fc.constantFrom('confirmed', 'failed', 'failed'),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('pay day') }) },
  { weight: 7, arbitrary: payment },
  { weight: 14, arbitrary: payout },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('stray'),
      what: fc.constantFrom('unknown invoice', 'unknown payout', 'unknown type', 'no words'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('look-ups'), down: mostly(50) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('destination'), creator: anyOf }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('resolve'), creator: anyOf }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('secret'), merchant: anyOf, store: anyOf }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove store'), merchant: anyOf, store: anyOf }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('connect store'), merchant: anyOf, store: anyOf }) },
)

const step: fc.Arbitrary<Step> = fc.record({ wait, action, work: mostly(40) })

/** Ordinary days, the end of a year, the eve of a 29 February, and of one that does not come. */
const STARTS = [
  '2026-11-02T07:00:00Z',
  '2027-12-20T03:00:00Z',
  '2028-02-18T18:59:59Z',
  '2027-02-20T12:00:00Z',
]

/** Stories of `events` steps, which shrink to as few as it takes. */
export function storiesOf(events: number): fc.Arbitrary<Story> {
  return fc.record({
    // First, since leaving out steps is what makes a story short.
    steps: longList(step, events),
    start: fc.constantFrom(...STARTS).map((text) => Date.parse(text)),
    settings: fc.record({
      feeRate: fc.constantFrom(1000, 0, 3333),
      payoutUnit: fc.constantFrom(1, 1, 100),
      threshold: fc.constantFrom(10_000, 10_000, 10_000, 12_500, 25_000, 100_000, 1),
      period: fc.constantFrom('monthly', 'weekly', 'daily'),
    }),
    merchants: fc.array(
      fc.record({
        stores: fc.constantFrom(1 as const, 2 as const),
        offers: fc.array(terms, { minLength: 1, maxLength: 2 }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
    creators: fc.array(fc.record({ hasDestination: mostly(85) }), { minLength: 2, maxLength: 4 }),
    answers: fc.array(
      fc.array(fc.constantFrom('ok', 'ok', 'ok', 'ok', 'ok', 'lost', 'dropped', 'throttled', 'refused'), {
        maxLength: 3,
      }),
      { maxLength: 6 },
    ),
  })
}
