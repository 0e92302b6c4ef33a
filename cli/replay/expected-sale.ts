import { DAY_MS } from '../../shared/durations.ts'
import { formatMoney } from '../../shared/money.ts'
import { type BasisPoints, rateOf } from '../../shared/rates.ts'
import { type RejectionReason, SALE_REJECTION_REASONS } from '../../shared/rejection-reasons.ts'
import { sum } from '../terminal/output.ts'
import { amountOf, type SaleExpectation, type StoreFixture } from './fixture-files.ts'

/** Decided by the link's terms, so the manifest's terms do not say it. */
const OF_TERMS: readonly RejectionReason[] = [
  'outside_attribution_window',
  'product_unknown',
  'product_not_in_offer',
  'nothing_payable',
]

/** The terms that the link locked. */
export interface Terms {
  commission_rate: BasisPoints
  attribution_window_days: number
  product_ids: string[] | null
}

/** How an order was filled. Times in epoch ms. */
export interface FilledOrder {
  /** The link of its click; `null` for an order without a click of ours. */
  terms: Terms | null
  /** False when another merchant's store sends it. */
  linkOfSender: boolean
  clickedAt: number
  /** Whether a coupon code of the link stands in the order, instead of the click. */
  byCoupon: boolean
  orderedAt: number
  /** The product that stands for `{{product_id}}`. */
  productId: string
  platformFeeRate: BasisPoints
}

/**
 * What an order must lead to on the terms of its link: reason and net amounts from the manifest, window, products and rate from the link. It
 * does not ask the rule that it checks.
 */
export function expectSale(fixture: StoreFixture, filled: FilledOrder): SaleExpectation {
  const terms = filled.linkOfSender ? filled.terms : null
  const lines = linesOf(fixture, filled.productId)
  const named = terms?.product_ids ?? []
  const covered = lines.filter(({ productId }) => named.length === 0 || named.includes(productId ?? ''))
  const net = sum(covered.map((line) => line.net))
  const commission = terms === null ? 0 : rateOf(net, terms.commission_rate)
  const reasons = new Set<RejectionReason>()
  const { rejection_reason: own } = fixture.expect
  if (own !== null && !(terms && OF_TERMS.includes(own))) reasons.add(own)
  if (filled.terms !== null && terms === null) {
    reasons.add(filled.byCoupon ? 'no_tracking_reference' : 'other_merchants_link')
  }
  if (terms !== null) {
    const windowEnd = filled.clickedAt + terms.attribution_window_days * DAY_MS
    if (!filled.byCoupon && filled.orderedAt > windowEnd) reasons.add('outside_attribution_window')
    if (covered.length === 0)
      reasons.add(own === 'product_unknown' ? 'product_unknown' : 'product_not_in_offer')
    if (commission === 0) reasons.add('nothing_payable')
  }
  const reason = SALE_REJECTION_REASONS.find((one) => reasons.has(one)) ?? null
  const paid = reason === null ? commission : 0
  return {
    acceptance_status: reason === null ? 'accepted' : 'rejected',
    rejection_reason: reason,
    net_amount: formatMoney(net),
    commission: formatMoney(paid),
    platform_fee: formatMoney(rateOf(paid, filled.platformFeeRate)),
  }
}

/** Without lines in the manifest, the order has one, of the link's product. */
function linesOf({ lines, expect }: StoreFixture, productId: string) {
  const listed = lines ?? [{ product_id: '{{product_id}}', net: expect.net_amount }]
  return listed.map((line) => ({
    productId: line.product_id === '{{product_id}}' ? productId : line.product_id,
    net: amountOf(line.net),
  }))
}
