import { eventsOfOrders } from '../inbox/events.service.ts'
import type { ClaimedEvent } from '../inbox/inbox.service.ts'
import type { Platform } from '../platform/platform.ts'
import { isUnknownProduct } from '../sales/sale-facts.ts'
import type { OrderFacts, OrderLine } from '../shopify/order-facts.ts'
import { isOrderPaid } from '../shopify/topics.ts'
import { type ReadOrder, readOrder } from './read-order.ts'

interface ReportedLines {
  store_id: string
  order_id: string
  lines: readonly OrderLine[]
}

/**
 * For paid orders of a batch with a product that the shop has deleted since, the lines of the reports before their payment, by event id: of
 * the batch, and of stored bodies, which are kept for RAW_EVENT_RETENTION_DAYS.
 */
export async function earlierLines(
  platform: Platform,
  events: readonly ClaimedEvent[],
  orders: readonly ReadOrder[],
): Promise<Map<string, OrderLine[]>> {
  const read = events.flatMap(({ id, scope: store_id, topic }, index) => {
    const order = orders[index] ?? null
    return isOrder(order) ? [{ id, topic, store_id, order_id: order.order_id, lines: order.lines }] : []
  })
  const unclear = read.filter(({ topic, lines }) => isOrderPaid(topic) && lines.some(isUnknownProduct))
  if (unclear.length === 0) return new Map()
  const stored = (await eventsOfOrders(platform, platform.database.reader, unclear)).flatMap(
    ({ scope: store_id, topic, text, problem }): ReportedLines[] => {
      const order = text === null || problem !== null ? null : readOrder(text, topic, platform.config)
      return isOrder(order) ? [{ store_id, order_id: order.order_id, lines: order.lines }] : []
    },
  )
  const known = [...stored, ...read.filter(({ topic }) => !isOrderPaid(topic))]
  return new Map(unclear.map((one) => [one.id, known.filter(isSameOrder(one)).flatMap(({ lines }) => lines)]))
}

function isSameOrder(one: ReportedLines): (other: ReportedLines) => boolean {
  return ({ store_id, order_id }) => store_id === one.store_id && order_id === one.order_id
}

function isOrder(order: ReadOrder): order is OrderFacts {
  return order !== null && 'lines' in order
}
