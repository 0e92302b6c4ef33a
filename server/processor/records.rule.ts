import { CURRENCY, type Paisa } from '../../shared/money.ts'
import type { AttemptKind } from './attempt.entity.ts'
import type { LookupItem } from './processor.ts'

export type RecordStatus = 'open' | 'paid' | 'failed' | 'unclear'

/** The statuses of the generic contract and their usual synonyms. Any other status is `unclear`. */
const SYNONYMS: Record<Exclude<RecordStatus, 'unclear'>, readonly string[]> = {
  open: ['open', 'pending', 'processing', 'created', 'submitted', 'unpaid'],
  paid: ['paid', 'settled', 'succeeded', 'completed'],
  failed: ['failed', 'rejected', 'cancelled', 'canceled', 'void', 'expired', 'returned', 'reversed'],
}

/** What the processor's own status of an invoice or payout means. */
export function recordStatus({ status }: Pick<LookupItem, 'status'>): RecordStatus {
  const known = (['open', 'paid', 'failed'] as const).find((one) =>
    SYNONYMS[one].includes(status.toLowerCase()),
  )
  return known ?? 'unclear'
}

/** True when no money moved, or all of it came back. */
export function hasFailed(item: Pick<LookupItem, 'status'>): boolean {
  return recordStatus(item) === 'failed'
}

/**
 * Our state of an invoice or payout. `unsent`: the processor has not answered with an id yet. `refused`: it refused finally.
 * `open`: it has the invoice or payout and has not sent the result.
 */
export type Standing = 'unsent' | 'refused' | 'open' | 'paid' | 'failed'

/** Our side of one invoice or payout. */
export interface OurRecord {
  kind: AttemptKind
  /** The billing cycle's or payout's id, which is the reference at the processor. */
  id: string
  standing: Standing
  amount: Paisa
  processorId: string | null
}

/** How the processor's record differs from ours. */
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

/** The processor's statuses that agree with each of our states. */
const AGREEING: Record<Standing, readonly RecordStatus[]> = {
  // The next try looks it up: a first attempt adopts any record, a later one only a record that has not failed.
  unsent: ['open', 'failed'],
  refused: ['failed'],
  open: ['open'],
  paid: ['paid'],
  failed: ['failed'],
}

/**
 * Compares our record with everything that the processor holds under the same reference; an empty list means that both agree. A
 * failed record beside one that has not failed is not a duplicate, because no money depends on it.
 */
export function compareRecords(ours: OurRecord, items: readonly LookupItem[]): RecordDifference[] {
  const live = items.filter((item) => !hasFailed(item))
  const same = (item: LookupItem) => item.id === ours.processorId
  const item = live.find(same) ?? live[0] ?? items.find(same) ?? items.at(-1)
  // It gave us an id, and the record has not failed, so it must still hold it.
  const isMissing = !item && ours.processorId !== null && ours.standing !== 'failed'
  if (!item) return isMissing ? ['unknown_there'] : []
  const status = recordStatus(item)
  return [
    ...(live.length > 1 ? (['double_there'] as const) : []),
    ...(AGREEING[ours.standing].includes(status) ? [] : ([`${status}_there`] as const)),
    ...(ours.processorId !== null && !same(item) ? (['other_id_there'] as const) : []),
    ...(item.amount === ours.amount ? [] : (['amount_differs'] as const)),
    ...(item.currency === CURRENCY ? [] : (['currency_differs'] as const)),
  ]
}
