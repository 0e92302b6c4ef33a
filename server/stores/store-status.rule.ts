import { DAY_MS } from '../../shared/durations.ts'
import { ORDER_SOURCES, type OrderSource } from '../../shared/schemas/stores.ts'
import type { Config } from '../platform/config.ts'

/** Orders came regularly if they came on enough of this many days up to the last event. */
export const REGULAR_SPAN_DAYS = 28

/** Days without any event, and days with orders, of the 28 up to the last event, that make them regular (0 = never silent). */
type SilenceSettings = Pick<Config, 'FLAG_STORE_SILENT_DAYS' | 'FLAG_STORE_SILENT_REGULAR'>

/** What is known of a store's deliveries. Times in epoch ms. */
export interface StoreSigns {
  connectedAt: number
  lastEventAt: number | null
  lastRefusedAt: number | null
  /** Days with orders, of the 28 up to the last event. */
  orderDays: number
  /** Whether all that came is of other topics than paid orders. */
  onlyOtherTopics: boolean
  /** When a body came last that is XML. */
  lastXmlAt: number | null
}

/** A store's status, from what arrived and what was refused. */
export function storeStatus(signs: StoreSigns, now: number, settings: SilenceSettings) {
  const { connectedAt, lastEventAt, lastRefusedAt } = signs
  const since = Math.max(connectedAt, lastEventAt ?? 0)
  if (lastRefusedAt !== null && lastRefusedAt > since) return 'rejecting'
  if (lastEventAt === null || lastEventAt < connectedAt) return 'waiting'
  if (signs.lastXmlAt !== null && signs.lastXmlAt >= lastEventAt) return 'xml'
  if (signs.onlyOtherTopics) return 'no_order_payment'
  return isSilent({ lastEventAt, orderDays: signs.orderDays }, now, settings) ? 'silent' : 'receiving'
}

/** A merchant is notified after this many refused deliveries in a row, or when fewer have been refused for this time. */
const REFUSED_IN_A_ROW = 3
const REFUSED_FOR_MS = 10 * 60_000
/** Refusals for this long are for a person. */
const REFUSED_TOO_LONG_MS = DAY_MS
/** A merchant is notified of refusals at most once in this time. */
const NOTIFY_EVERY_MS = DAY_MS

/** A store's refused deliveries. Times in epoch ms. */
export interface Refusals {
  /** The first without a valid one since; may lie before a valid one. */
  since: number
  count: number
  lastRefusedAt: number
  lastEventAt: number | null
  /** When the merchant was last notified. */
  sentAt: number | null
}

/** What a store's refused deliveries call for. `answered`: a valid delivery came after them. */
export function refusalSteps(refusals: Refusals, now: number) {
  const { count, lastRefusedAt, sentAt } = refusals
  const lastEventAt = refusals.lastEventAt ?? 0
  if (lastEventAt > lastRefusedAt) return { answered: true, notify: false, flag: false }
  // A valid delivery since the first one ends the row, so only the last is known to follow it.
  const [since, inARow] = lastEventAt > refusals.since ? [lastRefusedAt, 1] : [refusals.since, count]
  const heard = inARow >= REFUSED_IN_A_ROW || now - since >= REFUSED_FOR_MS
  const isNews = sentAt === null || (lastRefusedAt > sentAt && now - sentAt >= NOTIFY_EVERY_MS)
  return { answered: false, notify: heard && isNews, flag: now - since >= REFUSED_TOO_LONG_MS }
}

/** Whether a store whose orders came regularly sends nothing. */
export function isSilent(
  { lastEventAt, orderDays }: { lastEventAt: number; orderDays: number },
  now: number,
  { FLAG_STORE_SILENT_DAYS: days, FLAG_STORE_SILENT_REGULAR: regularDays }: SilenceSettings,
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
