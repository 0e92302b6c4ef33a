import { formatLineAmount } from '../../shared/line-amount.ts'
import { formatMoney } from '../../shared/money.ts'
import { basisPointsToPercent } from '../../shared/rates.ts'
import type { Role } from '../../shared/schemas/common.ts'
import type {
  ListedSale,
  Sale,
  SaleOutcomeWire,
  SaleReceiptWire,
  SaleWithReceipt,
} from '../../shared/schemas/sales.ts'
import type { LinkTerms } from '../links/links.service.ts'
import { isoTime } from '../platform/clock.ts'
import {
  attributionOf,
  isInForce,
  orderSource,
  type SaleCheck,
  type SaleReceipt,
} from './accept-sale.rule.ts'
import type { NamedSale, SaleCycle, SaleExplanation } from './sale-explanation.service.ts'
import type { ExportedSale } from './sales.store.ts'

/** A sale as its merchant or creator sees it. Only the merchant sees the platform fee. */
export function wireSale(row: ExportedSale, role: Role): Sale {
  return {
    id: row.id,
    acceptance_status: row.acceptance_status,
    rejection_reason: row.rejection_reason,
    attributed_by: row.coupon_code !== null ? 'coupon' : row.link_id === null ? null : 'click',
    offer_id: row.offer_id,
    creator_id: row.creator_id,
    affiliate_link_slug: row.slug,
    ...(role !== 'merchant' && { sub_id: row.sub_id }),
    store_id: row.store_id,
    order_id: row.order_id,
    order_name: row.order_name,
    net_amount: formatMoney(row.net_amount),
    commission_rate: row.commission_rate === null ? null : basisPointsToPercent(row.commission_rate),
    commission: formatMoney(row.commission),
    ...(role === 'merchant' && { platform_fee: formatMoney(row.platform_fee) }),
    currency: 'PKR',
    billing_cycle_id: row.billing_cycle_id,
    ordered_at: isoTime(row.ordered_at),
    created_at: isoTime(row.created_at),
    decided_at: isoTime(row.decided_at ?? row.created_at),
  }
}

/** A sale of a list. */
export function wireNamedSale(sale: NamedSale, role: Role): ListedSale {
  const { offer, creator, store } = sale
  return { ...wireSale(sale, role), offer, creator, store }
}

/** The explanation of a sale for its merchant or creator: names only, without contact or payment details. */
export function wireExplanation(explanation: SaleExplanation, role: Role): SaleWithReceipt {
  const { sale, merchant, receipt, formerDecisions } = explanation
  return {
    ...wireNamedSale(sale, role),
    merchant: { id: merchant.id, display_name: merchant.display_name },
    receipt: wireReceipt(receipt, role, sale.creator_id),
    former_decisions: formerDecisions.flatMap((former) => wireFormer(former, sale, role)),
    outcome: wireOutcome(explanation, role),
    ...(role === 'merchant' && { credit_request: explanation.creditRequest }),
  }
}

/** Hidden from the creator if the order named another creator's link before it was paid. */
function wireFormer(
  { decided_at, receipt }: SaleExplanation['formerDecisions'][number],
  sale: NamedSale,
  role: Role,
): SaleWithReceipt['former_decisions'] {
  if (role !== 'merchant' && attributionOf(receipt.facts)?.link.creator_id !== sale.creator_id) return []
  const { acceptance_status, rejection_reason } = receipt.decision
  const shown = wireReceipt(receipt, role, sale.creator_id)
  return [{ decided_at: isoTime(decided_at), acceptance_status, rejection_reason, receipt: shown }]
}

/**
 * A stored receipt for the merchant or creator. It omits a click on another merchant's link; for the creator also all lines that do
 * not count, and clicks and codes of other creators.
 */
