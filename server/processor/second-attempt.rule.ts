import { CURRENCY, displayMoney, type Paisa } from '../../shared/money.ts'
import type { LookupOutcome } from './port.ts'

export interface SecondAttemptFacts {
  /** The states of all attempts for the subject so far, oldest first. */
  attempts: readonly ('waiting' | 'created' | 'refused')[]
  /** What goes out, paisa. */
  amount: Paisa
  /** What the processor holds under the subject's id; `null` while it has not been asked. */
  lookup: LookupOutcome | null
}

export type SecondAttemptDecision =
  /** `adopts`: what the processor holds already, which the new attempt takes over instead of asking for another. */
  | { kind: 'allowed'; adopts: string | null }
  | { kind: 'refused'; code: 'conflict' | 'unavailable'; detail: string }

/**
 * Whether a person may have a processor call made anew, under a new key: only after a final refusal, which is a known
 * outcome, and only when the processor, asked again, holds nothing under the reference or exactly what is wanted.
 */
export function decideSecondAttempt({ attempts, amount, lookup }: SecondAttemptFacts): SecondAttemptDecision {
  const last = attempts.at(-1)
  if (last === undefined) return no('Nothing has been asked of the processor yet.')
  if (last === 'created') return no('The processor has it already.')
  if (last === 'waiting')
    return no('The call is under way: it is repeated by itself until its outcome is known.')
  if (lookup === null) return { kind: 'allowed', adopts: null }
  if (lookup.kind === 'unavailable') {
    return {
      kind: 'refused',
      code: 'unavailable',
      detail: `The processor cannot be asked what it holds (${lookup.detail}). Try again when it answers.`,
    }
  }
  const [item, ...others] = lookup.items
  if (!item) return { kind: 'allowed', adopts: null }
  if (others.length > 0) return no(`The processor holds ${lookup.items.length} under this reference.`)
  if (item.amount !== amount || item.currency !== CURRENCY) {
    return no(`The processor holds ${displayMoney(item.amount)} (${item.currency}) under this reference.`)
  }
  return { kind: 'allowed', adopts: item.id }
}

function no(detail: string): SecondAttemptDecision {
  return { kind: 'refused', code: 'conflict', detail }
}
