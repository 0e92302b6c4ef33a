/** What could be read of a malformed order, so that people find it. */
export interface OrderNames {
  order_id: string | null
  order_name: string | null
}

const NO_NAMES: OrderNames = { order_id: null, order_name: null }

/**
 * A validly signed body that is not an order we can decide on: the event is set aside and flagged with `reason`. The reason names
 * the field and never repeats its value, because the value may be a buyer's.
 */
export class MalformedOrder extends Error {
  readonly reason: string
  readonly names: OrderNames

  constructor(reason: string, names: OrderNames = NO_NAMES) {
    super(`malformed order: ${reason}`)
    this.name = 'MalformedOrder'
    this.reason = reason
    this.names = names
  }
}
