import type { FlagKindWire } from '../../shared/schemas/admin.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import {
  type FlagRow,
  findFlagsOfKindAbout,
  findOpenFlags,
  insertOrRefreshFlags,
  lastResolvedAt,
} from './flags.store.ts'

/** What can be flagged in this service, and how urgently a person should look. */
export const FLAG_KINDS = {
  event_set_aside: 'high',
  event_body_conflict: 'high',
  processor_event_unmapped: 'high',
  payment_amount_mismatch: 'high',
  second_payment_reference: 'high',
  payout_amount_mismatch: 'high',
  payout_contradiction: 'high',
  processor_refusal: 'high',
  processor_disagrees: 'high',
  reconciliation_difference: 'high',
  payout_failed_repeatedly: 'medium',
  payout_destination_replaced: 'medium',
  click_velocity: 'medium',
  conversion_unusual: 'medium',
  self_purchase: 'medium',
  integrity_violation: 'high',
  shared_iban: 'high',
  shared_mailbox: 'high',
  rejected_sales_burst: 'medium',
  order_changed: 'medium',
  order_date_suspicious: 'medium',
  click_reused: 'high',
  conversion_dropped: 'medium',
  offer_paused_in_traffic: 'medium',
  cycle_unpaid: 'medium',
  offer_vetting: 'low',
  credit_request: 'medium',
  domain_shared: 'high',
  product_host_unverified: 'medium',
} as const satisfies Record<FlagKindWire, FlagRow['severity']>

export type FlagKind = keyof typeof FLAG_KINDS

/** What a flag can be about. */
export type SubjectType =
  | 'user'
  | 'store'
  | 'shop_domain'
  | 'offer'
  | 'affiliate_link'
  | 'sale'
  | 'billing_cycle'
  | 'payout'
  | 'inbound_event'
  /** A store's events of one class: `<store id>:<class>`. */
  | 'store_events'
  /** The subject's id is the event type, a text of the processor's. */
  | 'processor_event_type'

export interface NewFlag {
  kind: FlagKind
  subjectType: SubjectType
  subjectId: string
  /** One sentence for the person who works through the queue. */
  summary: string
  /** What led to it: plain data without buyers' details or secrets. */
  evidence: Record<string, unknown>
}

/** Raises a flag, or refreshes the evidence of the one that is open for this kind and subject already. */
export function raiseFlag(platform: Platform, tx: Tx, flag: NewFlag): Promise<void> {
  return raiseFlags(platform, tx, [flag])
}

/** The same for several, each about a subject of its own. */
export function raiseFlags(platform: Platform, tx: Tx, flags: readonly NewFlag[]): Promise<void> {
  return insertOrRefreshFlags(
    tx,
    flags.map((flag) => rowOf(platform, flag)),
  )
}

function rowOf(platform: Platform, flag: NewFlag): FlagRow {
  return {
    id: platform.ids.next(),
    kind: flag.kind,
    severity: FLAG_KINDS[flag.kind],
    subject_type: flag.subjectType,
    subject_id: flag.subjectId,
    summary: flag.summary,
    evidence: JSON.stringify(flag.evidence),
    status: 'open',
    note: null,
    created_at: platform.clock.now(),
    resolved_at: null,
  }
}

/** Open flags of one kind, about one subject or all, newest first. */
export function openFlags(db: Queries, kind: FlagKind, subjectId: string | null = null): Promise<FlagRow[]> {
  return findOpenFlags(db, kind, subjectId)
}

/** The newest flags of one kind about one subject, open and resolved. */
export function flagsOfKindAbout(db: Queries, kind: FlagKind, subjectId: string): Promise<FlagRow[]> {
  return findFlagsOfKindAbout(db, kind, subjectId, MAX_FLAGS_ABOUT)
}

const MAX_FLAGS_ABOUT = 100

/** When a flag of this kind was last resolved, by subject (epoch ms); subjects without one are missing. */
export function resolvedFlagTimes(
  db: Queries,
  kind: FlagKind,
  subjectIds: readonly string[],
): Promise<Map<string, number>> {
  return lastResolvedAt(db, kind, subjectIds)
}
