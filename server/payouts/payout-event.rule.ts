import { CURRENCY, type Paisa } from '../../shared/money.ts'
import type { PayoutState } from './payout-eligibility.rule.ts'

export interface PayoutEventFacts {
  state: PayoutState
  /** The payout's amount. */
  amount: Paisa
  event: { kind: 'confirmed' | 'failed'; amount: Paisa; currency: string }
}

export type PayoutEventDecision =
  | { kind: 'settle'; state: 'paid' | 'failed' }
  | { kind: 'already' }
  | { kind: 'flag'; why: 'contradiction' | 'amount_mismatch' | 'currency_mismatch' }
  | { kind: 'retry_later' }

/**
 * Decides what a verified payout event does to its payout. Only a submitted payout moves, once, on an event with exactly its amount
 * in PKR. While a payout is pending, the outcome of its call is unknown: the event arrived before the answer and is tried again
 * later. A settled payout never moves again: the same outcome is `already`, the other one a contradiction.
 */
export function decidePayoutEvent(facts: PayoutEventFacts): PayoutEventDecision {
  const { state, event } = facts
  const outcome = event.kind === 'confirmed' ? 'paid' : 'failed'
  if (state === 'pending') return { kind: 'retry_later' }
  if (state !== 'submitted' && state !== outcome) return { kind: 'flag', why: 'contradiction' }
  if (event.currency !== CURRENCY) return { kind: 'flag', why: 'currency_mismatch' }
  if (event.amount !== facts.amount) return { kind: 'flag', why: 'amount_mismatch' }
  return state === outcome ? { kind: 'already' } : { kind: 'settle', state: outcome }
}
