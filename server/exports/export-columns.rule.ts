import type { Role } from '../../shared/schemas/common.ts'
import type { ExportResource } from '../../shared/schemas/jobs.ts'
import type { Column } from './csv.rule.ts'

const text = (...paths: string[]): Column[] => paths.map((path) => ({ path, kind: 'text' }))
const number = (...paths: string[]): Column[] => paths.map((path) => ({ path, kind: 'number' }))

/** Whether a role has any rows of a resource. */
export function mayExport(role: Role, resource: ExportResource): boolean {
  return resource !== 'billing_cycles' || role !== 'creator'
}

/**
 * The columns of a resource for a role. Admins see those of merchants and creators, and the owners. Add a new column at the end for every
 * role, because files are also read by position.
 */
export function exportColumns(resource: ExportResource, role: Role): Column[] {
  switch (resource) {
    case 'sales':
      return [
        ...text('id', 'acceptance_status', 'rejection_reason', 'offer_id', 'creator_id'),
        ...text('affiliate_link_slug', 'store_id', 'order_id', 'order_name'),
        ...number('net_amount', 'commission_rate', 'commission'),
        ...(role === 'creator' ? [] : number('platform_fee')),
        ...text('currency', 'billing_cycle_id', 'ordered_at', 'created_at'),
        ...(role === 'admin' ? text('merchant_id') : []),
        ...text('decided_at', 'attributed_by'),
        ...(role === 'merchant' ? [] : text('sub_id')),
      ]
    case 'payouts':
      return [
        ...text('id', 'state'),
        ...number('amount'),
        ...text('currency'),
        ...(role === 'creator' ? [] : text('creator.id', 'creator.display_name')),
        ...(role === 'merchant' ? [] : text('processor_payout_id', 'failure_reason')),
        ...text('created_at', 'settled_at'),
      ]
    case 'billing_cycles':
      return [
        ...text('id', 'state', 'period_start', 'period_end'),
        ...number('commission_total', 'fee_total', 'credit_total', 'amount_due'),
        ...text('currency', 'processor_invoice_id', 'processor_payment_reference', 'payment_url'),
        ...text('closed_at', 'charged_at'),
        ...(role === 'admin' ? text('merchant_id') : []),
        ...text('payment_instructions'),
      ]
    case 'applications':
      return [
        ...text('id', 'offer_id', 'creator.id', 'creator.display_name', 'status', 'message'),
        ...text('promotion_url'),
        ...number('locked_commission_rate'),
        ...text('affiliate_link.slug', 'affiliate_link.url', 'decision_reason', 'decided_at', 'created_at'),
        ...text('affiliate_link.coupon_code', 'affiliate_link.ended_at', 'offer.id', 'offer.title'),
      ]
    case 'pending_orders':
      return [
        ...text('id', 'order_name', 'state', 'offer.id', 'offer.title', 'creator.id', 'creator.display_name'),
        ...text('affiliate_link_slug', 'attributed_by'),
        ...number('expected_commission'),
        ...text('currency', 'sale_id', 'placed_at', 'updated_at'),
        ...(role === 'creator' ? [] : text('order_id', 'store.id', 'store.shop_domain')),
        ...(role === 'admin' ? text('merchant_id') : []),
      ]
    case 'clicks':
      return [
        ...text('id', 'affiliate_link_slug', 'tracked', 'kind', 'created_at'),
        ...(role === 'merchant' ? [] : text('sub_id')),
      ]
  }
}
