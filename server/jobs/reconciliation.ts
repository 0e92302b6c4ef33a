import { setTimeout as pause } from 'node:timers/promises'
import { DAY_MS } from '../../shared/durations.ts'
import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { invoiceRecord, invoiceRecords } from '../billing/invoices.service.ts'
import {
  flaggedDifferences,
  noteAgreement,
  noteDifference,
  noteUnanswered,
} from '../flags/reconciliation-flags.service.ts'
import { payoutRecord, payoutRecords } from '../payouts/payouts.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { lookUpRecords, type RecordFilter, subjectOf } from '../processor/attempts.service.ts'
import type { LookupItem, Processor } from '../processor/processor.ts'
import { compareRecords, type OurRecord, type RecordDifference } from '../processor/records.rule.ts'
import { lastStart, readState, saveState } from './schedule-runs.service.ts'

/** The name of the scheduled job, and of what its runs save. */
export const RECONCILIATION = 'reconciliation'

/** Settled invoices and payouts are compared for this long, because a bank can reverse a payment weeks later. */
export const RECONCILED_DAYS = 40
/** Newer changes wait for the next run, because the processor's event may still be on its way. */
export const QUIET_MS = 15 * 60_000
/** At most ten look-ups a second in each run. */
export const PAUSE_MS = 100
/** A run of about eight minutes; the next run continues there. */
const MAX_LOOKUPS = 5000
const PAGE = 200
/** A run ends after this many unanswered look-ups in a row: the processor is unavailable. */
const MAX_UNANSWERED = 5
/** After this many such runs in a row a flag is raised. */
const UNANSWERED_RUNS = 3
/** A run is due at the start after this time without one, for a machine that is off at the scheduled hour. */
const LONGEST_WITHOUT_MS = 26 * 3_600_000

export interface ReconcileOptions {
  /** Compares records settled at this time or later, epoch ms. Defaults to `RECONCILED_DAYS` ago. */
  since?: number
  /** Continues where the last run stopped, and saves its own position. */
  resume?: boolean
  mostLookups?: number
  pauseMs?: number
  /** Stops the run between two look-ups. */
  signal?: AbortSignal
  onProgress?: (compared: number) => void
}

export interface FoundDifference {
  ours: OurRecord
  items: LookupItem[]
  differences: RecordDifference[]
  /** `known`: a person has already resolved the same difference. */
  flag: 'raised' | 'refreshed' | 'known'
}

export interface ReconcileOutcome {
  compared: number
  differing: FoundDifference[]
  /** The processor did not answer about these. */
  unanswered: { kind: OurRecord['kind']; id: string; detail: string }[]
  /** False when the run stopped before it had compared everything. */
  complete: boolean
}

/** True when the last run stopped before its end, or none has started for a day. */
export async function isReconciliationDue(platform: Platform): Promise<boolean> {
  if ((await readState<Progress>(platform, RECONCILIATION))?.position) return true
  const last = await lastStart(platform, RECONCILIATION)
  return last === null || platform.clock.now() - last > LONGEST_WITHOUT_MS
}

/** How far a run has come: invoices first, then payouts, each by id. */
interface Position {
  kind: OurRecord['kind']
  after: string
}

const START: Position = { kind: 'invoice', after: NIL_ID }

/** Consecutive runs that stopped because the processor did not answer. */
interface UnansweredStreak {
  runs: number
  /** Start of the first of them, epoch ms. */
  since: number
  /** The first record that it did not answer about. */
  first: { kind: OurRecord['kind']; id: string }
}

/** What a run leaves to the next. `position`: `null` when it has compared everything. */
interface Progress {
  position: Position | null
  streak: UnansweredStreak | null
}

/**
 * Compares closed and charged cycles and all payouts with the processor's records under their references, and flags every difference. It
 * moves no money and changes no state: only the processor's signed events do.
 */
