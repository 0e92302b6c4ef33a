/**
 * A validly signed body that is not an order we can decide on: the event is set aside and flagged with `reason`. The reason names
 * the field and never repeats its value, because the value may be a buyer's.
 */
export class MalformedOrder extends Error {
  readonly reason: string

  constructor(reason: string) {
    super(`malformed order: ${reason}`)
    this.name = 'MalformedOrder'
    this.reason = reason
  }
}
