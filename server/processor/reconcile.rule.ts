import { CURRENCY, type Paisa } from '../../shared/money.ts'
import type { AttemptKind } from './attempt.entity.ts'
import type { LookupItem } from './port.ts'
import { hasFailed, type RecordWord, wordOf } from './record-word.rule.ts'

/**
 * Where an invoice or payout stands with us. `unsent`: the processor has not told its id yet. `refused`: it said a final
 * no. `open`: with the processor, whose word on it has not come.
 */
export type Standing = 'unsent' | 'refused' | 'open' | 'paid' | 'failed'

/** What we hold of one invoice or payout. */
export interface OurRecord {
  kind: AttemptKind
  /** The billing cycle's or payout's id, which is the reference at the processor. */
  id: string
  standing: Standing
  amount: Paisa
  processorId: string | null
}

/** In which way the processor's record is not ours. */
export type RecordDifference =
  | 'paid_there'
  | 'failed_there'
  | 'open_there'
  | 'unclear_there'
  | 'unknown_there'
  | 'double_there'
  | 'other_id_there'
  | 'amount_differs'
  | 'currency_differs'

/** What may stand there beside our own standing without anybody having to look. */
const AGREEING: Record<Standing, readonly RecordWord[]> = {
  // The next try looks it up: a first attempt takes over whatever it finds, a later one what has not failed.
  unsent: ['open', 'failed'],
  refused: ['failed'],
  open: ['open'],
  paid: ['paid'],
  failed: ['failed'],
}

/**
 * Compares what we hold with everything that the processor holds under the same reference; none: both agree. What has
 * failed there beside another one that has not is no double: no money hangs on it.
 */
export function compareRecords(ours: OurRecord, items: readonly LookupItem[]): RecordDifference[] {
  const live = items.filter((item) => !hasFailed(item))
  const same = (item: LookupItem) => item.id === ours.processorId
  const item = live.find(same) ?? live[0] ?? items.find(same) ?? items.at(-1)
  if (!item) return isKnownOf(ours) ? ['unknown_there'] : []
  const word = wordOf(item)
  return [
    ...(live.length > 1 ? (['double_there'] as const) : []),
    ...(AGREEING[ours.standing].includes(word) ? [] : ([`${word}_there`] as const)),
    ...(ours.processorId !== null && !same(item) ? (['other_id_there'] as const) : []),
    ...(item.amount === ours.amount ? [] : (['amount_differs'] as const)),
    ...(item.currency === CURRENCY ? [] : (['currency_differs'] as const)),
  ]
}

/** Whether the processor must have it: it gave us an id for it. Of a failed one it need not know any more. */
function isKnownOf({ processorId, standing }: OurRecord): boolean {
  return processorId !== null && standing !== 'failed'
}
