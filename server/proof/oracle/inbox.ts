import { cycleFor } from './billing.ts'
import { readOrder } from './order.ts'
import { hearProcessor, type Outcome } from './processor-events.ts'
import { judge } from './sale.ts'
import { type InboxEvent, known, type ProcessorWord, post, raiseFlag, type State } from './state.ts'

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
  return keep(state, { ...delivery, scope: delivery.store, said: null })
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
  return keep(state, { ...delivery, scope: PROCESSOR, topic: null })
}

type Kept = Pick<InboxEvent, 'scope' | 'deliveryId' | 'body' | 'topic' | 'said'>

/** One event a delivery id; another body under the same id is kept beside it. */
function keep(state: State, { scope, deliveryId, body, topic, said }: Kept): Receipt {
  const same = state.events.filter((event) => event.scope === scope && event.deliveryId === deliveryId)
  if (same.some((event) => event.body === body)) return 'known'
  const key = `${scope} ${deliveryId}${same.length > 0 ? ` other body ${same.length}` : ''}`
  const conflicting = same.length > 0
  state.events.push({ key, scope, deliveryId, body, topic, said, conflicting, state: 'pending', tries: 0 })
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
  if (event.state === 'set_aside' && outcome !== 'flagged') {
    raiseFlag(state, event.conflicting ? 'event_body_conflict' : 'event_set_aside', event.key)
  }
}

function applyStoreEvent(state: State, event: InboxEvent, now: number): Outcome {
  if (event.conflicting) return 'set_aside'
  if (event.topic !== 'orders/paid') return 'ignored'
  const order = readOrder(event.body, state.settings.trackingParameter)
  if (order === null) return 'set_aside'
  if (state.sales.some((sale) => sale.store === event.scope && sale.orderId === order.id)) return 'ignored'
  const { merchant } = known(state.stores, event.scope)
  const { click, ...verdict } = judge(state, merchant, order)
  const accepted = verdict.reason === null
  const cycle = accepted ? cycleFor(state, merchant, now) : null
  state.sales.push({
    store: event.scope,
    merchant,
    orderId: order.id,
    ...verdict,
    link: click?.link ?? null,
    placedAt: order.placedAt,
    decidedAt: now,
    cycle,
  })
  if (accepted) {
    post(state, [
      ['merchant_unbilled', merchant, verdict.commission + verdict.fee],
      ['creator_pending', click?.link.creator ?? '', -verdict.commission],
      ['platform_fees', 'the platform', -verdict.fee],
    ])
  }
  return 'done'
}
