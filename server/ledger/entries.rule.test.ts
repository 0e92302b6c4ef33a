import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fc } from '../test/testkit/property.ts'
import {
  creditGranted,
  cycleCharged,
  cycleClosed,
  type Entry,
  PLATFORM,
  payoutConfirmed,
  payoutCreated,
  payoutFailed,
  saleAccepted,
} from './entries.rule.ts'

const legs = (entry: Entry) =>
  entry.postings.map(({ account, owner, amount }) => `${account} ${owner} ${amount}`)
const P = PLATFORM

test('each entry has the legs of the table', () => {
  const sale = { saleId: 's', merchantId: 'm', creatorId: 'c', commission: 1000, platformFee: 100 }
  const payout = { payoutId: 'p', creatorId: 'c', amount: 700 }
  const cycle = { cycleId: 'y', merchantId: 'm', amountDue: 1650 }
  const shares = [
    { creatorId: 'c', commission: 1000 },
    { creatorId: 'd', commission: 500 },
  ]
  const table: [Entry, string, string[]][] = [
    [
      saleAccepted(sale),
      's',
      ['merchant_unbilled m 1100', 'creator_pending c -1000', `platform_fees ${P} -100`],
    ],
    [
      creditGranted({ creditId: 'k', merchantId: 'm', amount: 50 }),
      'k',
      [`platform_credits ${P} 50`, 'merchant_unbilled m -50'],
    ],
    [cycleClosed(cycle), 'y', ['merchant_receivable m 1650', 'merchant_unbilled m -1650']],
    [
      cycleCharged({ ...cycle, shares }),
      'y',
      [
        `processor_clearing ${P} 1650`,
        'merchant_receivable m -1650',
        'creator_pending c 1000',
        'creator_released c -1000',
        'creator_pending d 500',
        'creator_released d -500',
      ],
    ],
    [payoutCreated(payout), 'p', ['creator_released c 700', 'payouts_in_transit c -700']],
    [payoutConfirmed(payout), 'p', ['payouts_in_transit c 700', `processor_clearing ${P} -700`]],
    [payoutFailed(payout), 'p', ['payouts_in_transit c 700', 'creator_released c -700']],
  ]
  for (const [entry, subject, expected] of table) {
    assert.is(entry.subjectId, subject, entry.kind)
    assert.equal(legs(entry), expected, entry.kind)
  }
})

test('a leg of nothing is left out; an entry of nothing is a bug', () => {
  const sale = { saleId: 's', merchantId: 'm', creatorId: 'c', commission: 1000, platformFee: 0 }
  assert.equal(legs(saleAccepted(sale)), ['merchant_unbilled m 1000', 'creator_pending c -1000'])
  assert.throws(() => saleAccepted({ ...sale, commission: 0 }), /does not balance/)
  assert.throws(() => payoutCreated({ payoutId: 'p', creatorId: 'c', amount: 0 }), /does not balance/)
  assert.throws(() => payoutCreated({ payoutId: 'p', creatorId: 'c', amount: 0.5 }), /not an exact amount/)
  assert.throws(
    () => cycleClosed({ cycleId: 'y', merchantId: 'm', amountDue: 2 ** 53 }),
    /not an exact amount/,
  )
})

const money = fc.integer({ min: 1, max: 10_000_000_000_000 })
const noughtOrMore = fc.oneof(fc.constant(0), money)
const anyEntry: fc.Arbitrary<Entry> = fc.oneof(
  fc
    .record({ commission: money, platformFee: noughtOrMore })
    .map((sale) => saleAccepted({ saleId: 's', merchantId: 'm', creatorId: 'c', ...sale })),
  money.map((amount) => creditGranted({ creditId: 'k', merchantId: 'm', amount })),
  money.map((amountDue) => cycleClosed({ cycleId: 'y', merchantId: 'm', amountDue })),
  fc
    .record({ amountDue: money, commissions: fc.array(noughtOrMore, { maxLength: 12 }) })
    .map(({ amountDue, commissions }) =>
      cycleCharged({
        cycleId: 'y',
        merchantId: 'm',
        amountDue,
        shares: commissions.map((commission, index) => ({ creatorId: `c${index}`, commission })),
      }),
    ),
  fc
    .tuple(money, fc.constantFrom(payoutCreated, payoutConfirmed, payoutFailed))
    .map(([amount, make]) => make({ payoutId: 'p', creatorId: 'c', amount })),
)

test('property: every entry balances, and no leg is nothing', () => {
  fc.assert(
    fc.property(anyEntry, ({ postings }) => {
      assert.is(
        postings.reduce((sum, posting) => sum + posting.amount, 0),
        0,
      )
      assert.ok(postings.length >= 2)
      assert.ok(postings.every((posting) => posting.amount !== 0 && Number.isSafeInteger(posting.amount)))
    }),
    { numRuns: 1000 },
  )
})

test.run()
