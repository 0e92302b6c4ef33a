import { cycleFor } from './billing.ts'
import { DAY, MINUTE } from './calendar.ts'
import { type Order, readOrder } from './order.ts'
import { hearPlaced, isPlaced, saysNothing, wasTakenBack } from './pending.ts'
import { hearProcessor, type Outcome } from './processor-events.ts'
import { codesOf, isGivenBack, judge, paid } from './sale.ts'
import {
  type InboxEvent,
  known,
  type Link,
  type ProcessorWord,
  post,
  raiseFlag,
  type Sale,
  type State,
} from './state.ts'

/** As the events' own table calls the processor. */
export const PROCESSOR = 'processor'
const MOST_TRIES = 12
const SKEW_MS = 300_000

export type Receipt = 'refused' | 'stored' | 'known' | 'conflict'

export interface StoreDelivery {
  store: string
  deliveryId: string
  topic: string
  body: string
  /** What it is signed with. */
  secret: string
}

/** What a store sends in: not processed at all unless it is signed with a secret that counts now. */
export function receiveFromStore(state: State, delivery: StoreDelivery, now: number): Receipt {
  const store = known(state.stores, delivery.store)
  const valid = store.secrets.some(
    ({ secret, until }) => secret === delivery.secret && (until === null || until > now),
  )
  if (!store.inUse || !valid) return 'refused'
  return keep(state, { ...delivery, scope: delivery.store, said: null, receivedAt: now })
}

export interface ProcessorDelivery {
  deliveryId: string
  body: string
  /** `null`: the body cannot be read. */
  said: ProcessorWord | null
  signedAt: number
  forged: boolean
}

export function receiveFromProcessor(state: State, delivery: ProcessorDelivery, now: number): Receipt {
  // The header tells whole seconds.
  const signedAt = delivery.signedAt - (delivery.signedAt % 1000)
  if (delivery.forged || Math.abs(now - signedAt) > SKEW_MS) return 'refused'
  return keep(state, { ...delivery, scope: PROCESSOR, topic: null, receivedAt: now })
}

type Kept = Pick<InboxEvent, 'scope' | 'deliveryId' | 'body' | 'topic' | 'said' | 'receivedAt'>

/** One event a delivery id; another body under the same id is kept beside it. */
function keep(state: State, kept: Kept): Receipt {
  const { scope, deliveryId, body } = kept
  const same = state.events.filter((event) => event.scope === scope && event.deliveryId === deliveryId)
  if (same.some((event) => event.body === body)) return 'known'
  const key = `${scope} ${deliveryId}${same.length > 0 ? ` other body ${same.length}` : ''}`
  const conflicting = same.length > 0
  state.events.push({ ...kept, key, conflicting, state: 'pending', tries: 0 })
  return conflicting ? 'conflict' : 'stored'
}

/** Applies what stores have sent, in the order in which it came. */
export function applyStoreEvents(state: State, now: number): void {
  for (const event of state.events.filter((one) => one.scope !== PROCESSOR && one.state === 'pending')) {
    finish(state, event, applyStoreEvent(state, event, now))
  }
}

/** Applies what the processor has sent. What cannot be applied yet waits for the next time. */
export function applyProcessorEvents(state: State, now: number): void {
  for (const event of state.events.filter((one) => one.scope === PROCESSOR && one.state === 'pending')) {
    if (event.conflicting || event.said === null) finish(state, event, 'set_aside')
    else finish(state, event, hearProcessor(state, event.said, now))
  }
}

function finish(state: State, event: InboxEvent, outcome: Outcome): void {
  event.tries += 1
  if (outcome === 'not_yet' && event.tries < MOST_TRIES) return
  event.state = outcome === 'not_yet' || outcome === 'flagged' ? 'set_aside' : outcome
  // Whatever is set aside is flagged; about the cycle or payout, where the event is about one.
  if (event.state !== 'set_aside' || outcome === 'flagged') return
  const kind = event.conflicting ? 'event_body_conflict' : 'event_set_aside'
  const unlike = event.conflicting ? 'conflicting' : 'unreadable'
  // A store's events share a flag; each of the processor's has its own.
  raiseFlag(state, kind, event.scope === PROCESSOR ? event.key : `${event.scope} ${unlike}`)
}

