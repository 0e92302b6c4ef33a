import type { PeriodLength } from './calendar.ts'
import type { Order } from './order.ts'

/**
 * The whole money domain as plain lists. Written from the specification, the two outside systems' contracts and
 * server/decisions; it shares no line with the services that it judges. Amounts in paisa, rates in basis points, times in epoch ms.
 */
export interface State {
  settings: Settings
  people: Map<string, Person>
  stores: Map<string, Store>
  offers: Map<string, Offer>
  links: Map<string, Link>
  clicks: Map<string, Click>
  sales: Sale[]
  pendingOrders: PendingOrder[]
  /** What its store took back before it was a pending order: `order of store`. */
  takenBack: Set<string>
  cycles: Cycle[]
  credits: Credit[]
  payouts: Payout[]
  calls: Call[]
  events: InboxEvent[]
  flags: Flag[]
  /** Debits less credits by `account of owner`. */
  balances: Map<string, number>
  /** Whether the processor leaves look-ups without an answer. */
  lookupsDown: boolean
}

export interface Settings {
  platformFeeRate: number
  payoutThreshold: number
  /** Payouts are whole multiples of it. */
  payoutUnit: number
  period: PeriodLength
  /** The query parameter and note attribute that carry the click. */
  trackingParameter: string
}

export interface Person {
  name: string
  role: 'merchant' | 'creator'
  email: string
  suspended: boolean
  destinations: { givenAt: number; countsFrom: number }[]
}

export interface Store {
  name: string
  merchant: string
  inUse: boolean
  /** The present one last; a former one is good until a moment. */
  secrets: { secret: string; until: number | null }[]
}

export interface Terms {
  rate: number
  windowDays: number
  /** None: every product. */
  productIds: readonly string[]
}

export interface Offer {
  name: string
  merchant: string
  status: 'draft' | 'live' | 'paused' | 'ended'
  /** Each status with its time, oldest first. */
  statuses: { status: Offer['status']; since: number }[]
  terms: Terms
}

export interface Link {
  name: string
  offer: string
  merchant: string
  creator: string
  terms: Terms
  /** Its coupon codes, oldest first; `until` is `null` for the present one. */
  codes: { code: string; from: number; until: number | null }[]
}

export interface Click {
  id: string
  link: Link
  at: number
  tracked: boolean
}

export interface Sale {
  store: string
  merchant: string
  orderId: string
  /** `null`: accepted. */
  reason: string | null
  basis: number
  rate: number | null
  commission: number
  fee: number
  link: Link | null
  /** The coupon code that earned it; `null`: a click did, if anything. */
  code: string | null
  /** All its codes that were in force. */
  earning: string[]
  placedAt: number
  decidedAt: number
  /** When it was decided first, if it was decided again since. */
  formerlyDecidedAt: number | null
  /** The order as its latest decision read it. */
  order: Order
  cycle: Cycle | null
}

/** An order that was reported before its payment. */
export interface PendingOrder {
  store: string
  orderId: string
  link: Link
  code: string | null
  expected: number
  placedAt: number
  /** Of the report that says so: its time, and its place in the order's life. */
  version: readonly [number, number]
  cancelled: boolean
  expired: boolean
}

export interface Cycle {
  name: string
  merchant: string
  start: number
  end: number
  state: 'open' | 'closed' | 'charged'
  creditUsed: number
  due: number
  closedAt: number | null
  chargedAt: number | null
  paymentReference: string | null
}

export interface Credit {
  reference: string
  merchant: string
  amount: number
}

export interface Payout {
  name: string
  creator: string
  amount: number
  lines: { cycle: Cycle; amount: number }[]
  state: 'pending' | 'submitted' | 'paid' | 'failed'
  createdAt: number
  submittedAt: number | null
  settledAt: number | null
  failureReason: string | null
}

/** What we want of the processor for one cycle or payout, and what it holds of it. */
export interface Call {
  kind: 'invoice' | 'payout'
  /** The cycle's or payout's name. */
  subject: string
  amount: number
  state: 'waiting' | 'created' | 'refused'
  tries: number
  /** How often the call itself was made. */
  made: number
  queuedAt: number
  /** When the last call without an answer was made. */
  unheardAt: number | null
  /** In the processor's own words; `null` when it knows nothing of it. */
  held: 'open' | 'processing' | 'paid' | 'failed' | null
}

export interface InboxEvent {
  key: string
  scope: string
  deliveryId: string
  body: string
  topic: string | null
  receivedAt: number
  /** What a processor's event says; `null` for a store's, and for one that cannot be read. */
  said: ProcessorWord | null
  conflicting: boolean
  state: 'pending' | 'done' | 'ignored' | 'set_aside'
  tries: number
}

export type ProcessorWord =
  | { kind: 'other'; type: string }
  | {
      kind: 'payment_confirmed'
      /** The cycle whose invoice it names; `null` for an unknown invoice. */
      cycle: string | null
      paymentReference: string
      amount: number
      currency: string
    }
  | {
      kind: 'payout_confirmed' | 'payout_failed'
      payout: string | null
      /** Whether the processor's own id in it is the one that the payout got. */
      rightId: boolean
      amount: number
      currency: string
      reason: string
    }

export interface Flag {
  kind: string
  about: string
  open: boolean
  resolvedAt: number | null
}

export function emptyState(settings: Settings): State {
  return {
    settings,
    people: new Map(),
    stores: new Map(),
    offers: new Map(),
    links: new Map(),
    clicks: new Map(),
    sales: [],
    pendingOrders: [],
    takenBack: new Set(),
    cycles: [],
    credits: [],
    payouts: [],
    calls: [],
    events: [],
    flags: [],
    balances: new Map(),
    lookupsDown: false,
  }
}

/** Something that must be there, since the story made it. */
export function known<T>(things: ReadonlyMap<string, T>, name: string): T {
  const thing = things.get(name)
  if (thing === undefined) throw new Error(`the oracle knows no ${name}`)
  return thing
}

/** One flag a kind and subject at a time. */
export function raiseFlag(state: State, kind: string, about: string): void {
  if (state.flags.some((flag) => flag.open && flag.kind === kind && flag.about === about)) return
  state.flags.push({ kind, about, open: true, resolvedAt: null })
}

export type Leg = [account: string, owner: string, debit: number]

/** One journal entry: debits above zero, credits below. */
export function post(state: State, legs: Leg[]): void {
  if (legs.reduce((sum, [, , amount]) => sum + amount, 0) !== 0)
    throw new Error('an entry that does not balance')
  for (const [account, owner, amount] of legs) {
    const key = `${account} of ${owner}`
    state.balances.set(key, (state.balances.get(key) ?? 0) + amount)
  }
}
