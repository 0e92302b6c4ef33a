import { displayMoney, type Paisa } from '../../shared/money.ts'
import { assertNotNegative } from './close-cycle.rule.ts'

interface CreditFacts {
  amount: Paisa
  /** Commission and fee of all the merchant's accepted sales. */
  acceptedTotal: Paisa
  /** All credit granted to the merchant so far, used or not. */
  earlierCredits: Paisa
}

/**
 * Why a merchant cannot be credited `amount`; `null` if they can. It must be above zero (`validation_failed`). All credits together can be at
 * most what the merchant was or will be billed (`conflict`), so that credit never becomes a payment to a merchant.
 */
export function creditRefusal(
  facts: CreditFacts,
): { code: 'validation_failed' | 'conflict'; detail: string } | null {
  const { amount, acceptedTotal, earlierCredits } = facts
  assertNotNegative(acceptedTotal)
  assertNotNegative(earlierCredits)
  if (!Number.isSafeInteger(amount) || amount <= 0) {
    return { code: 'validation_failed', detail: 'A credit must be more than zero.' }
  }
  const creditable = Math.max(0, acceptedTotal - earlierCredits)
  if (amount <= creditable) return null
  const detail = `At most ${displayMoney(creditable)} can be credited: accepted commission and fee less earlier credits.`
  return { code: 'conflict', detail }
}
