import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { NIL_ID } from '../platform/ids.ts'
import { CLICK, CLICKED_AT, FACTS, LINE, LINK, ORDER } from '../test/testkit/sale-facts.ts'
import { attributionOf, decideSale } from './accept-sale.rule.ts'
import { factsOfTheTime, isDifferent, noSale, verdictOf } from './reprocess.rule.ts'
import type { SaleClick, SaleCoupon, SaleFacts } from './sale-facts.ts'

const clickOf = (id: string, creator: string, merchant = 'merchant'): SaleClick => {
  const parties = { id: `link of ${creator}`, slug: creator, merchant_id: merchant, creator_id: creator }
  return { ...CLICK, id, link: { ...LINK, ...parties, product_ids: null } }
}

function factsWith(changes: Partial<SaleFacts>, reference: string | null = 'one'): SaleFacts {
  const tracking_source = reference === null ? null : 'landing_site'
  const lines = [{ ...LINE, unit_price: 100_000 }]
  const order = { ...ORDER, lines, tracking_reference: reference, tracking_source }
  return { ...FACTS, order, click: clickOf('one', 'sana'), ...changes } as SaleFacts
}

const decided = (facts: SaleFacts) =>
  verdictOf(decideSale(facts), attributionOf(facts)?.link.creator_id ?? null)

/** While no click has been taken away. */
const factsOf = (today: SaleFacts, then: SaleFacts | null) => factsOfTheTime(today, then, NIL_ID)

test('suspensions, fee and click are those of the time, the order is as it is read today', () => {
  const then = factsWith({ creator_suspended: true, platform_fee_rate: 500 })
  const today = factsWith({
    merchant_suspended: true,
    buyer_is_creator: true,
    click: { ...clickOf('one', 'sana'), tracked: false },
  })
  const { facts, lost } = factsOf(today, then)
  assert.equal(lost, [])
  assert.is(facts.order, today.order)
  assert.is(facts.click, then.click)
  assert.equal(
    [facts.creator_suspended, facts.merchant_suspended, facts.platform_fee_rate, facts.buyer_is_creator],
    [true, false, 500, true],
  )
})

test('a reference that is read otherwise leads to its own click, and to a standing that no one has kept', () => {
  const today = factsWith({ click: clickOf('two', 'zoya'), creator_suspended: true }, 'two')
  const other = factsOf(today, factsWith({}))
  assert.equal(other.lost, ['creator_suspended'])
  assert.equal([other.facts.click?.id, other.facts.creator_suspended], ['two', true])
  const same = factsOf(factsWith({ click: clickOf('two', 'sana') }, 'two'), factsWith({}))
  assert.equal(same.lost, [])
  const none = factsOf(factsWith({ click: null }, null), factsWith({ creator_suspended: true }))
  assert.equal([none.lost, none.facts.click, none.facts.creator_suspended], [[], null, false])
})

test('a click that is gone by now stays as the receipt has it', () => {
  const { facts, lost } = factsOf(factsWith({ click: null }), factsWith({ buyer_is_creator: true }))
  assert.equal([facts.click?.id, facts.buyer_is_creator, lost], ['one', true, ['buyer_is_creator']])
})

test('without a receipt everything is of today, and said to be', () => {
  const all = ['merchant_suspended', 'creator_suspended', 'platform_fee_rate']
  assert.equal(factsOf(factsWith({}), null).lost, all)
  assert.equal(factsOf(factsWith({ click: null }), null).lost, ['merchant_suspended', 'platform_fee_rate'])
})

test('a click that is not found is lost where clicks of its age may have been taken away', () => {
  const lostOf = (reference: string | null, then: SaleFacts | null, click: SaleClick | null = null) =>
    factsOfTheTime(factsWith({ click }, reference), then, 'mmm').lost.includes('click')
  assert.is(lostOf('abc', null), true)
  assert.is(lostOf('abc', factsWith({}, 'one')), true)
  // As young as that, it never was.
  assert.is(lostOf('mmm', null), false)
  assert.is(lostOf('one', factsWith({}, 'abc')), false)
  assert.is(lostOf(null, null), false)
  // Found, or known from the receipt, as is that there was none.
  assert.is(lostOf('abc', null, clickOf('abc', 'sana')), false)
  assert.is(lostOf('abc', factsWith({}, 'abc')), false)
  assert.is(lostOf('abc', factsWith({ click: null }, 'abc')), false)
})

test('a difference is one of verdict, reason, party or money', () => {
  const facts = factsWith({})
  const one = decided(facts)
  assert.equal(
    [one.verdict, one.creator_id, one.commission, one.platform_fee],
    ['accepted', 'sana', 12_500, 1250],
  )
  assert.is(isDifferent(one, { ...one }), false)
  for (const change of [{ commission: 1 }, { reason: 'x' }, { creator_id: null }, { net_amount: 3 }]) {
    assert.is(isDifferent(one, { ...one, ...change }), true)
  }
  assert.is(isDifferent(noSale('malformed: a'), noSale('malformed: b')), false)
  assert.is(isDifferent(noSale('malformed'), one), true)
  const foreign = factsWith({ click: clickOf('one', 'sana', 'another') })
  assert.is(decided(foreign).creator_id, null)
})

test('the history of a coupon code is as it is read today, the suspension of its creator as it was then', () => {
  const coupon: SaleCoupon = {
    code: 'BILAL10',
    starts_at: CLICKED_AT,
    ends_at: null,
    offer_status: 'live',
    ...{ creator_suspended: true, buyer_is_creator: false, buyer_name_matches: false },
    link: clickOf('two', 'bilal').link,
  }
  const today = factsWith({ coupons: [{ ...coupon, ends_at: ORDER.created_at + 1 }] })
  const then = factsWith({ coupons: [{ ...coupon, creator_suspended: false }] })
  assert.equal(factsOf(today, then), {
    facts: factsWith({ coupons: [{ ...coupon, ends_at: ORDER.created_at + 1, creator_suspended: false }] }),
    lost: [],
  })
  assert.equal(factsOf(today, factsWith({})).lost, ['creator_suspended'])
  const { facts } = factsOf(today, then)
  assert.is(decided(facts).creator_id, 'bilal')
})

test.run()
