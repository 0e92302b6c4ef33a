/** The one topic that reports a sale. */
const ORDER_PAID_TOPIC = 'orders/paid'

/** The topics of an order's life before its payment; each carries the whole order. Everything else that a store signs needs nothing. */
const PLACED_TOPICS = {
  'orders/create': 'create',
  'orders/updated': 'updated',
  'orders/cancelled': 'cancelled',
} as const

export type PlacedTopic = (typeof PLACED_TOPICS)[keyof typeof PLACED_TOPICS]

/** The header is not signed, and the address is for paid orders: a sender that leaves it out means them. */
export function isOrderPaid(topic: string | null): boolean {
  return topic === null || topic.toLowerCase() === ORDER_PAID_TOPIC
}

/** What a topic says of an order that is not paid yet; `null` for any other topic. */
export function placedTopic(topic: string | null): PlacedTopic | null {
  return PLACED_TOPICS[topic?.toLowerCase() as keyof typeof PLACED_TOPICS] ?? null
}