function wireReceipt(
  { facts, decision }: SaleReceipt,
  role: Role,
  creatorId: string | null,
): SaleReceiptWire {
  const isShown = ({ link }: { link: LinkTerms }) =>
    link.merchant_id === facts.reporting_merchant_id && (role === 'merchant' || link.creator_id === creatorId)
  const click = facts.click && isShown(facts.click) ? facts.click : null
  const coupons = (facts.coupons ?? []).filter(isShown)
  const attribution = attributionOf(facts)
  const lines = decision.basis_lines.filter((line) => line.counted || role === 'merchant')
  return {
    rule_version: decision.rule_version,
    checks: decision.checks.map((check) => ({
      ...check,
      saw: check.name === 'coupon_not_in_force' && coupons.length === 0 ? {} : wireSaw(check.saw),
    })),
    lines: lines.map(wireLine),
    ...(facts.order.discount_spread !== undefined && {
      discount_spread: formatMoney(facts.order.discount_spread),
    }),
    ...(facts.order.amount_refunded !== undefined && {
      amount_refunded: formatMoney(facts.order.amount_refunded),
    }),
    ...(facts.order.unclear && { unclear: facts.order.unclear }),
    lines_left_out: decision.basis_lines.length - lines.length,
    net_amount: formatMoney(decision.net_amount),
    commission_rate:
      decision.commission_rate === null ? null : basisPointsToPercent(decision.commission_rate),
    ...rateSource(attribution?.link ?? null),
    commission: formatMoney(decision.commission),
    ...(role === 'merchant' && {
      platform_fee_rate: basisPointsToPercent(decision.platform_fee_rate),
      platform_fee: formatMoney(decision.platform_fee),
    }),
    attributed_by: attribution?.by ?? null,
    tracked_by: orderSource(facts),
    coupons: coupons.map((coupon) => ({
      code: coupon.code,
      affiliate_link_slug: coupon.link.slug,
      in_force: isInForce(coupon, facts.order),
      starts_at: isoTime(coupon.starts_at),
      ends_at: isoTime(coupon.ends_at),
      offer_status: coupon.offer_status,
    })),
    clicked_at: click && isoTime(click.created_at),
    clicked_link_slug: click?.link.slug ?? null,
    terms_locked_at: attribution && isoTime(attribution.link.locked_at),
    attribution_window_days: attribution?.link.attribution_window_days ?? null,
    product_ids: attribution?.link.product_ids ?? null,
  }
}

/** Whether a link's rate is the offer's at the approval, or one for its creator only. */
export function rateSource(
  link: Pick<LinkTerms, 'commission_rate' | 'offer_rate'> | null,
): Pick<SaleReceiptWire, 'rate_source' | 'offer_commission_rate'> {
  if (link === null) return { rate_source: null, offer_commission_rate: null }
  return {
    rate_source: link.offer_rate === undefined ? 'offer' : 'individual',
    offer_commission_rate: basisPointsToPercent(link.offer_rate ?? link.commission_rate),
  }
}

/** A line of an order with what it counts for. */
export function wireLine({
  title,
  refunded,
  ...line
}: SaleReceipt['decision']['basis_lines'][number]): SaleReceiptWire['lines'][number] {
  return {
    title,
    ...line,
    unit_price: formatLineAmount(line.unit_price),
    gross: formatMoney(line.gross),
    discount: formatMoney(line.discount),
    tax: formatMoney(line.tax),
    ...(refunded !== undefined && { refunded: formatMoney(refunded) }),
    net: formatMoney(line.net),
  }
}

/**
 * The outcome of a sale for the merchant or creator. Only the merchant sees the invoice, only the creator the payout's amount and
 * failure reason.
 */
function wireOutcome({ cycle, payouts }: SaleExplanation, role: Role): SaleOutcomeWire {
  return {
    billing_cycle: cycle && wireSaleCycle(cycle, role),
    payouts: payouts.map((payout, index) => {
      const former = payouts[index - 1]
      return {
        id: payout.id,
        state: payout.state,
        share: formatMoney(cycle?.creatorShare ?? 0),
        replaces_payout_id: former?.state === 'failed' ? former.id : null,
        created_at: isoTime(payout.created_at),
        settled_at: isoTime(payout.settled_at),
        ...(role === 'creator' && {
          amount: formatMoney(payout.amount),
          processor_payout_id: payout.processor_payout_id,
          failure_reason: payout.failure_reason,
        }),
      }
    }),
  }
}

/** The cycle that bills a sale. Only the merchant sees the invoice. */
export function wireSaleCycle(cycle: SaleCycle, role: Role): SaleOutcomeWire['billing_cycle'] {
  const settled = (amount: number) => (cycle.state === 'open' ? null : formatMoney(amount))
  return {
    id: cycle.id,
    state: cycle.state,
    period_start: isoTime(cycle.period_start),
    period_end: isoTime(cycle.period_end),
    closed_at: isoTime(cycle.closed_at),
    charged_at: isoTime(cycle.charged_at),
    creator_share: formatMoney(cycle.creatorShare),
    ...(role === 'merchant' && {
      amount_due: settled(cycle.amount_due),
      credit_total: settled(cycle.credit_total),
      processor_invoice_id: cycle.processor_invoice_id,
      processor_payment_reference: cycle.processor_payment_reference,
    }),
  }
}

const MONEY_FIELDS = ['net_amount', 'commission']

/** Converts a check's epoch ms and paisa to wire times and amounts. */
function wireSaw(saw: SaleCheck['saw']): SaleCheck['saw'] {
  return Object.fromEntries(
    Object.entries(saw).map(([name, value]) => {
      if (typeof value !== 'number') return [name, value]
      if (name.endsWith('_at')) return [name, isoTime(value)]
      return [name, MONEY_FIELDS.includes(name) ? formatMoney(value) : value]
    }),
  )
}
