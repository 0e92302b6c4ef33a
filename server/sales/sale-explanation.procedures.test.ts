import * as assert from 'uvu/assert'
import { SALE_REJECTION_REASONS } from '../../shared/rejection-reasons.ts'
import type { Actor } from '../platform/api/procedure.ts'
import { marketSuites } from '../test/testkit/market-suites.ts'
import type { Marketplace } from '../test/testkit/marketplace.ts'
import { orderBody } from '../test/testkit/orders.ts'
import { outcomeOf, requestOf } from '../test/testkit/people.ts'
import { assertMapped, pluck, pluckAll } from '../test/testkit/pluck.ts'
import { proofDialects } from '../test/testkit/proof-size.ts'
import { MINUTE } from '../test/testkit/testbed.ts'
import { SALE_RULE_VERSION } from './accept-sale.rule.ts'
import { salesRouter } from './sales.procedures.ts'

const PRODUCT = '8123456789012'
const OTHER_LINES = [
  { product_id: 77, title: 'Secret gift for Bushra', quantity: 2, price: '900.00' },
  { product_id: 8_123_456_789_012, title: 'Voucher', quantity: 1, price: '500.00', gift_card: true },
]

for (const { it } of marketSuites('a sale as its two parties read it', {
  shared: true,
  dialects: proofDialects(),
})) {
  let market: Marketplace
  it.before((context) => {
    market = context.market
  })

  const salesFor = (actor: Actor) => salesRouter.createCaller(requestOf(market.platform, actor))

  /** An accepted sale of 16,000.00 with two lines that do not count, with its first payout failed and its second paid. */
  async function soldAndExplained() {
    const { clock } = market
    const shop = await market.addShop('Chenab Lawn')
    const creator = await market.addCreator('Sana Mirza')
    const link = await market.addLink(shop, creator, { title: 'Lawn suit', product_ids: [PRODUCT] })
    const click = await market.click(link)
    clock.pass(MINUTE)
    const order = JSON.parse(orderBody({ price: 1_600_000, click, createdAt: clock.now(), name: '#77' }))
    order.line_items.push(...OTHER_LINES)
    await market.deliver(shop, JSON.stringify(order))
    await market.drainUntilIdle()
    const [sale] = (await salesFor(creator).list({})).items
    const id = sale?.id ?? ''
    return {
      id,
      shop,
      creator,
      bill: () => market.earn(shop, link, 1_000_000),
      async pay() {
        for (const word of ['failed', 'confirmed'] as const) {
          clock.pass(MINUTE)
          await market.payOut(word)
        }
      },
    }
  }

  it('has the same click, terms, checks and arithmetic for both', async () => {
    const { id, shop, creator } = await soldAndExplained()
    const [merchants, creators] = [
      await salesFor(shop.actor).get({ id }),
      await salesFor(creator).get({ id }),
    ]
    for (const explained of [merchants, creators]) {
      assert.equal(
        [explained.merchant.display_name, explained.creator?.display_name],
        ['Chenab Lawn', 'Sana Mirza'],
      )
      assert.is(explained.offer?.title, 'Lawn suit')
      const { receipt } = explained
      assert.equal(
        [receipt.rule_version, receipt.checks.length, receipt.commission_rate, receipt.commission],
        [SALE_RULE_VERSION, SALE_REJECTION_REASONS.length, 12.5, '2000.00'],
      )
      assert.equal([receipt.attribution_window_days, receipt.product_ids], [30, [PRODUCT]])
      assert.ok((receipt.terms_locked_at ?? '') <= (receipt.clicked_at ?? ''))
      assert.equal(receipt.lines[0], {
        title: 'Kurta',
        product_id: PRODUCT,
        quantity: 1,
        unit_price: '16000.00',
        gross: '16000.00',
        discount: '0.00',
        tax: '0.00',
        net: '16000.00',
        counted: true,
        why_not: null,
      })
      assert.equal([explained.outcome.billing_cycle?.state, explained.outcome.payouts], ['open', []])
    }
    assert.equal(
      [merchants.receipt.platform_fee, merchants.receipt.platform_fee_rate, merchants.platform_fee],
      ['200.00', 10, '200.00'],
    )
    assert.equal(pluck(merchants.receipt.lines, 'why_not'), [null, 'other_product', 'gift_card'])
    assert.equal([merchants.receipt.lines_left_out, creators.receipt.lines_left_out], [0, 2])
    assert.is(creators.receipt.lines.length, 1)
  })

  it('goes on to the invoice for the merchant, and to every payout for both', async () => {
    const { id, shop, creator, bill, pay } = await soldAndExplained()
    await bill()
    await pay()
    const [merchants, creators] = [
      await salesFor(shop.actor).get({ id }),
      await salesFor(creator).get({ id }),
    ]
    const { billing_cycle: cycle, payouts } = merchants.outcome
    assert.equal(
      [cycle?.state, cycle?.creator_share, cycle?.amount_due, cycle?.credit_total],
      ['charged', '3250.00', '3575.00', '0.00'],
    )
    assert.ok(cycle?.processor_invoice_id && cycle.processor_payment_reference && cycle.charged_at)
    assert.equal(pluckAll(payouts, 'state', 'share', 'replaces_payout_id'), [
      ['failed', '3250.00', null],
      ['paid', '3250.00', payouts[0]?.id],
    ])
    assertMapped(creators.outcome.payouts, (payout) => [payout.state, payout.amount, payout.failure_reason], [
      ['failed', '3250.00', 'returned by the bank'],
      ['paid', '3250.00', null],
    ])
  })

  it('keeps from each what is private to the other, and the buyer from both', async () => {
    const { id, shop, creator, bill, pay } = await soldAndExplained()
    await bill()
    await pay()
    const merchants = JSON.stringify(await salesFor(shop.actor).get({ id }))
    const creators = JSON.stringify(await salesFor(creator).get({ id }))
    const hidden = [
      [
        merchants,
        'creator',
        [`${creator.userId}@`, 'PK36', '6702', 'A CREATOR', 'returned by the bank', 'po_'],
      ],
      [
        creators,
        'merchant',
        [
          `${shop.merchantId}@`,
          'platform_fee',
          'amount_due',
          'credit_total',
          'inv_',
          'pay_',
          'Secret gift',
          'Voucher',
          '900.00',
        ],
      ],
      [merchants, 'buyer', ['bushra.buyer', 'Buyerova', '923331234567']],
      [creators, 'buyer', ['bushra.buyer', 'Buyerova', '923331234567', 'Bushra']],
    ] as const
    for (const [explained, whose, texts] of hidden) {
      for (const text of texts) assert.not(explained.includes(text), `${text} is the ${whose}'s`)
    }
    const strangers = [await market.addShop(), { actor: await market.addCreator() }]
    for (const { actor } of strangers) {
      assert.is(await outcomeOf(salesFor(actor).get({ id })), 'not_found')
    }
  })

  it('of a sale that was rejected ends with the reason; no one else’s link is named in it', async () => {
    const [owner, other] = [await market.addShop('Owner'), await market.addShop('Other')]
    const creator = await market.addCreator('Zoya')
    const link = await market.addLink(owner, creator)
    await market.order(other, link, 100_000)
    await market.drainUntilIdle()
    const [sale] = (await salesFor(other.actor).list({})).items
    const explained = await salesFor(other.actor).get({ id: sale?.id ?? '' })
    assert.equal(
      [
        explained.rejection_reason,
        explained.creator,
        explained.offer,
        explained.receipt.clicked_at,
        explained.receipt.product_ids,
      ],
      ['other_merchants_link', null, null, null, null],
    )
    assert.equal(explained.outcome, { billing_cycle: null, payouts: [] })
    assert.not(JSON.stringify(explained).includes(creator.userId))
    assert.is(await outcomeOf(salesFor(creator).get({ id: sale?.id ?? '' })), 'not_found')
  })

  it.run()
}
