import type { Config } from '../platform/config.ts'
import { MalformedOrder, type OrderNames } from '../shopify/fields.ts'
import { mayNameLink } from '../shopify/names-link.ts'
import { type OrderFacts, readOrderFacts } from '../shopify/order-facts.ts'
import { isOrderPaid, placedTopic } from '../shopify/topics.ts'

interface UnreadableOrder {
  malformed: string
  names: OrderNames
}

/** An order that was not read, because it leads to no link and is not paid yet. */
interface PassedOver {
  namesNoLink: true
}

/** The order in an event's body, or why there is none; `null` for an event whose body does not matter. */
export type ReadOrder = OrderFacts | UnreadableOrder | PassedOver | null

/** An order that was read ahead, with the SHA-256 of the body that was read, hex. */
export interface ReadAhead {
  order: ReadOrder
  bodyHash: string
}

/** `bytes`: the length of the body, which bounds the size of the order. */
export type KeptOrder = ReadAhead & { bytes: number }

/** By event id. */
export type ReadOrders = ReadonlyMap<string, ReadAhead>

/** The most bytes of bodies whose orders are kept. */
export const KEPT_BYTES = 64 * 1024 * 1024

export const NOTHING_READ: ReadOrders = new Map()

/** Whether the body of an event matters. */
export function isToBeRead(event: { topic: string | null; conflict_hash: string }): boolean {
  return event.conflict_hash === '' && (isOrderPaid(event.topic) || placedTopic(event.topic) !== null)
}

/** How the operator names what stands in orders. */
export type OrderNaming = Pick<Config, 'TRACKING_PARAMETER' | 'FEE_TITLES'>

export function readOrder(
  text: string,
  topic: string | null,
  { TRACKING_PARAMETER, FEE_TITLES }: OrderNaming,
): OrderFacts | UnreadableOrder | PassedOver {
  const placed = placedTopic(topic)
  // A cancellation may be of an order that is known.
  const mayBePassedOver = placed === 'create' || placed === 'updated'
  if (mayBePassedOver && !mayNameLink(text, TRACKING_PARAMETER)) return { namesNoLink: true }
  try {
    return readOrderFacts(text, TRACKING_PARAMETER, FEE_TITLES)
  } catch (error) {
    if (error instanceof MalformedOrder) return { malformed: error.reason, names: error.names }
    throw error
  }
}
