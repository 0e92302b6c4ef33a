import { CURRENCY, displayMoney, type Paisa } from '../../shared/money.ts'
import type { LookupItem, LookupOutcome } from './processor.ts'
import { hasFailed } from './records.rule.ts'

/** `failed`: the call succeeded, and the processor has reported since that what it created has failed. */
export type AttemptStanding = 'waiting' | 'created' | 'refused' | 'failed'

export interface RetryFacts {
  /** The states of all attempts for the subject, oldest first. */
  attempts: readonly AttemptStanding[]
  /** The amount of the call, paisa. */
  amount: Paisa
  /** What the processor holds under the subject's id; `null` before the look-up. */
  lookup: LookupOutcome | null
}

export type RetryDecision =
  /** `adopts`: the record that the processor already holds; the new attempt takes it over instead of creating another. */
  | { kind: 'allowed'; adopts: string | null }
  | { kind: 'refused'; code: 'conflict' | 'unavailable'; detail: string }

/**
 * Whether a person may retry a processor call under a new key: only after a final refusal or a reported failure, which are known outcomes,
 * and only if the processor holds nothing that counts under the reference, or exactly what is wanted.
 */
export function decideRetry({ attempts, amount, lookup }: RetryFacts): RetryDecision {
  const last = attempts.at(-1)
  if (last === undefined) return no('The processor has not been called yet.')
  if (last === 'created') return no('The processor has it already.')
  if (last === 'waiting') return no('The call is under way. It is repeated until its outcome is known.')
  if (lookup === null) return { kind: 'allowed', adopts: null }
  if (lookup.kind === 'unavailable') {
    return {
      kind: 'refused',
      code: 'unavailable',
      detail: `The processor did not answer the look-up (${lookup.detail}). Try again when it answers.`,
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
 * The records that may be the outcome of the latest attempt. After a refused or failed attempt, failed records do not count: the processor may keep
 * one for its refusal, and sends no event for it. For a first attempt with an unknown outcome a failed record is the outcome.
 */
export function itemsThatCount(items: readonly LookupItem[], attempts: RetryFacts['attempts']): LookupItem[] {
  const isRetry = attempts.includes('refused') || attempts.includes('failed')
  return items.filter((item) => !(isRetry && hasFailed(item)))
}

/**
 * How long a processor may take to show the effect of a call whose outcome is unknown, ms. Records of payments are often read from a
 * replica that lags.
 */
export const SHOWN_WITHIN_MS = 600_000
/** Pause between two look-ups during that time, ms. */
export const LOOK_AGAIN_AFTER_MS = 150_000

/**
 * Whether a refusal at `at` proves that nothing happened. It speaks only of its own call: an earlier call may have taken effect unseen, and the
 * refusal may even be the answer to that ("already exists"). So it is final immediately only if every earlier try is known to have done
 * nothing, and otherwise once look-ups have had time to show an effect. `unknownAt`: when the latest call under the same key with an unknown outcome
 * was made, `null` without one. Times in epoch ms.
 */
export function isFinalRefusal(unknownAt: number | null, at: number): boolean {
  return unknownAt === null || at - unknownAt >= SHOWN_WITHIN_MS
}

function no(detail: string): RetryDecision {
  return { kind: 'refused', code: 'conflict', detail }
}
