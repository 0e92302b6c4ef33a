import { assertPaisa, CURRENCY, type Paisa } from '../../shared/money.ts'

export const PAYOUT_STATES = ['pending', 'submitted', 'paid', 'failed'] as const

export type PayoutState = (typeof PAYOUT_STATES)[number]

/** After this many failed payouts in a row a person has to look before another is tried. */
export const MAX_FAILURES_IN_A_ROW = 3

/**
 * What the processor, asked, says of the failed payouts that a new one would replace: `confirmed`, there are none, or it
 * agrees that they failed or never knew them; `denied`, it holds one that has not failed; `unknown`, it gave no answer.
 */
export type FailureWord = 'confirmed' | 'denied' | 'unknown'

export interface PayoutFacts {
  /** The creator's whole released balance. */
  released: Paisa
  threshold: Paisa
  suspended: boolean
  /** Whether a payout destination is in effect now; a replacement that still waits does not count. */
  hasDestination: boolean
  /** Whether a destination of the creator's was changed in the database, so that none of them can be relied on. */
  destinationBroken: boolean
  /** Failed payouts since the last paid one, the last new destination and the last resolved failure flag. */
  failedInRow: number
  lastFailure: FailureWord
  /** Whether a flag about this creator's failed payouts is open already, so that it is not raised twice. */
  openFailureFlag: boolean
}

export type PayoutWait =
  | 'below_threshold'
  | 'suspended'
  | 'no_destination'
  | 'destination_broken'
  | 'failed_three_times'
  | 'failure_not_confirmed'
  | 'processor_unavailable'

export type PayoutDecision =
  | { kind: 'pay'; amount: Paisa }
  /** `raiseFlag`: the wait is for a person, and nobody has been told yet. */
  | { kind: 'wait'; why: PayoutWait; raiseFlag: boolean }

/**
 * Decides whether a creator is paid now: always the whole released balance, from the threshold on, and never nothing.
 * The processor's word is judged last, because only then is asking it worth a call. No answer concerns no person: the
 * next run asks again.
 * An open flag alone holds nothing back: a new destination starts the count anew while the flag still waits.
 */
export function decidePayout(facts: PayoutFacts): PayoutDecision {
  assertPaisa(facts.released)
  if (facts.released <= 0 || facts.released < facts.threshold) return wait('below_threshold')
  if (facts.suspended) return wait('suspended')
  if (!facts.hasDestination) return wait('no_destination')
  if (facts.destinationBroken) return wait('destination_broken', true)
  if (facts.failedInRow >= MAX_FAILURES_IN_A_ROW) return wait('failed_three_times', !facts.openFailureFlag)
  if (facts.lastFailure === 'denied') return wait('failure_not_confirmed', !facts.openFailureFlag)
  if (facts.lastFailure === 'unknown') return wait('processor_unavailable')
  return { kind: 'pay', amount: facts.released }
}

function wait(why: PayoutWait, raiseFlag = false): PayoutDecision {
  return { kind: 'wait', why, raiseFlag }
}

export interface PayoutEventFacts {
  state: PayoutState
  /** What the payout was created with. */
  amount: Paisa
  event: { kind: 'confirmed' | 'failed'; amount: Paisa; currency: string }
}

export type PayoutEventDecision =
  | { kind: 'settle'; state: 'paid' | 'failed' }
  | { kind: 'already' }
  | { kind: 'flag'; why: 'contradiction' | 'amount_mismatch' | 'currency_mismatch' }
  | { kind: 'retry_later' }

/**
 * Decides what a verified payout event does to the payout it names. Only a submitted payout moves, once, on an event of
 * exactly its amount in PKR. A pending one's call has no known outcome yet, so no event may settle or re-credit it: the
 * event has overtaken the answer and is tried again. A settled payout never moves again: the same word is `already`,
 * the other one a contradiction.
 */
export function decidePayoutEvent(facts: PayoutEventFacts): PayoutEventDecision {
  const { state, event } = facts
  const told = event.kind === 'confirmed' ? 'paid' : 'failed'
  if (state === 'pending') return { kind: 'retry_later' }
  if (state !== 'submitted' && state !== told) return { kind: 'flag', why: 'contradiction' }
  if (event.currency !== CURRENCY) return { kind: 'flag', why: 'currency_mismatch' }
  if (event.amount !== facts.amount) return { kind: 'flag', why: 'amount_mismatch' }
  return state === told ? { kind: 'already' } : { kind: 'settle', state: told }
}
