import { assertPaisa, type Paisa } from '../../shared/money.ts'

export const PAYOUT_STATES = ['pending', 'submitted', 'paid', 'failed'] as const

export type PayoutState = (typeof PAYOUT_STATES)[number]

/** After this many failed payouts in a row an operator must look before the next one. */
export const MAX_FAILURES_IN_A_ROW = 3

/**
 * The processor's answer about the failed payouts that a new one would replace. `confirmed`: all of them failed or are unknown to
 * it. `denied`: it holds one that has not failed. `unknown`: it did not answer.
 */
export type FailureVerdict = 'confirmed' | 'denied' | 'unknown'

export interface PayoutFacts {
  /** The creator's whole released balance. */
  released: Paisa
  threshold: Paisa
  /** The amount is a whole multiple of this; the rest stays released. */
  unit: Paisa
  suspended: boolean
  /** Whether a payout destination is in force now. A replacement still in its waiting period does not count. */
  hasDestination: boolean
  /** Whether one of the creator's destinations was changed in the database by other means. */
  destinationBroken: boolean
  /** Failed payouts since the last paid one, the last new destination and the last resolved failure flag. */
  failedInRow: number
  failureVerdict: FailureVerdict | 'not_asked'
  /** Whether a flag about this creator's failed payouts is open. */
  openFailureFlag: boolean
}

/** Why a creator is not paid now. `balance_too_low` holds back a whole run. */
export type PayoutWait =
  | 'balance_too_low'
  | 'below_threshold'
  | 'suspended'
  | 'no_destination'
  | 'destination_broken'
  | 'failed_three_times'
  | 'failure_not_confirmed'
  | 'processor_unavailable'

export type PayoutDecision =
  | { kind: 'pay'; amount: Paisa }
  /** `raiseFlag`: an operator must act, and no flag says so yet. */
  | { kind: 'wait'; why: Exclude<PayoutWait, 'balance_too_low'>; raiseFlag: boolean }

/**
 * Decides whether a creator is paid now: the whole released balance in units of the processor, from the threshold on, and never zero. The
 * processor's answer is checked last, so that it is asked only when it matters. Without an answer the next run asks again.
 * An open flag alone does not hold a payout back: a new destination resets the failure count while the flag is still open.
 */
export function decidePayout(facts: PayoutFacts): PayoutDecision {
  assertPaisa(facts.released)
  const amount = facts.released - (facts.released % facts.unit)
  if (amount <= 0 || amount < facts.threshold) return wait('below_threshold')
  if (facts.suspended) return wait('suspended')
  if (!facts.hasDestination) return wait('no_destination')
  if (facts.destinationBroken) return wait('destination_broken', true)
  if (facts.failedInRow >= MAX_FAILURES_IN_A_ROW) return wait('failed_three_times', !facts.openFailureFlag)
  if (facts.failureVerdict === 'denied') return wait('failure_not_confirmed', !facts.openFailureFlag)
  if (facts.failureVerdict === 'unknown') return wait('processor_unavailable')
  return { kind: 'pay', amount }
}

/** The parts of the shares that make up a payout, in their order; the last one is cut, and what follows it stays free. */
export function cutShares<Share extends { free: Paisa }>(shares: readonly Share[], amount: Paisa) {
  let left = amount
  const parts: (Share & { amount: Paisa })[] = []
  for (const share of shares) {
    if (left === 0) break
    const part = Math.min(share.free, left)
    left -= part
    parts.push({ ...share, amount: part })
  }
  if (left > 0) throw new Error('the shares do not make up the payout')
  return parts
}

/** Whether two titles of an account name the same holder: case, accents, spaces and punctuation do not count. */
export function isSameTitle(one: string, other: string): boolean {
  const plain = plainTitle(one)
  return plain !== '' && plain === plainTitle(other)
}

function plainTitle(title: string): string {
  return title
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
}

function wait(why: Exclude<PayoutWait, 'balance_too_low'>, raiseFlag = false): PayoutDecision {
  return { kind: 'wait', why, raiseFlag }
}