export async function reconcile(
  platform: Platform,
  processor: Processor,
  options: ReconcileOptions = {},
): Promise<ReconcileOutcome> {
  const { resume = false, mostLookups = MAX_LOOKUPS, pauseMs = PAUSE_MS, signal, onProgress } = options
  const { database, clock, log } = platform
  const outcome: ReconcileOutcome = { compared: 0, differing: [], unanswered: [], complete: true }
  const saved = resume ? await readState<Progress>(platform, RECONCILIATION) : null
  const start = saved?.position ?? START
  let streak = saved?.streak ?? null
  /** The last answered look-up: unanswered ones after it are repeated. */
  let answered = start
  let lookedUp = start
  let lookups = 0
  let unansweredInARow = 0

  /** After a crash the next run starts at the last saved position. A difference that is found again is flagged once. */
  const save = async (position: Position | null) => {
    const progress: Progress | null = position || streak ? { position, streak } : null
    if (resume) await saveState(platform, RECONCILIATION, progress)
  }
  const mustStop = () => signal?.aborted || lookups >= mostLookups || unansweredInARow >= MAX_UNANSWERED

  const compare = async (ours: OurRecord, flagged: boolean) => {
    const { kind, id } = ours
    if (lookups > 0) await pause(pauseMs, undefined, signal && { signal }).catch(() => undefined)
    lookups += 1
    lookedUp = { kind, after: id }
    const found = await lookUpRecords(database.reader, processor, kind, id)
    if (found.kind === 'unavailable') {
      unansweredInARow += 1
      outcome.unanswered.push({ kind, id, detail: found.detail })
      log.warn({ [subjectOf(kind, id).subjectType]: id, detail: found.detail }, 'not reconciled')
      return
    }
    unansweredInARow = 0
    answered = lookedUp
    if (streak?.first.id === id) streak = null
    outcome.compared += 1
    onProgress?.(outcome.compared)
    const difference = await noteResult(platform, ours, found.items, flagged)
    if (difference) outcome.differing.push(difference)
  }

  const compareAll = async (kind: OurRecord['kind'], from: string) => {
    const filter: RecordFilter = {
      since: options.since ?? clock.now() - RECONCILED_DAYS * DAY_MS,
      quietSince: clock.now() - QUIET_MS,
      always: (await flaggedDifferences(database.reader))[subjectOf(kind, '').subjectType],
    }
    const read = kind === 'invoice' ? invoiceRecords : payoutRecords
    for (let after = from; ; ) {
      const records = await read(database.reader, filter, after, PAGE)
      if (records.length === 0) return
      for (const ours of records) {
        if (mustStop()) {
          outcome.complete = false
          return
        }
        await compare(ours, filter.always.includes(ours.id))
        after = ours.id
      }
      await save(answered)
    }
  }

  await save(start)
  if (start.kind === 'invoice') await compareAll('invoice', start.after)
  if (outcome.complete) await compareAll('payout', start.kind === 'payout' ? start.after : NIL_ID)
  const gaveUp = unansweredInARow >= MAX_UNANSWERED && !outcome.complete
  // A streak ends with a complete run from the start, or with an answer about its first record.
  if (outcome.complete && start.kind === 'invoice' && start.after === NIL_ID) streak = null
  const [first] = outcome.unanswered.slice(-MAX_UNANSWERED)
  if (gaveUp && first) {
    streak ??= { runs: 0, since: clock.now(), first: { kind: first.kind, id: first.id } }
    streak = { ...streak, runs: streak.runs + 1 }
  }
  // Records without an answer in two runs are skipped, so that they do not block the records after them.
  const isStuck = gaveUp && outcome.compared === 0 && saved?.position
  await save(outcome.complete ? null : isStuck ? lookedUp : answered)
  if (resume && gaveUp && streak && streak.runs >= UNANSWERED_RUNS) await flagStreak(platform, streak)
  return outcome
}

async function flagStreak(platform: Platform, { first, since }: UnansweredStreak): Promise<void> {
  await platform.database.transaction(async (tx) => {
    const ours = await currentRecord(tx, first)
    if (!ours) return
    await noteUnanswered(platform, tx, {
      ...subjectOf(ours.kind, ours.id),
      summary: `Reconciliation stopped in ${UNANSWERED_RUNS} or more runs because the processor did not answer, first about ${nameOf(ours)}. This record and later ones may not have been compared.`,
      ours: figuresOf(ours),
      theirs: [{ unanswered_since: isoTime(since) }],
    })
  })
}

/** Flags the differences; where there are none, notes that on the flag that the record has. */
async function noteResult(
  platform: Platform,
  ours: OurRecord,
  items: LookupItem[],
  flagged: boolean,
): Promise<FoundDifference | null> {
  const differences = compareRecords(ours, items)
  if (differences.length === 0 && !flagged) return null
  return platform.database.transaction(async (tx) => {
    // A record that changed since it was read was compared with an old state. The next run compares it again.
    if (JSON.stringify(await currentRecord(tx, ours)) !== JSON.stringify(ours)) return null
    if (differences.length === 0) {
      await noteAgreement(platform, tx, subjectOf(ours.kind, ours.id))
      return null
    }
    const flag = await noteDifference(platform, tx, {
      ...subjectOf(ours.kind, ours.id),
      summary: `The processor's record of ${nameOf(ours)} differs from ours: ${describeDifferences(differences)}.`,
      differences,
      ours: figuresOf(ours),
      theirs: items.map(theirFigures),
    })
    return { ours, items, differences, flag }
  })
}

function currentRecord(db: Queries, { kind, id }: Pick<OurRecord, 'kind' | 'id'>): Promise<OurRecord | null> {
  return kind === 'invoice' ? invoiceRecord(db, id) : payoutRecord(db, id)
}

const TEXTS: Record<RecordDifference, string> = {
  paid_there: 'paid at the processor, not here',
  failed_there: 'failed at the processor, not here',
  open_there: 'still open at the processor, not here',
  unclear_there: 'an unknown status at the processor',
  unknown_there: 'unknown to the processor',
  double_there: 'more than one at the processor',
  other_id_there: 'another id at the processor',
  amount_differs: 'another amount at the processor',
  currency_differs: 'another currency at the processor',
}

/** The differences as a text for an operator. */
export function describeDifferences(differences: readonly RecordDifference[]): string {
  return differences.map((difference) => TEXTS[difference]).join(', ')
}

function nameOf(ours: OurRecord): string {
  const what = ours.kind === 'invoice' ? "a billing cycle's invoice" : 'a payout'
  return `${what} over Rs ${formatMoney(ours.amount)}`
}

function figuresOf({ standing, amount, processorId }: OurRecord): Record<string, unknown> {
  return { standing, amount: formatMoney(amount), currency: CURRENCY, processor_id: processorId }
}

function theirFigures({ id, amount, currency, status }: LookupItem): Record<string, unknown> {
  return { id, amount: formatMoney(amount), currency, status }
}
