import { CURRENCY, displayMoney, type Paisa } from '../../shared/money.ts'
import type { LookupItem, LookupOutcome } from './port.ts'
import { hasFailed } from './record-word.rule.ts'

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
 * outcome, and only when the processor, asked again, holds nothing that counts under the reference or exactly what is wanted.
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
  const items = itemsThatCount(lookup.items, attempts)
  const [item, ...others] = items
  if (!item) return { kind: 'allowed', adopts: null }
  if (others.length > 0) return no(`The processor holds ${items.length} under this reference.`)
  if (item.amount !== amount || item.currency !== CURRENCY) {
    return no(`The processor holds ${displayMoney(item.amount)} (${item.currency}) under this reference.`)
  }
  return { kind: 'allowed', adopts: item.id }
}

/**
 * What of the processor's records may be the outcome of the latest attempt. Beside a refused one what has failed does not count:
 * it may be what the processor kept of its refusal, of which no event will ever come. Of an only attempt whose outcome is unknown
 * it is the outcome, and the signed event decides what follows.
 */
export function itemsThatCount(
  items: readonly LookupItem[],
  attempts: SecondAttemptFacts['attempts'],
): LookupItem[] {
  const anew = attempts.includes('refused')
  return items.filter((item) => !(anew && hasFailed(item)))
}

function no(detail: string): SecondAttemptDecision {
  return { kind: 'refused', code: 'conflict', detail }
}
