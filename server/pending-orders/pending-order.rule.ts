import type { Paisa } from '../../shared/money.ts'

/**
 * The states of a pending order, in the order in which they only move forward. A payment counts before a cancellation, and that before
 * the end of the waiting time, so any order of events leads to the same state.
 */
export const PENDING_STATES = ['pending', 'expired', 'cancelled', 'became_sale'] as const
export type PendingState = (typeof PENDING_STATES)[number]

/** What an order says of its link and its worth. */
export interface PendingTerms {
  order_name: string
  /** Epoch ms. */
  placed_at: number
  offer_id: string
  creator_id: string
  link_id: string
  coupon_code: string | null
  expected_commission: Paisa
}

export interface PendingOrderFacts extends PendingTerms {
  state: PendingState
  sale_id: string | null
  /** Of the report that the terms come from; see `versionOf`. */
  version: string
}

/** What a report of an order says. */
export interface PlacedReport {
  version: string
  /** Whether the order is paid, or was paid and refunded: then it does not wait for a payment. */
  paid: boolean
  /** `null` when the order leads to no link of the store's merchant. */
  terms: PendingTerms | null
}

/** A decided sale of the order. */
export interface DecidedOrder {
  id: string
  /** `null` when the sale names no link. */
  terms: PendingTerms | null
}

const WAS_PAID = ['paid', 'partially_refunded', 'refunded']

/** Whether an order with this status has been paid. */
export function wasPaid(financialStatus: string | null): boolean {
  return financialStatus !== null && WAS_PAID.includes(financialStatus)
}

/**
 * Sorts the reports of one order: by the store's time of the change, in whole seconds; within one second a placement comes first, then by
 * the unsigned time of the trigger; at last by the body, so that the result does not depend on the order of arrival. Times in epoch ms.
 */
export function versionOf(report: {
  updatedAt: number
  placement: boolean
  triggeredAt: number | null
  bodyHash: string
}): string {
  const time = (ms: number) => String(Math.max(0, ms)).padStart(15, '0')
  const rank = report.placement ? 0 : 1
  return [time(report.updatedAt), rank, time(report.triggeredAt ?? 0), report.bodyHash.slice(0, 16)].join('.')
}

/**
 * A pending order after a report; the same object when the report changes nothing, `null` while there is no pending order. A report
 * without a link, or of an order that does not wait for a payment, is passed over. What it says of a cancellation is applied apart.
 */
export function afterReport(
  current: PendingOrderFacts | null,
  { version, paid, terms }: PlacedReport,
): PendingOrderFacts | null {
  const counts = terms !== null && !paid
  if (current === null) {
    if (!counts) return null
    return { ...terms, state: 'pending', sale_id: null, version }
  }
  return counts && version > current.version ? { ...current, ...terms, version } : current
}

/** A pending order whose store took it back: canceled it, or paid everything back. */
export function afterCancellation(current: PendingOrderFacts): PendingOrderFacts {
  return { ...current, state: furthest(current.state, 'cancelled') }
}

/** A pending order whose order has this sale. What the sale says replaces what was expected of it. */
export function afterSale(current: PendingOrderFacts, sale: DecidedOrder): PendingOrderFacts {
  return { ...current, ...sale.terms, state: 'became_sale', sale_id: sale.id }
}

function furthest(one: PendingState, other: PendingState): PendingState {
  return PENDING_STATES.indexOf(one) > PENDING_STATES.indexOf(other) ? one : other
}

/** Fewer decided orders say nothing. */
export const LEAST_DECIDED = 20

/** Percent of the decided orders that became sales, with at most two decimals; `null` below 20 of them. */
export function paidRate({ decided, paid }: { decided: number; paid: number }): number | null {
  return decided < LEAST_DECIDED ? null : Math.round((paid * 10_000) / decided) / 100
}
