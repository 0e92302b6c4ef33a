/** The one topic that reports a sale; everything else that a store signs is noted and needs nothing. */
export const ORDER_PAID_TOPIC = 'orders/paid'

/** The header is not signed, and the address is for paid orders: a sender that leaves it out means them. */
export function isOrderPaid(topic: string | null): boolean {
  return topic === null || topic.toLowerCase() === ORDER_PAID_TOPIC
}
