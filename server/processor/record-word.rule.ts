import type { LookupItem } from './port.ts'

export type RecordWord = 'open' | 'paid' | 'failed' | 'unclear'

/** The generic contract's words and their usual likes. A word that is not here says nothing that one could rely on. */
const WORDS: Record<Exclude<RecordWord, 'unclear'>, readonly string[]> = {
  open: ['open', 'pending', 'processing', 'created', 'submitted', 'unpaid'],
  paid: ['paid', 'settled', 'succeeded', 'completed'],
  failed: ['failed', 'rejected', 'cancelled', 'canceled', 'void', 'expired', 'returned', 'reversed'],
}

/** What the processor's own word for one of its invoices or payouts means. */
export function wordOf({ status }: Pick<LookupItem, 'status'>): RecordWord {
  const word = status.toLowerCase()
  const known = (Object.keys(WORDS) as (keyof typeof WORDS)[]).find((ours) => WORDS[ours].includes(word))
  return known ?? 'unclear'
}

/** No money hangs on it: none went out or came in, or all of it is back. */
export function hasFailed(item: Pick<LookupItem, 'status'>): boolean {
  return wordOf(item) === 'failed'
}
