import type { Paisa } from '../../shared/money.ts'

/**
 * What we need of a payment processor. None of these answers moves money state: only a verified webhook does.
 *
 * Calls never throw for what the processor or the network does; every outcome is a value. The same attempt id goes
 * out as idempotency key on each try, so a repeated call is safe with every outcome that allows one.
 */
export interface Processor {
  /** Asks for an invoice over `amount` paisa. `reference` is our billing cycle's id. */
  createInvoice(call: InvoiceCall): Promise<CallOutcome>
  /** Asks for a payout of `amount` paisa. `reference` is our payout's id. */
  createPayout(call: PayoutCall): Promise<CallOutcome>
  /** Everything the processor holds under one of our references, whatever became of the answer to the call. */
  findInvoices(reference: string): Promise<LookupOutcome>
  findPayouts(reference: string): Promise<LookupOutcome>
}

export interface InvoiceCall {
  attemptId: string
  reference: string
  amount: Paisa
  customer: { id: string; email: string; name: string }
}

export interface PayoutCall {
  attemptId: string
  reference: string
  amount: Paisa
  destination: { iban: string; account_title: string }
}

/**
 * | outcome | answers | what the caller may do |
 * |---|---|---|
 * | created | 200 or 201 with an id | record the id |
 * | refused | 4xx other than 408, 409, 425, 429 | final and known not to have happened: flag; only a new attempt (new key) may follow |
 * | retry | 425, 429, and a connection that was never made | known not to have happened: repeat with the same key |
 * | unknown | timeout, reset, 408, 409, 5xx, 3xx, an unreadable answer | may have taken effect: look it up, then repeat with the same key |
 *
 * A 500 or 503 may come from a gateway whose backend did the work, a 408 likewise, and a 409 says that the key is in
 * use by a call whose result nobody has seen: hence all of them are `unknown`, not `retry`.
 * A refusal speaks of its own call: after one of unknown outcome under the same key it is final only later (final-refusal.rule.ts).
 * `detail` is for logs and operators. It is bounded and holds neither the API key nor the whole IBAN.
 */
export type CallOutcome =
  | { kind: 'created'; id: string; hostedUrl: string | null }
  | { kind: 'refused'; status: number; detail: string }
  | { kind: 'retry'; detail: string; retryAfterMs?: number }
  | { kind: 'unknown'; detail: string; retryAfterMs?: number }

export interface LookupItem {
  id: string
  reference: string
  amount: Paisa
  /** As the processor reports it; it may be another currency than ours, which is for the caller to flag. */
  currency: string
  /** The processor's own word: the generic contract uses open, paid; processing, paid, failed. */
  status: string
  hosted_url?: string
}

/** `found` with no items means that the processor never knew the reference. `unavailable` means nothing at all. */
export type LookupOutcome = { kind: 'found'; items: LookupItem[] } | { kind: 'unavailable'; detail: string }
