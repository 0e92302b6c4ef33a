import { assertPaisa, type Paisa } from '../../shared/money.ts'

export const CYCLE_STATES = ['open', 'closed', 'charged'] as const

export type CycleState = (typeof CYCLE_STATES)[number]

/** The smallest invoice, paisa. Processors refuse smaller ones, so credit never lowers an invoice below it. */
export const MINIMUM_INVOICE: Paisa = 100

/** The most commission and fee that one cycle holds, a hundred billion rupees in paisa; see decision 3. */
export const LARGEST_CYCLE: Paisa = 10_000_000_000_000

/** Whether a cycle with these totals still takes sales of `added` in all. */
export function isRoomFor(cycle: { commission_total: Paisa; fee_total: Paisa }, added: Paisa): boolean {
  // A total beyond 2^53 is read as a bigint.
  return BigInt(cycle.commission_total) + BigInt(cycle.fee_total) + BigInt(added) <= LARGEST_CYCLE
}

interface CloseFacts {
  state: CycleState
  /** Epoch ms, exclusive: at this time the period is over. */
  periodEnd: number
  /** Epoch ms: now, or the time of a sale accepted after the period. */
  asOf: number
  commissionTotal: Paisa
  feeTotal: Paisa
  /** The merchant's granted credit that no cycle has used. */
  availableCredit: Paisa
}

export type CloseDecision =
  | { kind: 'not_due' }
  /** The cycle stays open; its period now ends at the first calendar boundary after `asOf`. */
  | { kind: 'extend' }
  /** The totals freeze. `creditTotal + amountDue` is the cycle's commission and fee. Unused credit stays available. */
  | ({ kind: 'close' } & CycleCharge)

export interface CycleCharge {
  /** The credit that the cycle uses. */
  creditTotal: Paisa
  amountDue: Paisa
}

/** The credit that a cycle with these totals uses when it closes, and the amount due. Without accepted sales both are 0. */
export function cycleCharge({
  commissionTotal,
  feeTotal,
  availableCredit,
}: Pick<CloseFacts, 'commissionTotal' | 'feeTotal' | 'availableCredit'>): CycleCharge {
  for (const amount of [commissionTotal, feeTotal, availableCredit]) assertNotNegative(amount)
  const total = commissionTotal + feeTotal
  assertPaisa(total)
  if (total === 0) return { creditTotal: 0, amountDue: 0 }
  const amountDue = Math.max(MINIMUM_INVOICE, total - availableCredit)
  return { creditTotal: Math.max(0, total - amountDue), amountDue }
}

/**
 * Decides what happens to a cycle at `asOf`. An open cycle whose period is over closes if its commission and fee reach the minimum;
 * otherwise it is extended. Throws for amounts below zero.
 */
export function decideClose(facts: CloseFacts): CloseDecision {
  const charge = cycleCharge(facts)
  if (facts.state !== 'open' || facts.asOf < facts.periodEnd) return { kind: 'not_due' }
  const total = facts.commissionTotal + facts.feeTotal
  return total < MINIMUM_INVOICE ? { kind: 'extend' } : { kind: 'close', ...charge }
}

/** Throws unless `amount` is a whole number of paisa and not negative. */
export function assertNotNegative(amount: Paisa): void {
  assertPaisa(amount)
  if (amount < 0) throw new Error(`negative amount: ${amount}`)
}
