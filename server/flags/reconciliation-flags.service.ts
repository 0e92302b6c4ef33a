import { isoTime } from '../platform/clock.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { lastResolvedFlag, openFlagAbout, openFlags, raiseFlag } from './flags.service.ts'

const KIND = 'reconciliation_difference'

interface Subject {
  subjectType: 'billing_cycle' | 'payout'
  subjectId: string
}

export interface ReconciliationFinding extends Subject {
  /** For the operator. */
  summary: string
  differences: readonly string[]
  /** The records of both sides, as plain data. */
  ours: Record<string, unknown>
  theirs: readonly Record<string, unknown>[]
}

interface Evidence {
  differences: readonly string[]
  ours: Record<string, unknown>
  theirs: readonly Record<string, unknown>[]
  first_seen_at: string
  last_seen_at: string
  /** Since when both sides agree again, while the flag is open. */
  agrees_since: string | null
}

/** Ids of the cycles and payouts with an open flag. */
export async function flaggedDifferences(
  db: Queries,
): Promise<Record<Subject['subjectType'], readonly string[]>> {
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
  const { subjectType, subjectId, summary, differences, ours, theirs } = finding
  const now = isoTime(platform.clock.now())
  const open = await openFlagAbout(tx, { kind: KIND, subjectType, subjectId })
  const resolved = open ? undefined : await lastResolvedFlag(tx, KIND, subjectId)
  if (resolved && isSame(JSON.parse(resolved.evidence), finding)) return 'known'
  const former: Evidence | null = open ? JSON.parse(open.evidence) : null
  const evidence = {
    differences,
    ours,
    theirs,
    first_seen_at: former?.first_seen_at ?? now,
    last_seen_at: now,
    agrees_since: null,
  }
  await raiseFlag(platform, tx, { kind: KIND, subjectType, subjectId, summary, evidence })
  return open ? 'refreshed' : 'raised'
}

const UNANSWERED = 'unanswered'

/** Raises a flag about a record that the processor does not answer about; a difference that the open flag states stays on it. */
export async function noteUnanswered(
  platform: Platform,
  tx: Tx,
  finding: Omit<ReconciliationFinding, 'differences'>,
): Promise<'raised' | 'refreshed' | 'known'> {
  const { subjectType, subjectId } = finding
  const open = await openFlagAbout(tx, { kind: KIND, subjectType, subjectId })
  const evidence: Evidence | null = open ? JSON.parse(open.evidence) : null
  if (!open || evidence === null || evidence.agrees_since !== null) {
    return noteDifference(platform, tx, { ...finding, differences: [UNANSWERED] })
  }
  if (evidence.differences.includes(UNANSWERED)) return 'refreshed'
  return noteDifference(platform, tx, {
    ...finding,
    summary: `${open.summary} ${finding.summary}`,
    differences: [...evidence.differences, UNANSWERED],
    theirs: [...evidence.theirs, ...finding.theirs],
  })
}

/** States on an open flag that its difference is gone. The flag stays open for the operator. */
export async function noteAgreement(platform: Platform, tx: Tx, subject: Subject): Promise<void> {
  const open = await openFlagAbout(tx, { kind: KIND, ...subject })
  if (!open) return
  const evidence: Evidence = JSON.parse(open.evidence)
  if (evidence.agrees_since !== null) return
  await raiseFlag(platform, tx, {
    kind: KIND,
    ...subject,
    summary: `The processor and we agree again. Before: ${open.summary}`,
    evidence: { ...evidence, agrees_since: isoTime(platform.clock.now()) },
  })
}

function isSame(resolved: Evidence, finding: ReconciliationFinding): boolean {
  const figures = ({ differences, ours, theirs }: Pick<Evidence, 'differences' | 'ours' | 'theirs'>) =>
    JSON.stringify([differences, ours, theirs])
  // A difference that was gone when its flag was resolved is a new one.
  return resolved.agrees_since === null && figures(resolved) === figures(finding)
}
