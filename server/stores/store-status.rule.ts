import { ORDER_SOURCES, type OrderSource } from '../../shared/schemas/stores.ts'
import type { Config } from '../platform/config.ts'

const DAY_MS = 86_400_000

/** Orders came regularly if they came on enough of this many days up to the last event. */
export const REGULAR_SPAN_DAYS = 28

/** When the settings call a store silent. */
export interface SilenceLimits {
  /** Days without any event. */
  days: number
  /** Days with orders, of the 28 up to the last event, that make them regular; 0 = never silent. */
  regularDays: number
}

export function silenceLimits(
  config: Pick<Config, 'FLAG_STORE_SILENT_DAYS' | 'FLAG_STORE_SILENT_REGULAR'>,
): SilenceLimits {
  return { days: config.FLAG_STORE_SILENT_DAYS, regularDays: config.FLAG_STORE_SILENT_REGULAR }
}

/** What is known of a store's deliveries. Times in epoch ms. */
export interface StoreSigns {
  /** When it was connected; `null` for stores of earlier versions. */
  connectedAt: number | null
  lastEventAt: number | null
  lastRefusedAt: number | null
  /** Days with orders, of the 28 up to the last event. */
  orderDays: number
}

/** A store's status, from what arrived and what was refused. */
export function storeStatus(signs: StoreSigns, now: number, limits: SilenceLimits) {
  const { connectedAt, lastEventAt, lastRefusedAt } = signs
  const since = Math.max(connectedAt ?? 0, lastEventAt ?? 0)
  if (lastRefusedAt !== null && lastRefusedAt > since) return 'rejecting'
  if (lastEventAt === null || lastEventAt < (connectedAt ?? 0)) return 'waiting'
  return isSilent({ lastEventAt, orderDays: signs.orderDays }, now, limits) ? 'silent' : 'receiving'
}

/** Whether a store whose orders came regularly sends nothing. */
export function isSilent(
  { lastEventAt, orderDays }: { lastEventAt: number; orderDays: number },
  now: number,
  { days, regularDays }: SilenceLimits,
): boolean {
  return regularDays > 0 && orderDays >= regularDays && now - lastEventAt >= days * DAY_MS
}

/** Numbers of orders by what led to their link. */
export type SourceCounts = Record<OrderSource, number>

/**
 * The largest share of a store's orders that moved from one source to another between two spans, 0 to 1: of all orders, or of those
 * that led to a link. A comparison counts only with at least `least` orders in both spans.
 */
export function sourceShift(before: SourceCounts, after: SourceCounts, least: number): number {
  const tracked = ORDER_SOURCES.filter((source) => source !== 'none')
  return Math.max(...[ORDER_SOURCES, tracked].map((sources) => movedShare(before, after, sources, least)))
}

function movedShare(
  before: SourceCounts,
  after: SourceCounts,
  sources: readonly OrderSource[],
  least: number,
): number {
  const total = (counts: SourceCounts) => sources.reduce((sum, source) => sum + counts[source], 0)
  const [ordersBefore, ordersAfter] = [total(before), total(after)]
  if (Math.min(ordersBefore, ordersAfter) < Math.max(1, least)) return 0
  const gained = sources.map((source) =>
    Math.max(0, after[source] / ordersAfter - before[source] / ordersBefore),
  )
  return gained.reduce((sum, share) => sum + share, 0)
}
