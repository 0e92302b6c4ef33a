import { FLAG_KINDS, type FlagKind, type FlagWire, flagKind } from '../../shared/schemas/admin.ts'
import { type Page, type PageRequest, pageById } from '../platform/api/page.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { changeRow, lockRows, rowProblem, updateRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { recordAudit } from './audit.service.ts'
import {
  countOpenFlags,
  type FlagFilter,
  type FlagRow,
  findFlags,
  insertOrRefreshFlags,
} from './flags.store.ts'

export type { FlagKind } from '../../shared/schemas/admin.ts'
export { countFlags, type FlagRow, findFlag, findFlags, resolvedFlagTimes } from './flags.store.ts'

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
  /** The id is the processor's event type. */
  | 'processor_event_type'
  /** A table with rows that the service did not write: the id is its name. */
  | 'database_table'
  /** The processor as a whole: the id is the setting `PROCESSOR`. */
  | 'processor'

export interface NewFlag {
  kind: FlagKind
  subjectType: SubjectType
  subjectId: string
  /** One sentence for the operator. */
  summary: string
  /** Plain data without buyers' details or secrets. */
  evidence: Record<string, unknown>
}

/** What a flag is about. At most one flag about it is open. */
export type FlagSubject = Pick<NewFlag, 'kind' | 'subjectType' | 'subjectId'>

/** Raises a flag, or refreshes summary and evidence of the open one about the same subject. */
export function raiseFlag(platform: Platform, tx: Tx, flag: NewFlag): Promise<void> {
  return raiseFlags(platform, tx, [flag])
}

/** Flags what a run could not do for one cycle or creator, in a transaction alone. */
export async function flagFailedRun(
  platform: Platform,
  subject: Omit<FlagSubject, 'kind'>,
  run: string,
  error: unknown,
): Promise<void> {
  const reason = (error instanceof Error ? error.message : String(error)).slice(0, 300).toWellFormed()
  const summary = `The ${run} failed for this one; the others went on. It is repeated with the next run.`
  const flag = { ...subject, kind: 'run_failed' as const, summary, evidence: { run, reason } }
  await platform.database.transaction((tx) => raiseFlag(platform, tx, flag))
}

/** The cycles and creators that earlier runs could not do, by id. */
export async function flaggedByRuns(db: Queries): Promise<ReadonlySet<string>> {
  return new Set((await openFlags(db, 'run_failed')).map(({ subject_id }) => subject_id))
}

/** As `raiseFlag`, for several subjects. */
export function raiseFlags(platform: Platform, tx: Tx, flags: readonly NewFlag[]): Promise<void> {
  return insertOrRefreshFlags(
    tx,
    flags.map((flag) => ({
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
    })),
  )
}

/**
 * Resolves a flag, which changes nothing about its subject; `actor` is an admin's user id or `OPERATOR`. Repeating the note changes nothing.
 * Edges call `decideFlag` of billing/, which also notifies a merchant whose credit request was declined. Refuses with `not_found`, and with
 * `already_decided` when the flag was resolved with another note.
 */
export function resolveFlag(
  platform: Platform,
  { flagId, actor, note }: { flagId: string; actor: string; note: string },
  onResolved?: (tx: Tx) => Promise<void>,
): Promise<FlagRow> {
  return platform.database.transaction(async (tx) => {
    const [flag] = await lockRows(tx, 'flags', { id: flagId })
    if (!flag) throw new Refusal('not_found', 'Flag not found.')
    if (flag.status === 'resolved') {
      if (flag.note === note) return flag
      throw new Refusal('already_decided', 'This flag was resolved with another note.')
    }
    await changeRow(tx, 'flags', flag, { status: 'resolved', note, resolved_at: platform.clock.now() })
    await recordAudit(platform, tx, {
      actor,
      action: 'flag.resolve',
      subjectType: 'flag',
      subjectId: flagId,
      reason: note,
      before: { status: 'open', kind: flag.kind, about: flag.subject_id },
      after: { status: 'resolved' },
    })
    await onResolved?.(tx)
    return flag
  })
}

/** Resolves the open flag about a subject because events settled it; returns whether there was one. */
export async function closeFlag(
  platform: Platform,
  tx: Tx,
  subject: FlagSubject,
  note: string,
): Promise<boolean> {
  const flag = await openFlagAbout(tx, subject)
  // A flag that was changed in the database stops no payment: it stays, and verification finds it.
  if (!flag || rowProblem(platform.keys, 'flags', flag) !== null) return false
  const open = { id: flag.id, status: 'open' } as const
  const resolution = { status: 'resolved', note, resolved_at: platform.clock.now() } as const
  return (await updateRows(tx, 'flags', open, resolution)).length > 0
}

/** Newest first. Refuses another list's cursor with `validation_failed`. */
export function listFlags(
  platform: Platform,
  query: Pick<FlagFilter, 'kind' | 'severity' | 'status' | 'subjectId'> & PageRequest,
): Promise<Page<FlagRow>> {
  const { kind, severity, status, subjectId } = query
  return pageById(query, (request) =>
    findFlags(platform.database.reader, { kind, severity, status, subjectId }, request),
  )
}

/** A flag as admins and the operator see it. */
export function wireFlag(row: FlagRow): FlagWire {
  return {
    id: row.id,
    kind: row.kind as FlagKind,
    severity: row.severity,
    subject_type: row.subject_type,
    subject_id: row.subject_id,
    summary: row.summary,
    evidence: JSON.parse(row.evidence),
    status: row.status,
    note: row.note,
    created_at: isoTime(row.created_at),
    resolved_at: row.resolved_at === null ? null : isoTime(row.resolved_at),
  }
}

/** Open flags of one kind, of one subject id if given, newest first. */
export function openFlags(db: Queries, kind: FlagKind, subjectId?: string): Promise<FlagRow[]> {
  return findFlags(db, { kind, subjectId, status: 'open' })
}

/** How many flags of every kind are open, also of kinds with none. */
export async function openFlagsByKind(db: Queries) {
  const counts = new Map((await countOpenFlags(db)).map(({ kind, count }) => [kind, count]))
  return flagKind.options.map((kind) => ({
    kind,
    severity: FLAG_KINDS[kind],
    count: counts.get(kind) ?? 0,
  }))
}

export async function openFlagAbout(db: Queries | Tx, subject: FlagSubject): Promise<FlagRow | undefined> {
  const { kind, subjectType, subjectId } = subject
  const [flag] = await findFlags(db, { kind, subjectType, subjectId, status: 'open' }, { limit: 1 })
  return flag
}

/** The flag of this kind and subject id that was resolved last. */
export async function lastResolvedFlag(db: Queries, kind: FlagKind, subjectId: string) {
  const [flag] = await findFlags(db, { kind, subjectId, status: 'resolved' }, { limit: 1 })
  return flag
}
