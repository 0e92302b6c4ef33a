import type { Paisa } from '../../shared/money.ts'
import type { Config } from '../platform/config.ts'

/** Payouts are whole multiples of this, paisa, by processor. */
export const PAYOUT_UNITS: Record<Config['PROCESSOR'], Paisa> = {
  sandbox: 1,
  http: 1,
  'safepay-raast': 100,
  manual: 1,
}

/**
 * The calls that the marketplace makes to a payment processor. No answer moves money: only a verified webhook does.
 *
 * Calls never throw for a failure of the processor or the network; every outcome is a value. The attempt id is the idempotency key of
 * every try, so a repeated call is safe wherever the outcome allows one.
 */
export interface Processor {
  /** Payouts are whole multiples of this, paisa; the rest of a balance waits for a later payout. */
  readonly payoutUnit: Paisa
  /**
   * Invoices are requests to a merchant's bank account, so `createInvoice` needs `billingAccount`. An invoice without one is not sent: it waits
   * until the merchant has given an account.
   */
  readonly needsBillingAccount?: boolean
  /** Creates an invoice. `reference` is our billing cycle's id. */
  createInvoice(call: InvoiceCall): Promise<CallOutcome>
  /** Creates a payout. `reference` is our payout's id. */
  createPayout(call: PayoutCall): Promise<CallOutcome>
  /** Everything that the processor holds for one billing cycle or payout, whatever the outcome of its calls. */
  findInvoices(keys: LookupKeys): Promise<LookupOutcome>
  findPayouts(keys: LookupKeys): Promise<LookupOutcome>
  /** The title of an account as its bank has it. Where it can be asked, payouts check it before the first one to an account. */
  accountTitle?(iban: string): Promise<Shown<{ title: string }>>
  /** The money that payouts are made from. Where it can be asked, a payout run checks it first. */
  balance?(): Promise<Shown<{ amount: Paisa }>>
  /** The events since a time (epoch ms) that the processor gave up delivering. Reconciliation flags those that never arrived. */
  undelivered?(since: number): Promise<Shown<{ events: UndeliveredEvent[] }>>
  /**
   * One page, from 0, of everything that the processor made for us in a period. Where it can be asked, reconciliation flags what no call of
   * ours made.
   */
  listRecords?(period: Period, page: number): Promise<Shown<{ records: HeldRecord[]; isLast: boolean }>>
}

/** Epoch ms, both included. */
export interface Period {
  from: number
  to: number
}

/** What a look-up may go by: an adapter uses whichever its processor knows. Items are returned under `reference` in either case. */
export interface LookupKeys {
  /** Our billing cycle's or payout's id. */
  reference: string
  /** The ids of all attempts for it, oldest first. */
  attemptIds: readonly string[]
}

interface InvoiceCall {
  attemptId: string
  reference: string
  amount: Paisa
  customer: { id: string; email: string; name: string }
  /**
   * Present where `needsBillingAccount`, and the same in every try of an attempt: an IBAN in electronic form, or a Raast ID in national
   * form (03001234567).
   */
  billingAccount?: BillingAccount
}

export type BillingAccount = { iban: string } | { raastId: string }

interface PayoutCall {
  attemptId: string
  reference: string
  amount: Paisa
  destination: { iban: string; account_title: string }
}

/**
 * | outcome | answers | what the caller may do |
 * |---|---|---|
 * | created | 200 or 201 with an id | record the id |
 * | refused | 4xx other than 408, 409, 425, 429; a status that says so | final, did not happen: flag it; only a new attempt (new key) may follow |
 * | retry | 425, 429, or no connection | did not happen: repeat with the same key |
 * | unknown | timeout, reset, 408, 409, 5xx, 3xx, an unreadable answer | may have taken effect: look it up, then repeat with the same key |
 *
 * A 500, 503 or 408 may come from a gateway whose backend did the work, and a 409 says that another call with an unknown result uses the
 * key, so all of them are `unknown`. A refusal speaks of its own call only; after a call with an unknown outcome under the same key it is
 * final only later (retry.rule.ts). `detail` is for logs and operators: bounded, without the API key or the whole IBAN.
 */
export type CallOutcome =
  | { kind: 'created'; id: string; hostedUrl: string | null }
  /** `id`: of the record that the processor keeps for its refusal. Its events about that record change nothing. */
  | { kind: 'refused'; status: number; detail: string; id?: string }
  | { kind: 'retry'; detail: string; retryAfterMs?: number }
  | { kind: 'unknown'; detail: string; retryAfterMs?: number }

export interface LookupItem {
  id: string
  reference: string
  amount: Paisa
  /** As the processor reports it; the caller flags any currency but ours. */
  currency: string
  /** The processor's own status. The generic contract has open and paid for invoices, processing, paid and failed for payouts. */
  status: string
  hosted_url?: string
}

/** What the processor shows. `unavailable` says nothing about it. */
export type Shown<Facts> = ({ kind: 'found' } & Facts) | Unavailable

export interface Unavailable {
  kind: 'unavailable'
  detail: string
}

/** No items: the processor does not know the reference. */
export type LookupOutcome = Shown<{ items: LookupItem[] }>

export interface UndeliveredEvent {
  id: string
  type: string
  /** RFC 3339. */
  at: string
}

/** What the processor holds, in its own words. */
export interface HeldRecord {
  id: string
  /** The idempotency key of the call that made it; `null` when the record names none. */
  attemptId: string | null
  type: string
  /** `null` when it is unreadable. */
  amount: Paisa | null
  status: string
  /** RFC 3339. */
  at: string
}
