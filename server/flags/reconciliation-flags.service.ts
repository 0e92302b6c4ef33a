import { isoTime } from '../platform/clock.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { lastResolvedFlag, openFlagAbout, openFlags, raiseFlag } from './flags.service.ts'

const KIND = 'reconciliation_difference'

interface Subject {
  /** `reconciliation_difference` unless given. */
  kind?: 'reconciliation_difference' | 'bank_statement_difference'
  subjectType: 'billing_cycle' | 'payout'
  subjectId: string
}

/** What both sides state, as plain data. */
interface Figures {
  differences: readonly string[]
  ours: Record<string, unknown>
  theirs: readonly Record<string, unknown>[]
}

export interface ReconciliationFinding extends Subject, Figures {
  /** For the operator. */
  summary: string
}

interface Evidence extends Figures {
  first_seen_at: string
  last_seen_at: string
  /** Since when both sides agree again, while the flag is open. */
  agrees_since: string | null
}

async function openFinding(tx: Tx, { kind = KIND, subjectType, subjectId }: Subject) {
  const open = await openFlagAbout(tx, { kind, subjectType, subjectId })
  return open && { summary: open.summary, evidence: JSON.parse(open.evidence) as Evidence }
}

/** Ids of the cycles and payouts with an open flag. */
export async function flaggedDifferences(db: Queries) {
  const flags = await openFlags(db, KIND)
  const idsOf = (type: string) =>
    flags.filter((flag) => flag.subject_type === type).map((flag) => flag.subject_id)
  return { billing_cycle: idsOf('billing_cycle'), payout: idsOf('payout') }
}

/**
 * Raises a flag about a difference, or refreshes the open one. Returns `known`, without a flag, if an operator has resolved the same
 * difference with the same figures on both sides.
 */
export async function noteDifference(
  platform: Platform,
  tx: Tx,
  finding: ReconciliationFinding,
): Promise<'raised' | 'refreshed' | 'known'> {
  const { kind = KIND, subjectType, subjectId, summary, ...figures } = finding
  const now = isoTime(platform.clock.now())
  const open = await openFinding(tx, finding)
  const resolved = open ? undefined : await lastResolvedFlag(tx, kind, subjectId)
  if (resolved && isSame(JSON.parse(resolved.evidence), figures)) return 'known'
  const first_seen_at = open?.evidence.first_seen_at ?? now
  const evidence = { ...figures, first_seen_at, last_seen_at: now, agrees_since: null }
  await raiseFlag(platform, tx, { kind, subjectType, subjectId, summary, evidence })
  return open ? 'refreshed' : 'raised'
}

function isSame(resolved: Evidence, figures: Figures): boolean {
  const textOf = ({ differences, ours, theirs }: Figures) => JSON.stringify([differences, ours, theirs])
  // A difference that was gone when its flag was resolved is a new one.
  return resolved.agrees_since === null && textOf(resolved) === textOf(figures)
}

const UNANSWERED = 'unanswered'

/** Raises a flag about a record that the processor does not answer about; a difference that the open flag states stays on it. */
export async function noteUnanswered(
  platform: Platform,
  tx: Tx,
  finding: Omit<ReconciliationFinding, 'differences'>,
): Promise<void> {
  const open = await openFinding(tx, finding)
  const none: Pick<Figures, 'differences' | 'theirs'> = { differences: [], theirs: [] }
  const former = open?.evidence.agrees_since === null ? open.evidence : none
  if (former.differences.includes(UNANSWERED)) return
  const isAdded = former.differences.length > 0
  await noteDifference(platform, tx, {
    ...finding,
    summary: isAdded ? `${open?.summary} ${finding.summary}` : finding.summary,
    differences: [...former.differences, UNANSWERED],
    theirs: [...former.theirs, ...finding.theirs],
  })
}

/** States on an open flag that its difference is gone. The flag stays open for the operator. */
export async function noteAgreement(platform: Platform, tx: Tx, subject: Subject): Promise<void> {
  const open = await openFinding(tx, subject)
  if (open?.evidence.agrees_since !== null) return
  const other = (subject.kind ?? KIND) === KIND ? 'The processor' : 'The bank'
  await raiseFlag(platform, tx, {
    kind: KIND,
    ...subject,
    summary: `${other} and we agree again. Before: ${open.summary}`,
    evidence: { ...open.evidence, agrees_since: isoTime(platform.clock.now()) },
  })
}
