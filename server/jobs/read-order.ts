import { MalformedOrder } from '../shopify/malformed-order.ts'
import { isOrderPaid, type OrderFacts, readOrderFacts } from '../shopify/order-facts.ts'

/** The order in an event's body, or why there is none; `null` where nobody needs to look. */
export type ReadOrder = OrderFacts | MalformedOrder | null

/** What has been read by event id. An event that is not in it has to be read. */
export type ReadOrders = ReadonlyMap<string, ReadOrder>

/** Orders that were read ahead are kept up to so many bytes of their bodies. */
export const KEPT_BYTES = 64 * 1024 * 1024

/** Parsing a body of more characters than this has a turn of the event loop to itself. */
export const LARGE_BODY = 128 * 1024

export const NOTHING_READ: ReadOrders = new Map()

/** Whether anything in an event's body matters. */
export function isToBeRead(event: { topic: string | null; conflicting: boolean }): boolean {
  return !event.conflicting && isOrderPaid(event.topic)
}

export function readOrder(text: string, trackingParameter: string): OrderFacts | MalformedOrder {
  try {
    return readOrderFacts(text, trackingParameter)
  } catch (error) {
    if (error instanceof MalformedOrder) return error
    throw error
  }
}
