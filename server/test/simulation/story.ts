import type { PeriodLength } from '../oracle/calendar.ts'
import type { CallAnswer } from '../oracle/calls.ts'

/**
 * A story of some weeks: a small marketplace and what happens in it, as plain data. Every number that picks something (a merchant, an
 * offer) is taken modulo how many there are, so that any part can be left out and the rest still makes sense.
 */
export interface Story {
  /** Epoch ms. */
  start: number
  settings: { feeRate: number; threshold: number; payoutUnit: number; period: PeriodLength }
  merchants: MerchantPlan[]
  creators: { hasDestination: boolean }[]
  /** How the processor takes the calls: one list a subject, one answer a call; `ok` after its end. */
  answers: CallAnswer[][]
  steps: Step[]
}

export interface MerchantPlan {
  stores: 1 | 2
  offers: OfferTerms[]
}

export interface OfferTerms {
  rate: number
  windowDays: number
  /** Indices into the products of the world; none means all. */
  products: number[]
}

export interface Step {
  wait: Wait
  action: Action
  /** Whether the workers get round to their work after it. */
  work: boolean
}

/** `until`: the next boundary on Karachi's calendar, `plus` ms after it (or before). */
export type Wait = { ms: number } | { until: PeriodLength; plus: number }

export type Action =
  | SaleAction
  | { kind: 'terms'; merchant: number; offer: number; terms: OfferTerms }
  | { kind: 'status'; merchant: number; offer: number; to: 'live' | 'paused' | 'ended' }
  | { kind: 'coupon'; merchant: number; offer: number; creator: number; code: string | null }
  | { kind: 'suspend' | 'reinstate'; role: 'merchant' | 'creator'; who: number }
  | { kind: 'credit'; merchant: number; size: CreditSize; reference: 'new' | 'again' | 'taken' }
  | { kind: 'close'; ahead: boolean }
  | { kind: 'run payouts' }
  | SettleAllAction
  /** All cycles closed and paid, all creators paid. */
  | { kind: 'pay day' }
  | PaymentAction
  | PayoutAction
  | { kind: 'stray'; what: StrayEvent }
  | { kind: 'look-ups'; down: boolean }
  | { kind: 'destination'; creator: number }
  | { kind: 'resolve'; creator: number }
  | { kind: 'secret'; merchant: number; store: number }
  | { kind: 'remove store' | 'connect store'; merchant: number; store: number }

export type CreditSize = 'all' | 'too much' | 'half' | 'a paisa'

/** A visit of a creator's link (applied for and approved at its first use), and an order that comes of it. */
export interface SaleAction {
  kind: 'sale'
  merchant: number
  offer: number
  creator: number
  /** Which store reports it: the merchant's, or another one. */
  store: { of: 'merchant' | 'other merchant'; index: number }
  /** From the visit to the order, ms; `window` counts from the end of the link's window. */
  gap: { from: 'click' | 'window'; ms: number }
  order: OrderPlan
  deliveries: DeliveryPlan[]
}

export interface OrderPlan {
  /** What the reference's place holds. */
  reference: {
    place: 'note' | 'line' | 'landing' | 'url' | 'none'
    what: 'click' | 'upper case' | 'unknown' | 'words'
  }
  /** Discount codes as the buyer typed them. */
  codes: string[]
  buyer: 'a stranger' | 'the creator' | "the creator's mailbox" | 'unknown'
  test: boolean
  status: 'paid' | 'partially_refunded' | 'pending' | 'refunded' | 'cancelled'
  currency: 'PKR' | 'USD'
  taxesIncluded: boolean
  bigId: boolean
  offset: 'Z' | '+05:00' | '-03:30'
  lines: LinePlan[]
  broken: 'no' | 'half' | 'negative' | 'number' | 'exponent' | 'no currency'
}

export interface LinePlan {
  product: number | null
  quantity: number
  /** Taken away again by an edit. */
  removed: number
  /** As text: it may have more than two decimals. */
  price: string
  discounts: string[]
  taxes: string[]
  giftCard: boolean
}

export interface DeliveryPlan {
  /** After the order was placed or, if later, the step; ms. */
  delay: number
  id: 'first' | 'fresh'
  /** `unpaid`: the order before its payment; `paid`: the same order, paid by now. */
  body:
    | 'unpaid'
    | 'unpaid, other amounts'
    | 'unpaid, cancelled'
    | 'same'
    | 'other'
    | 'other click'
    | 'other date'
    | 'paid'
    | 'paid, other amounts'
    | 'paid, other click'
  secret: 'present' | 'former' | 'foreign'
  topic: 'orders/paid' | 'orders/create' | 'orders/updated' | 'orders/cancelled'
}

/** How the processor's word differs from what it should be. */
export type Twist = 'right' | 'other amount' | 'other currency' | 'other reference' | 'unknown' | 'broken'

export interface WordPlan {
  twist: Twist
  /** Delays of its deliveries, ms. */
  deliveries: { delay: number; id: 'first' | 'fresh'; signature: 'right' | 'forged' | 'early' | 'late' }[]
}

export interface PaymentAction extends WordPlan {
  kind: 'payment'
  merchant: number
  /** How many cycles back from the latest. */
  back: number
}

export interface PayoutAction extends WordPlan {
  kind: 'payout'
  creator: number
  back: number
  word: 'confirmed' | 'failed'
  /** Whether the processor's own record says the same. */
  honest: boolean
}

export type StrayEvent = 'unknown invoice' | 'unknown payout' | 'unknown type' | 'no words'

/** The processor is done with what it holds of either kind. */
export interface SettleAllAction {
  kind: 'settle all'
  what: 'invoices' | 'payouts' | 'everything'
  payouts: 'confirmed' | 'failed'
}
