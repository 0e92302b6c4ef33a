import { CURRENCY, type Paisa } from '../../shared/money.ts'

export interface OutcomeFacts {
  /**
   * Our invoice or payout: `early` while the processor's answer to its call is not recorded, `open` while it waits for its outcome, `same`
   * once it has the outcome that the event reports, `other` once it has another one.
   */
  standing: 'early' | 'open' | 'same' | 'other'
  amount: Paisa
  event: { amount: Paisa; currency: string }
}

/**
 * Decides what a verified event about the outcome of an invoice or payout does to it. Only an open one is settled, once, and only by exactly
 * its amount in PKR. A difference changes nothing and is flagged, also in a repeated event; another outcome is flagged whatever its amount.
 * An early event is tried again later.
 */
export function decideOutcome({ standing, amount, event }: OutcomeFacts) {
  if (standing === 'early') return 'retry_later'
  if (standing === 'other') return 'other_outcome'
  if (event.currency !== CURRENCY) return 'currency_mismatch'
  if (event.amount !== amount) return 'amount_mismatch'
  return standing === 'same' ? 'already' : 'settle'
}
