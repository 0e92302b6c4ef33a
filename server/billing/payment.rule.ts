import { CURRENCY, type Paisa } from '../../shared/money.ts'
import type { CycleState } from './close-cycle.rule.ts'

export interface PaymentConfirmationFacts {
  state: CycleState
  /** The invoiced amount; `null` while the cycle is open. */
  amountDue: Paisa | null
  /** The payment reference that charged the cycle; `null` before. */
  chargedReference: string | null
  event: { amount: Paisa; currency: string; paymentReference: string }
}

export type PaymentConfirmationDecision =
  | { kind: 'charge' }
  | { kind: 'already' }
  | { kind: 'flag'; why: 'amount_mismatch' | 'currency_mismatch' | 'second_reference' }
  | { kind: 'retry_later' }

/**
 * Decides what a verified payment confirmation does to the billing cycle of its invoice. Only a closed cycle is charged, and only by
 * exactly its amount due in PKR. A difference changes nothing and is flagged, also in a repeated event. Another reference for a
 * charged cycle is a second payment and is flagged whatever its amount. While the cycle is open the event is retried later.
 */
export function decidePaymentConfirmation(facts: PaymentConfirmationFacts): PaymentConfirmationDecision {
  const { state, event } = facts
  if (state === 'open') return { kind: 'retry_later' }
  if (state === 'charged' && event.paymentReference !== facts.chargedReference) {
    return { kind: 'flag', why: 'second_reference' }
  }
  if (event.currency !== CURRENCY) return { kind: 'flag', why: 'currency_mismatch' }
  if (event.amount !== facts.amountDue) return { kind: 'flag', why: 'amount_mismatch' }
  return { kind: state === 'charged' ? 'already' : 'charge' }
}
