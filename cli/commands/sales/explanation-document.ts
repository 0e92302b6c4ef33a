import type { SaleExplanation } from '../../../server/sales/sale-explanation.service.ts'
import { formatLineAmount } from '../../../shared/line-amount.ts'
import { CURRENCY, formatMoney, type Paisa } from '../../../shared/money.ts'
import { type BasisPoints, basisPointsToPercent } from '../../../shared/rates.ts'
import { wireTime } from '../../terminal/output.ts'

/** The story of a sale for `--json`, in the wire's words: rupees, percent, RFC 3339. */
export function storyDocument(story: SaleExplanation) {
  const { decision, click, coupon, link } = story
  return {
    sale_id: story.saleId,
    event_id: story.eventId,
    event_origin: story.origin,
    order_id: story.orderId,
    order_name: story.orderName,
    acceptance_status: decision.acceptance_status,
    rejection_reason: decision.rejection_reason,
    attributed_by: coupon ? 'coupon' : link ? 'click' : null,
    tracked_by: story.source,
    rule_version: decision.rule_version,
    ordered_at: wireTime(story.orderedAt),
    decided_at: wireTime(story.decidedAt),
    former_decisions: story.formerDecisions.map(({ decidedAt, eventId, decision: former }) => ({
      decided_at: wireTime(decidedAt),
      event_id: eventId,
      acceptance_status: former.acceptance_status,
      rejection_reason: former.rejection_reason,
      rule_version: former.rule_version,
      checks: former.checks,
      net_amount: formatMoney(former.net_amount),
    })),
    store: { id: story.store.id, shop_domain: story.store.shopDomain },
    merchant: party(story.merchant),
    creator: story.creator && party(story.creator),
    offer: story.offer,
    click: click && { id: click.id, created_at: wireTime(click.created_at), tracked: click.tracked },
    coupon: coupon && {
      code: coupon.code,
      starts_at: wireTime(coupon.starts_at),
      ends_at: wireTime(coupon.ends_at),
    },
    link: link && {
      id: link.id,
      slug: link.slug,
      commission_rate: basisPointsToPercent(link.commission_rate),
      attribution_window_days: link.attribution_window_days,
      product_ids: link.product_ids,
      locked_at: wireTime(link.locked_at),
    },
    checks: decision.checks,
    basis_lines: decision.basis_lines.map((line) => ({
      ...line,
      unit_price: formatLineAmount(line.unit_price),
      gross: formatMoney(line.gross),
      discount: formatMoney(line.discount),
      tax: formatMoney(line.tax),
      net: formatMoney(line.net),
    })),
    net_amount: formatMoney(decision.net_amount),
    commission_rate: percent(decision.commission_rate),
    commission: formatMoney(decision.commission),
    platform_fee_rate: basisPointsToPercent(decision.platform_fee_rate),
    platform_fee: formatMoney(decision.platform_fee),
    currency: CURRENCY,
    billing_cycle: story.cycle && cycleDocument(story.cycle),
    payouts: story.payouts.map((payout) => ({
      id: payout.id,
      state: payout.state,
      amount: formatMoney(payout.amount),
      processor_payout_id: payout.processorPayoutId,
      failure_reason: payout.failureReason,
      created_at: wireTime(payout.createdAt),
      settled_at: wireTime(payout.settledAt),
    })),
  }
}

function cycleDocument(cycle: NonNullable<SaleExplanation['cycle']>) {
  const settled = (amount: Paisa) => (cycle.state === 'open' ? null : formatMoney(amount))
  return {
    id: cycle.id,
    state: cycle.state,
    period_start: wireTime(cycle.period_start),
    period_end: wireTime(cycle.period_end),
    amount_due: settled(cycle.amount_due),
    credit_total: settled(cycle.credit_total),
    processor_invoice_id: cycle.processor_invoice_id,
    processor_payment_reference: cycle.processor_payment_reference,
    invoice_problem: cycle.invoiceProblem,
    closed_at: wireTime(cycle.closed_at),
    charged_at: wireTime(cycle.charged_at),
    creator_share: formatMoney(cycle.creatorShare),
    released_at: wireTime(cycle.releasedAt),
  }
}

function party({ id, displayName, email }: SaleExplanation['merchant']) {
  return { id, email, display_name: displayName }
}

function percent(rate: BasisPoints | null): number | null {
  return rate === null ? null : basisPointsToPercent(rate)
}
