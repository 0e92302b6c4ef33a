import { DAY } from './calendar.ts'
import type { Order } from './order.ts'
import type { Outcome } from './processor-events.ts'
import { isGivenBack, judge } from './sale.ts'
import { type InboxEvent, known, type PendingOrder, raiseFlag, type State } from './state.ts'

const PLACED = ['orders/create', 'orders/updated', 'orders/cancelled']
const ONCE_PAID = ['paid', 'partially_refunded', 'refunded']

/** Whether a topic tells of an order's life before its payment. */
export function isPlaced(topic: string | null): boolean {
  return topic !== null && PLACED.includes(topic)
}

/** Whether a whole body names nothing that could lead to a link, and cancels nothing: it is not read. */
export function saysNothing({ topic, body }: InboxEvent, parameter: string): boolean {
  if (topic === 'orders/cancelled') return false
  const isWhole = body.startsWith('{') && body.endsWith('}')
  const hasNoCodes = body.includes('"discount_codes":[]') && body.includes('"cancelled_at":null')
  return isWhole && hasNoCodes && !body.includes(parameter)
}

/** Whether a report has said that the store took the order back: canceled it, or paid everything back. */
export function wasTakenBack(state: State, store: string, order: Order): boolean {
  const there = state.pendingOrders.find((one) => one.store === store && one.orderId === order.id)
  return state.takenBack.has(`${order.id} of ${store}`) || there?.cancelled === true
}

/** What becomes of such a report: it counts if the order waits for its payment and leads to a link of the merchant, or was taken back. */
export function hearPlaced(state: State, event: InboxEvent, order: Order): Outcome {
  const back = isGivenBack(order) || event.topic === 'orders/cancelled'
  const isOf = (one: { store: string; orderId: string }) =>
    one.store === event.scope && one.orderId === order.id
  const there = state.pendingOrders.find(isOf)
  if (back && state.sales.some((sale) => isOf(sale) && sale.reason === null))
    raiseFlag(state, 'order_changed', event.scope)
  if (there && back) there.cancelled = true
  const { merchant } = known(state.stores, event.scope)
  const asPaid = { ...order, financialStatus: 'paid', cancelled: false }
  const { link, code, commission: expected } = judge(state, merchant, asPaid)
  if (link === null || ONCE_PAID.includes(order.financialStatus ?? '')) {
    if (back && !there) state.takenBack.add(`${order.id} of ${event.scope}`)
    return there && back ? 'done' : 'ignored'
  }
  const version = [order.updatedAt, event.topic === 'orders/create' ? 0 : 1] as const
  const said = { link, code, expected, placedAt: order.placedAt, version }
  if (!there) {
    const cancelled = back || wasTakenBack(state, event.scope, order)
    state.pendingOrders.push({ store: event.scope, orderId: order.id, ...said, cancelled, expired: false })
    return 'done'
  }
  if (isLater(version, there.version)) Object.assign(there, said)
  return 'done'
}

function isLater(one: PendingOrder['version'], other: PendingOrder['version']): boolean {
  const place = one.findIndex((part, index) => part !== other[index])
  return place !== -1 && (one[place] ?? 0) > (other[place] ?? 0)
}

/** The schedule ends the waiting of orders that are older than so many days. */
export function expire(state: State, days: number, now: number): void {
  for (const one of state.pendingOrders) if (one.placedAt < now - days * DAY) one.expired = true
}
