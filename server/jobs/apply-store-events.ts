import { CycleFull } from '../billing/billing.service.ts'
import { type ClaimedEvent, type EventOutcome, settle, settleAll } from '../inbox/inbox.service.ts'
import { BODY_GONE, CONFLICTING, unreadable } from '../inbox/set-aside.service.ts'
import { recheckProductHosts } from '../offers/product-host.service.ts'
import {
  type PlacedOrder,
  type PlacedOutcome,
  recordPlacedOrders,
} from '../pending-orders/pending-orders.service.ts'
import { LARGE_JSON } from '../platform/bounded-json.ts'
import { afterCommit, type Tx } from '../platform/database/database.ts'
import { createLoopYield } from '../platform/loop-yield.ts'
import type { Platform } from '../platform/platform.ts'
import { type RecordedSale, type ReportedOrder, recordOrders } from '../sales/sales.service.ts'
import type { OrderFacts, OrderLine } from '../shopify/order-facts.ts'
import { isOrderPaid, placedTopic } from '../shopify/topics.ts'
import { recordActivity } from '../stores/store-activity.service.ts'
import { learnHosts, noteFirstEvents } from '../stores/store-events.service.ts'
import { getStoresById } from '../stores/stores.service.ts'
import { earlierLines } from './earlier-lines.ts'
import { isToBeRead, NOTHING_READ, type ReadOrder, type ReadOrders, readOrder } from './read-order.ts'

/**
 * Turns a batch of signed store events into sales and settles the events, in one transaction. Reads the bodies before it starts, because
 * on SQLite it blocks all other writers; those in `read` have been read already.
 */
export async function applyStoreEvents(
  platform: Platform,
  events: readonly ClaimedEvent[],
  read: ReadOrders = NOTHING_READ,
): Promise<void> {
  const yieldLoop = createLoopYield()
  const orders: ReadOrder[] = []
  for (const event of events) {
    const ahead = read.get(event.id)
    const isLarge = !ahead && (event.text?.length ?? 0) > LARGE_JSON
    if (isLarge) await yieldLoop(true)
    orders.push(ahead ? ahead.order : orderOf(platform, event))
    await yieldLoop(isLarge)
  }
  const earlier = await earlierLines(platform, events, orders)
  try {
    await platform.database.transaction((tx) => record(platform, tx, events, orders, earlier))
  } catch (error) {
    const [event, another] = events
    if (!(error instanceof CycleFull) || !event || another) throw error
    const { order_id, order_name } = orders[0] as OrderFacts
    const outcome = { kind: 'set_aside', reason: error.message, names: { order_id, order_name } } as const
    await platform.database.transaction((tx) => settle(platform, tx, event, outcome))
  }
}

async function record(
  platform: Platform,
  tx: Tx,
  events: readonly ClaimedEvent[],
  orders: readonly ReadOrder[],
  earlier: ReadonlyMap<string, readonly OrderLine[]>,
): Promise<void> {
  const stores = await getStoresById(tx, [...new Set(events.map((event) => event.scope))])
  await noteFirstEvents(platform, tx, stores, events)
  const outcomes = new Map<string, EventOutcome>()
  const reports: ReportedOrder[] = []
  const placed: PlacedOrder[] = []
  events.forEach((event, index) => {
    const read = reportOf(event, orders[index] ?? null, stores.get(event.scope)?.merchant_id)
    if ('topic' in read) placed.push(read)
    else if ('order' in read) reports.push({ ...read, earlier: earlier.get(event.id) })
    else outcomes.set(event.id, read)
  })
  const shown = [...reports, ...placed]
    .filter(({ order }) => !order.test)
    .map(({ eventId: id, storeId: scope, order }) => ({ id, scope, hosts: order.shop_hosts }))
  for (const merchantId of await learnHosts(platform, tx, stores, shown)) {
    await recheckProductHosts(platform, tx, merchantId)
  }
  const recorded = await recordOrders(platform, tx, reports)
  reports.forEach((report, index) => {
    const sale = recorded[index] as RecordedSale
    outcomes.set(report.eventId, outcomeOf(sale, report))
    if (!sale.known) afterCommit(tx, () => platform.topics.send(saleSignal(sale.acceptanceStatus)))
  })
  const decided = reports.filter((_, index) => !recorded[index]?.known)
  const placedOutcomes = await recordPlacedOrders(platform, tx, placed, decided)
  placed.forEach(({ eventId, order }, index) => {
    outcomes.set(eventId, outcomeOfPlaced(placedOutcomes[index] as PlacedOutcome, order))
  })
  const sources = new Map(reports.map(({ eventId }, index) => [eventId, recorded[index]?.source ?? null]))
  await recordActivity(
    platform,
    tx,
    events
      .filter(({ scope }) => stores.has(scope))
      .map(({ id, topic, scope: storeId, received_at: receivedAt }) => ({
        storeId,
        receivedAt,
        isPaid: isOrderPaid(topic),
        source: sources.get(id) ?? null,
      })),
  )
  const settled = events.map((event) => ({ event, outcome: outcomes.get(event.id) as EventOutcome }))
  await settleAll(platform, tx, settled)
}

/** The signal that this process sends for each sale that it records. */
export function saleSignal(status: RecordedSale['acceptanceStatus']): string {
  return `sale:${status}`
}

function orderOf({ config }: Platform, event: ClaimedEvent): ReadOrder {
  if (!isToBeRead(event) || event.text === null) return null
  return readOrder(event.text, event.topic, config)
}

function reportOf(
  event: ClaimedEvent,
  order: ReadOrder,
  merchantId: string | undefined,
): ReportedOrder | PlacedOrder | EventOutcome {
  if (event.conflict_hash !== '') return CONFLICTING
  const topic = placedTopic(event.topic)
  if (!isOrderPaid(event.topic) && topic === null) {
    return { kind: 'ignored', reason: `nothing to do for topic ${event.topic}` }
  }
  if (!merchantId) return { kind: 'set_aside', reason: 'its store is not known' }
  if (order === null) return BODY_GONE
  if ('malformed' in order) return unreadable(order.malformed, order.names)
  if ('namesNoLink' in order)
    return { kind: 'ignored', reason: 'the order names no link, so it is not expected' }
  const { id: eventId, scope: storeId, received_at: receivedAt, triggered_at: triggeredAt } = event
  if (topic !== null)
    return { eventId, storeId, merchantId, order, topic, triggeredAt, bodyHash: event.body_hash }
  return { eventId, storeId, merchantId, order, receivedAt, triggeredAt }
}

function outcomeOf(sale: RecordedSale, report: ReportedOrder): EventOutcome {
  if (sale.known) {
    return {
      kind: 'ignored',
      reason: `order ${report.order.order_id} is recorded already as sale ${sale.saleId}`,
    }
  }
  const result = { sale_id: sale.saleId, acceptance_status: sale.acceptanceStatus }
  return { kind: 'done', result: sale.decidedAgain ? { ...result, decided_again: true } : result }
}

/** With the order's names where a later event of the order looks for it. */
function outcomeOfPlaced(outcome: PlacedOutcome, { order_id, order_name }: OrderFacts): EventOutcome {
  const names = { order_id, order_name }
  if ('pendingOrderId' in outcome)
    return { kind: 'done', result: { pending_order_id: outcome.pendingOrderId }, names }
  const { reason, isTakenBack } = outcome
  return { kind: 'ignored', reason, ...(isTakenBack && { names }) }
}
