import { MalformedOrder } from '../shopify/fields.ts'
import { isOrderPaid, type OrderFacts, readOrderFacts } from '../shopify/order-facts.ts'

/** The order in an event's body, or why there is none; `null` for an event whose body does not matter. */
export type ReadOrder = OrderFacts | MalformedOrder | null

/** Orders that were read ahead, by event id, with the SHA-256 of the body that was read, hex. */
export type ReadOrders = ReadonlyMap<string, { order: ReadOrder; bodyHash: string }>

/** The most bytes of bodies whose orders are kept. */
export const KEPT_BYTES = 64 * 1024 * 1024

export const NOTHING_READ: ReadOrders = new Map()

/** Whether the body of an event matters. */
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
