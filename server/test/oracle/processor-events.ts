import { charge } from './billing.ts'
import { settlePayout } from './payouts.ts'
import { type ProcessorWord, raiseFlag, type State } from './state.ts'

/** `not_yet`: it may have overtaken the answer to our own call. `flagged`: set aside, and its subject is flagged. */
export type Outcome = 'done' | 'ignored' | 'set_aside' | 'flagged' | 'not_yet'

/** Applies the processor's verified word, or leaves everything as it is and raises a flag. */
export function hearProcessor(state: State, word: ProcessorWord, now: number): Outcome {
  switch (word.kind) {
    case 'other':
      return flagged(state, 'processor_event_unmapped', word.type)
    case 'payment_confirmed':
      return hearPayment(state, word, now)
    case 'payout_confirmed':
    case 'payout_failed':
      return hearPayout(state, word, now)
  }
}

type PaymentWord = Extract<ProcessorWord, { kind: 'payment_confirmed' }>
type PayoutWord = Extract<ProcessorWord, { kind: 'payout_confirmed' | 'payout_failed' }>

function flagged(state: State, kind: string, about: string): Outcome {
  raiseFlag(state, kind, about)
  return 'flagged'
}

function hearPayment(state: State, word: PaymentWord, now: number): Outcome {
  const cycle = state.cycles.find(({ name }) => name === word.cycle)
  const call = state.calls.find(({ subject }) => subject === word.cycle)
  if (!cycle || call?.state !== 'created') return 'not_yet'
  const sameReference = cycle.paymentReference === word.paymentReference
  if (cycle.state === 'charged' && !sameReference)
    return flagged(state, 'second_payment_reference', cycle.name)
  if (word.currency !== 'PKR' || word.amount !== cycle.due) {
    return flagged(state, 'payment_amount_mismatch', cycle.name)
  }
  if (cycle.state === 'charged') return 'ignored'
  charge(state, cycle, word.paymentReference, now)
  return 'done'
}

function hearPayout(state: State, word: PayoutWord, now: number): Outcome {
  const payout = state.payouts.find(({ name }) => name === word.payout)
  if (!payout || payout.state === 'pending') return 'not_yet'
  const reported = word.kind === 'payout_confirmed' ? 'paid' : 'failed'
  const contradicts = payout.state !== 'submitted' && payout.state !== reported
  if (!word.rightId || contradicts) return flagged(state, 'payout_contradiction', payout.name)
  if (word.currency !== 'PKR' || word.amount !== payout.amount) {
    return flagged(state, 'payout_amount_mismatch', payout.name)
  }
  if (payout.state === reported) return 'ignored'
  settlePayout(state, payout, reported === 'failed' ? word.reason : null, now)
  return 'done'
}
