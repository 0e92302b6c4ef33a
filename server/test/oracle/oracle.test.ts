// database: none
import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../../fixtures/fill-fixture.ts'
import { fc } from '../testkit/property.ts'
import { clockText, periodAt } from './calendar.ts'
import { fractionOf, halfUp, plus, rupees, shareOf } from './exact.ts'
import { addClick, addLiveOffer, addPerson, approve, setCoupon } from './marketplace.ts'
import { readOrder } from './order.ts'
import { judge } from './sale.ts'
import { emptyState, type Terms } from './state.ts'

interface Expected {
  file: string
  terms: { commission_rate_percent: number; attribution_window_days: number; product_ids: string[] | null }
  expect: Record<'rejection_reason' | 'net_amount' | 'commission' | 'platform_fee', string | null>
}

const FIXTURES = new URL('../../../fixtures/', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, FIXTURES), 'utf8')
const manifest: Expected[] = JSON.parse(read('store-sales.manifest.json'))

const values = {
  click: '0197a3c0-5b1e-7d42-9c3f-2a64d1f0b8e7',
  clickAt: Date.UTC(2026, 1, 28, 19, 30, 15, 250),
  creatorEmail: 'sana.creates@example.com',
  productId: FIXTURE_PRODUCT_ID,
  coupon: 'SANA10',
}

function verdictOn(body: string, terms: Terms) {
  const state = emptyState({
    platformFeeRate: 1000,
    payoutThreshold: 100_000,
    payoutUnit: 1,
    period: 'monthly',
    trackingParameter: 'aff_ref',
  })
  addPerson(state, { name: 'A', role: 'merchant', email: 'a@example.com' })
  addPerson(state, { name: 'K', role: 'creator', email: values.creatorEmail })
  addLiveOffer(state, 'offer', 'A', terms, values.clickAt)
  const link = approve(state, 'link', 'offer', 'K')
  const order = readOrder(body, 'aff_ref')
  if (!link || !order) throw new Error('no link or no order')
  setCoupon(state, link, values.coupon, values.clickAt)
  addClick(state, { id: values.click, link, at: values.clickAt, tracked: true })
  return judge(state, 'A', order)
}

const it = suite('the oracle')

for (const { file, terms, expect } of manifest) {
  it(`decides ${file} as its manifest says`, () => {
    const verdict = verdictOn(fillFixture(read(`store-sales/${file}`), values), {
      rate: Math.round(terms.commission_rate_percent * 100),
      windowDays: terms.attribution_window_days,
      productIds: terms.product_ids ?? [],
    })
    assert.is(verdict.reason, expect.rejection_reason)
    assert.is(rupees(verdict.basis), expect.net_amount)
    assert.is(rupees(verdict.commission), expect.commission)
    assert.is(rupees(verdict.fee), expect.platform_fee)
  })
}

const moments = fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2060, 0, 1) })

it("has Karachi's calendar, by the word of the system's own", () => {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: 'Asia/Karachi',
    dateStyle: 'short',
    timeStyle: 'medium',
  })
  fc.assert(
    fc.property(moments, (moment) => {
      assert.is(clockText(moment).slice(0, 19), format.format(moment))
    }),
  )
})

it('has periods that hold their moment, begin at midnight and follow each other', () => {
  fc.assert(
    fc.property(moments, fc.constantFrom('monthly', 'weekly', 'daily'), (moment, length) => {
      const { start, end } = periodAt(moment, length)
      assert.ok(start <= moment && moment < end)
      assert.match(clockText(start), / 00:00:00$/)
      assert.equal(periodAt(end, length).start, end)
      assert.equal(periodAt(end - 1, length), { start, end })
      if (length === 'monthly') assert.match(clockText(start), /-01 /)
      if (length === 'weekly') assert.is(new Date(start + 5 * 3_600_000).getUTCDay(), 1)
    }),
  )
})

it('rounds half up, once', () => {
  assert.equal([halfUp(1n, 2n), halfUp(3n, 2n), halfUp(49n, 100n), halfUp(0n, 7n)], [1, 2, 0, 0])
  const paisa = (text: string, pieces = 1) => {
    const amount = fractionOf(text)
    return amount && shareOf(plus(amount, amount), pieces, 2)
  }
  assert.equal(
    [paisa('12.345'), paisa('0.005'), paisa('7'), paisa('1.005', 1000), paisa('-1'), paisa('1e3')],
    [1235, 1, 700, 100_500, null, null],
  )
  assert.equal([rupees(5), rupees(-1250), rupees(123_456)], ['0.05', '-12.50', '1234.56'])
})

it.run()