function applyStoreEvent(state: State, event: InboxEvent, now: number): Outcome {
  if (event.conflicting) return 'set_aside'
  if (event.topic !== 'orders/paid' && !isPlaced(event.topic)) return 'ignored'
  const parameter = state.settings.trackingParameter
  if (isPlaced(event.topic) && saysNothing(event, parameter)) return 'ignored'
  const order = readOrder(event.body, parameter)
  if (order === null) return 'set_aside'
  if (isPlaced(event.topic)) return hearPlaced(state, event, order)
  const former = state.sales.find((sale) => sale.store === event.scope && sale.orderId === order.id)
  if (!former) {
    state.sales.push(decide(state, event, order, now))
    return 'done'
  }
  const again = former.reason === 'not_paid' && paid(order)
  const changed = again ? changedWhilePaying(former.order, order) : changedSince(former.order, order)
  // A code that was on the order keeps what it was at the decision.
  const { earning } = codesOf(state, former.merchant, order)
  const code =
    order.codes.find((one) => (former.order.codes.includes(one) ? former.earning : earning).includes(one)) ??
    null
  // Also a code that gave way to a click, because it could not earn.
  const codeBefore = former.order.codes.find((one) => former.earning.includes(one)) ?? null
  const otherCode = (!again || codeBefore !== null) && codeBefore !== code
  const refunded = former.reason === null && isGivenBack(order)
  if (changed || otherCode || refunded) raiseFlag(state, 'order_changed', event.scope)
  if (!again) return 'ignored'
  Object.assign(former, decide(state, event, order, now, former), { formerlyDecidedAt: former.decidedAt })
  return 'done'
}

/** The sale as it is decided now, with the money that moves for it. */
function decide(state: State, event: InboxEvent, order: Order, now: number, former?: Sale): Sale {
  const { merchant } = known(state.stores, event.scope)
  const { click, ...verdict } = judge(state, merchant, order)
  const { earning, since } = codesOf(state, merchant, order)
  const reportedAt = Math.min(event.receivedAt, former?.decidedAt ?? now)
  const beforeCode =
    earning.length === 0 && since !== null && since > order.placedAt + 5 * MINUTE && reportedAt >= since
  if (beforeCode || hasOddDate(order, event.receivedAt, click?.at ?? null, since !== null))
    raiseFlag(state, 'order_date_suspicious', event.scope)
  const accepted = verdict.reason === null
  const unclear =
    (accepted && hasHiddenRefund(order)) ||
    verdict.reason === 'product_unknown' ||
    ((accepted || verdict.reason === 'nothing_payable') && hasUnknownProduct(order, verdict.link))
  if (verdict.link && unclear) raiseFlag(state, 'order_unclear', event.scope)
  if (accepted && wasTakenBack(state, event.scope, order)) raiseFlag(state, 'order_changed', event.scope)
  const cycle = accepted ? cycleFor(state, merchant, now) : null
  if (accepted) {
    post(state, [
      ['merchant_unbilled', merchant, verdict.commission + verdict.fee],
      ['creator_pending', verdict.link?.creator ?? '', -verdict.commission],
      ['platform_fees', 'the platform', -verdict.fee],
    ])
  }
  return {
    store: event.scope,
    merchant,
    orderId: order.id,
    ...verdict,
    earning,
    placedAt: order.placedAt,
    decidedAt: now,
    formerlyDecidedAt: null,
    order,
    cycle,
  }
}

/** An order that is dated before its click, after its report, or at least 90 days before its payment was reported. */
function hasOddDate(order: Order, receivedAt: number, clickedAt: number | null, hasCode: boolean): boolean {
  if (order.placedAt > receivedAt + 5 * MINUTE) return true
  if (clickedAt === null && !hasCode) return false
  return (clickedAt ?? 0) > order.placedAt + 5 * MINUTE || receivedAt - order.placedAt >= 90 * DAY
}

/** Whether another reference, other amounts or another date stand there than before. */
function changedSince(before: Order, now: Order): boolean {
  const facts = (order: Order) => [
    clickNamed(order),
    order.placedAt,
    order.currency,
    order.taxesIncluded,
    order.lines,
    order.refunded,
  ]
  const text = (order: Order) =>
    JSON.stringify(facts(order), (_name, value) => (typeof value === 'bigint' ? String(value) : value))
  return text(before) !== text(now)
}

/** Partly given back, and nothing shows what. */
function hasHiddenRefund({ financialStatus, lines, hasRefunds }: Order): boolean {
  return (
    financialStatus === 'partially_refunded' &&
    !hasRefunds &&
    lines.every(({ remaining, ordered }) => remaining >= ordered)
  )
}

/** A line of a deleted product may be of those that the link is for. */
function hasUnknownProduct({ lines }: Order, link: Link | null): boolean {
  const isForSome = (link?.terms.productIds.length ?? 0) > 0
  return isForSome && lines.some(({ deleted, remaining }) => deleted && remaining > 0)
}

/** Until an order is paid its amounts may change. */
function changedWhilePaying(before: Order, now: Order): boolean {
  const otherClick = before.references.length > 0 && clickNamed(before) !== clickNamed(now)
  return otherClick || before.placedAt !== now.placedAt
}

const CLICK = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

function clickNamed({ references }: Order): string | null {
  const text = references[0]?.toLowerCase() ?? ''
  return CLICK.test(text) ? text : null
}
