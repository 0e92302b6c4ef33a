import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sha256 } from '../platform/crypto/vault.ts'
import { readOrderFacts } from '../shopify/order-facts.ts'
import { decideSale, type SaleReceipt } from './accept-sale.rule.ts'
import { type SaleFacts, saleOrderOf } from './sale-facts.ts'

const CLICK = '0197a3c0-5b1e-7d42-9c3f-2a64d1f0b8e7'
const CLICKED_AT = Date.UTC(2026, 2, 1, 19, 0)

const facts: SaleFacts = {
  order: saleOrderOf(
    readOrderFacts(
      JSON.stringify({
        id: 6_200_000_000_001,
        name: '#1001 "کُرتا"',
        created_at: '2026-03-02T12:00:00+05:00',
        currency: 'PKR',
        financial_status: 'paid',
        landing_site: `/x?aff_ref=${CLICK}`,
        line_items: [
          { product_id: 7, title: 'Lawn \\ 3-piece', quantity: 2, current_quantity: 1, price: '4999.00' },
          { product_id: 8, title: 'Gift', quantity: 1, price: '500.00', gift_card: true },
        ],
      }),
      'aff_ref',
    ),
  ),
  buyer_is_creator: false,
  buyer_name_matches: false,
  reporting_merchant_id: 'merchant',
  click: {
    id: CLICK,
    created_at: CLICKED_AT,
    tracked: true,
    link: {
      ...{
        id: 'link',
        slug: 'lawn-by-sana',
        merchant_id: 'merchant',
        offer_id: 'offer',
        creator_id: 'creator',
      },
      ...{
        commission_rate: 1250,
        attribution_window_days: 30,
        product_ids: null,
        locked_at: 1_790_000_000_000,
      },
    },
  },
  creator_suspended: false,
  merchant_suspended: false,
  platform_fee_rate: 1000,
}

/** Receipts are kept forever and compared as text: a faster way to write them may not write another one. */
test('a receipt is always the same text, byte for byte', () => {
  const receipt: SaleReceipt = { facts, decision: decideSale(facts) }
  const text = JSON.stringify(receipt)
  assert.is(receipt.decision.acceptance_status, 'accepted')
  assert.is(sha256(text), 'd7b04cd949014981aff8878fa78e778a74f8a05136a3f409ae5389f7ab3781a5', text)
})

test.run()
