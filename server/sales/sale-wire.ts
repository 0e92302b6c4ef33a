import { formatMoney } from '../../shared/money.ts'
import { basisPointsToPercent } from '../../shared/rates.ts'
import type { Role } from '../../shared/schemas/common.ts'
import type { Sale, SaleReceiptWire } from '../../shared/schemas/sales.ts'
import { toWireTime } from '../platform/clock.ts'
import type { SaleCheck } from './accept-sale.rule.ts'
import type { SaleReceipt, SaleWithSlug } from './sales.service.ts'

/** A sale as its merchant or creator sees it: the platform's fee is the merchant's business only. */
export function wireSale(row: Omit<SaleWithSlug, 'receipt' | 'event_id' | 'click_id'>, role: Role): Sale {
  return {
    id: row.id,
    acceptance_status: row.acceptance_status,
    rejection_reason: row.rejection_reason,
    offer_id: row.offer_id,
    creator_id: row.creator_id,
    affiliate_link_slug: row.slug,
    store_id: row.store_id,
    order_id: row.order_id,
    order_name: row.order_name,
    net_amount: formatMoney(row.net_amount),
    commission_rate: row.commission_rate === null ? null : basisPointsToPercent(row.commission_rate),
    commission: formatMoney(row.commission),
    ...(role === 'merchant' && { platform_fee: formatMoney(row.platform_fee) }),
    currency: 'PKR',
    billing_cycle_id: row.billing_cycle_id,
    ordered_at: toWireTime(row.ordered_at),
    created_at: toWireTime(row.created_at),
  }
}

/**
 * The stored receipt for one of the two parties. A click that led to somebody else's link stays out of it: `link_id`
 * is empty then, and its terms are no business of this merchant's.
 */
export function wireReceipt(row: SaleWithSlug, role: Role): SaleReceiptWire {
  const { facts, decision } = JSON.parse(row.receipt) as SaleReceipt
  const click = row.link_id === null ? null : facts.click
  return {
    rule_version: decision.rule_version,
    checks: decision.checks.map((check) => ({ ...check, saw: wireSaw(check.saw) })),
    lines: decision.basis_lines.map((line) => ({
      title: line.title,
      product_id: line.product_id,
      quantity: line.quantity,
      gross: formatMoney(line.gross),
      discount: formatMoney(line.discount),
      tax: formatMoney(line.tax),
      net: formatMoney(line.net),
      counted: line.counted,
      why_not: line.why_not,
    })),
    net_amount: formatMoney(decision.net_amount),
    commission_rate:
      decision.commission_rate === null ? null : basisPointsToPercent(decision.commission_rate),
    commission: formatMoney(decision.commission),
    ...(role === 'merchant' && {
      platform_fee_rate: basisPointsToPercent(decision.platform_fee_rate),
      platform_fee: formatMoney(decision.platform_fee),
    }),
    clicked_at: click && toWireTime(click.created_at),
    terms_locked_at: click && toWireTime(click.link.locked_at),
  }
}

const MONEY_SEEN = ['net_amount', 'commission']

/** What a check looked at, in the wire's forms: the stored receipt has epoch ms and paisa. */
function wireSaw(saw: SaleCheck['saw']): SaleCheck['saw'] {
  return Object.fromEntries(
    Object.entries(saw).map(([name, value]) => {
      if (typeof value !== 'number') return [name, value]
      if (name.endsWith('_at')) return [name, toWireTime(value)]
      return [name, MONEY_SEEN.includes(name) ? formatMoney(value) : value]
    }),
  )
}
