import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { FIXTURE_PRODUCT_ID, fillFixture } from '../../fixtures/fill-fixture.ts'
import { formatMoney } from '../../shared/money.ts'
import { percentToBasisPoints } from '../../shared/rates.ts'
import type { LinkTerms } from '../links/links.service.ts'
import { readOrderFacts } from '../shopify/order-facts.ts'
import { decideSale, type SaleDecision } from './accept-sale.rule.ts'
import { isBuyer, type SaleClick, type SaleFacts, saleOrderOf } from './sale-facts.ts'

interface ManifestEntry {
  file: string
  title: string
  order_id: string
  order_name: string
  terms: { commission_rate_percent: number; attribution_window_days: number; product_ids: string[] | null }
  /** Where the net amount depends on the products that a link names. */
  lines?: { product_id: string; net: string }[]
  expect: {
    acceptance_status: string
    rejection_reason: string | null
    net_amount: string
    commission: string
    platform_fee: string
  }
  why: string
}

const FIXTURES = new URL('../../fixtures/', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, FIXTURES), 'utf8')
const manifest: ManifestEntry[] = JSON.parse(read('store-sales.manifest.json'))

const values = {
  click: '0197a3c0-5b1e-7d42-9c3f-2a64d1f0b8e7',
  clickAt: Date.UTC(2026, 1, 28, 19, 30, 15, 250),
  creatorEmail: 'Sana.Creates@example.com',
  productId: FIXTURE_PRODUCT_ID,
  coupon: 'SANA10',
}

function linkWith(terms: ManifestEntry['terms']): LinkTerms {
  const commission_rate = percentToBasisPoints(terms.commission_rate_percent)
  if (commission_rate === null) throw new Error('the manifest has a rate with more than two decimals')
  return {
    id: 'link',
    slug: 'sana-lawn',
    merchant_id: 'merchant',
    offer_id: 'offer',
    creator_id: 'creator',
    commission_rate,
    attribution_window_days: terms.attribution_window_days,
    product_ids: terms.product_ids,
    locked_at: values.clickAt - 1,
  }
}

function decide(entry: ManifestEntry): SaleDecision {
  const order = readOrderFacts(fillFixture(read(`store-sales/${entry.file}`), values), 'aff_ref')
  assert.is(order.order_id, entry.order_id)
  assert.is(order.order_name, entry.order_name)
  const click: SaleClick = {
    id: values.click,
    created_at: values.clickAt,
    tracked: true,
    link: linkWith(entry.terms),
  }
  const facts: SaleFacts = {
    order: saleOrderOf(order),
    buyer_is_creator: isBuyer(order, values.creatorEmail),
    buyer_name_matches: false,
    reporting_merchant_id: 'merchant',
    click: order.references[0]?.reference === values.click ? click : null,
    coupons: order.discount_codes
      .filter((code) => code === values.coupon)
      .map((code) => ({
        code,
        starts_at: values.clickAt,
        ends_at: null,
        offer_status: 'live',
        creator_suspended: false,
        buyer_is_creator: false,
        buyer_name_matches: false,
        link: linkWith(entry.terms),
      })),
    creator_suspended: false,
    merchant_suspended: false,
    platform_fee_rate: 1000,
  }
  assert.not.match(JSON.stringify(facts), /@|\+92|Lahore|Karachi|Khan/)
  return decideSale(facts)
}

function linesOf({ basis_lines }: SaleDecision) {
  return basis_lines.map(({ product_id, net, why_not }) => ({
    product_id: product_id === FIXTURE_PRODUCT_ID ? '{{product_id}}' : product_id,
    net: formatMoney(why_not === 'gift_card' ? 0 : net),
  }))
}

for (const entry of manifest) {
  test(`${entry.file}: ${entry.title}`, () => {
    const decision = decide(entry)
    assert.equal(
      {
        acceptance_status: decision.acceptance_status,
        rejection_reason: decision.rejection_reason,
        net_amount: formatMoney(decision.net_amount),
        commission: formatMoney(decision.commission),
        platform_fee: formatMoney(decision.platform_fee),
      },
      entry.expect,
    )
    // A fixture shows one thing: nothing but its own reason may fail it, save what follows from it.
    const failed = decision.checks.filter((check) => check.verdict === 'failed').map((check) => check.name)
    const alsoNothingPayable = entry.expect.rejection_reason === 'product_not_in_offer'
    const expected = entry.expect.rejection_reason === null ? [] : [entry.expect.rejection_reason]
    assert.equal(failed, alsoNothingPayable ? [...expected, 'nothing_payable'] : expected)
    if (entry.lines) assert.equal(linesOf(decision), entry.lines)
  })
}

test('the manifest names each fixture once, each order differs, and every fixture is JSON before it is filled', () => {
  const files = readdirSync(new URL('store-sales/', FIXTURES)).toSorted()
  assert.equal(manifest.map((entry) => entry.file).toSorted(), files)
  assert.is(new Set(manifest.map((entry) => entry.order_id)).size, manifest.length)
  assert.is(new Set(manifest.map((entry) => entry.order_name)).size, manifest.length)
  for (const file of files) JSON.parse(read(`store-sales/${file}`))
})

test('placeholders are filled with times of the shop, bare product numbers and escaped text', () => {
  const text =
    '{"at":["{{at:+90m}}","{{at:-10m}}","{{at:+20d}}","{{at:+0s}}"],"p":"{{product_id}}","e":"{{creator_email}}"}'
  assert.equal(JSON.parse(fillFixture(text, { ...values, creatorEmail: '"odd\\"@example.com' })), {
    at: [
      '2026-03-01T02:00:15+05:00',
      '2026-03-01T00:20:15+05:00',
      '2026-03-21T00:30:15+05:00',
      '2026-03-01T00:30:15+05:00',
    ],
    p: Number(FIXTURE_PRODUCT_ID),
    e: '"odd\\"@example.com',
  })
})

test('an unknown, broken or unfilled placeholder is refused', () => {
  for (const text of [
    '{{clicks}}',
    '{{}}',
    '{{at:90m}}',
    '{{at:+9w}}',
    '{{click',
    '{{cl{{ick}}}}',
    '{{ click }}',
    'x{{product_id}}',
  ]) {
    assert.throws(() => fillFixture(text, values), /placeholder/, text)
  }
  assert.throws(() => fillFixture('{{click}}', { ...values, click: '' }), /no usable value/)
  assert.throws(() => fillFixture('{{click}}', { ...values, click: '{{x}}' }), /no usable value/)
  assert.throws(() => fillFixture('"{{product_id}}"', { ...values, productId: '1,"x":2' }), /productId/)
})

test.run()
