import { displayMoney, type Paisa } from '../../shared/money.ts'
import { assertNotNegative } from './close-cycle.rule.ts'

export interface CreditFacts {
  amount: Paisa
  /** Commission and fee of all the merchant's accepted sales. */
  acceptedTotal: Paisa
  /** All credit granted to the merchant so far, used or not. */
  earlierCredits: Paisa
}

export type CreditDecision =
  | { kind: 'allowed'; creditableAfter: Paisa }
  | { kind: 'refused'; code: 'validation_failed' | 'conflict'; detail: string }

/**
 * Decides whether a merchant can be credited `amount`. It must be above zero (`validation_failed`). All credits together can be at
 * most what the merchant was or will be billed (`conflict`), so that credit never becomes a payment to a merchant.
 */
export function decideCredit(facts: CreditFacts): CreditDecision {
  const { amount, acceptedTotal, earlierCredits } = facts
  assertNotNegative(acceptedTotal)
  assertNotNegative(earlierCredits)
  if (!Number.isSafeInteger(amount) || amount <= 0) {
    return { kind: 'refused', code: 'validation_failed', detail: 'A credit must be more than zero.' }
  }
  const creditable = Math.max(0, acceptedTotal - earlierCredits)
  if (amount > creditable) {
    return {
      kind: 'refused',
      code: 'conflict',
      detail: `At most ${displayMoney(creditable)} can be credited: accepted commission and fee less earlier credits.`,
    }
  }
  return { kind: 'allowed', creditableAfter: creditable - amount }
}
