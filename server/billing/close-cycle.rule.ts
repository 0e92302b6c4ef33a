import { assertPaisa, CURRENCY, displayMoney, type Paisa } from '../../shared/money.ts'

export const CYCLE_STATES = ['open', 'closed', 'charged'] as const

export type CycleState = (typeof CYCLE_STATES)[number]

/** Paisa. Below it no invoice is asked for, and credit never takes an invoice below it: processors refuse smaller ones. */
export const MINIMUM_INVOICE: Paisa = 100

export interface CloseFacts {
  state: CycleState
  /** Epoch ms, exclusive: at this very moment the period is over. */
  periodEnd: number
  /** The moment (epoch ms) as of which is asked: now, or an acceptance that falls after the period. */
  asOf: number
  commissionTotal: Paisa
  feeTotal: Paisa
  /** The merchant's granted credit that no cycle has used yet. */
  availableCredit: Paisa
  /** `MINIMUM_INVOICE` unless given. */
  minimum?: Paisa
}

export type CloseDecision =
  | { kind: 'not_due' }
  /** The cycle stays open, with its period moved to the first calendar boundary after `asOf`. */
  | { kind: 'extend' }
  /** Totals freeze. `creditUsed + amountDue` is the commission and fee of the cycle; unused credit moves on. */
  | { kind: 'close'; creditUsed: Paisa; amountDue: Paisa }

export interface CycleCharge {
  creditUsed: Paisa
  amountDue: Paisa
}

/**
 * The credit that a cycle with these totals uses when it closes, and the amount due. Credit never takes an invoice
 * below the minimum; a cycle without accepted sales charges nothing.
 */
export function cycleCharge(
  facts: Pick<CloseFacts, 'commissionTotal' | 'feeTotal' | 'availableCredit' | 'minimum'>,
): CycleCharge {
  const { commissionTotal, feeTotal, availableCredit, minimum = MINIMUM_INVOICE } = facts
  for (const amount of [commissionTotal, feeTotal, availableCredit, minimum]) assertNotNegative(amount)
  const total = commissionTotal + feeTotal
  assertPaisa(total)
  if (total === 0) return { creditUsed: 0, amountDue: 0 }
  const amountDue = Math.max(minimum, total - availableCredit)
  return { creditUsed: Math.max(0, total - amountDue), amountDue }
}

/**
 * Decides what becomes of a cycle as of a moment: an open one whose period is over closes when commission and fee
 * together reach the minimum, and is extended otherwise. Amounts below zero are bugs and throw.
 */
export function decideClose(facts: CloseFacts): CloseDecision {
  const charge = cycleCharge(facts)
  if (facts.state !== 'open' || facts.asOf < facts.periodEnd) return { kind: 'not_due' }
  const { commissionTotal, feeTotal, minimum = MINIMUM_INVOICE } = facts
  return commissionTotal + feeTotal < minimum ? { kind: 'extend' } : { kind: 'close', ...charge }
}

export interface PaymentConfirmationFacts {
  state: CycleState
  /** What was invoiced; `null` while the cycle is open. */
  amountDue: Paisa | null
  /** The processor's payment reference that charged the cycle; `null` before. */
  chargedReference: string | null
  event: { amount: Paisa; currency: string; paymentReference: string }
}

export type PaymentConfirmationDecision =
  | { kind: 'charge' }
  | { kind: 'already' }
  | { kind: 'flag'; why: 'amount_mismatch' | 'currency_mismatch' | 'second_reference' }
  | { kind: 'retry_later' }

/**
 * Decides what a verified billing-payment confirmation does to the cycle it names.
 * Only a closed cycle is charged, and only by a confirmation of exactly its amount due in PKR; anything that differs
 * changes nothing and is flagged, also when it comes again under the reference that charged the cycle. Another
 * reference for a charged cycle is a second payment: a flag, whatever its amount. A cycle that is not closed has no invoice
 * of ours yet, so its event has overtaken us and is tried again.
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
 * Whether a merchant may be credited `amount`: more than zero (`validation_failed`), and all credits together at most
 * what the merchant was ever billed or will be (`conflict`), so that credit never turns into a payment to a merchant.
 */
export function checkCredit(facts: CreditFacts): CreditDecision {
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

function assertNotNegative(amount: Paisa): void {
  assertPaisa(amount)
  if (amount < 0) throw new Error(`an amount below zero where none can be: ${amount}`)
}
