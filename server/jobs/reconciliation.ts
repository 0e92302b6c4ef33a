import { setTimeout as pause } from 'node:timers/promises'
import { DAY_MS } from '../../shared/durations.ts'
import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { invoiceRecord, invoiceRecords } from '../billing/invoices.service.ts'
import {
  flaggedDifferences,
  noteAgreement,
  noteDifference,
  noteUnanswered,
  type ReconciliationFinding,
} from '../flags/reconciliation-flags.service.ts'
import { payoutRecord, payoutRecords } from '../payouts/payouts.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import { lookUpRecords, type RecordFilter } from '../processor/attempts.service.ts'
import type { LookupItem, Processor } from '../processor/processor.ts'
import { compareRecords, type OurRecord, type RecordDifference } from '../processor/records.rule.ts'
import { lastStart, readState, saveState } from './schedule-runs.service.ts'

/** The scheduled job's name. */
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

/**
 * Compares closed and charged cycles and all payouts with the processor's records under their references, and flags every difference. It
 * moves no money and changes no state: only the processor's signed events do.
 */
export function reconcile(
  platform: Platform,
  processor: Processor,
  options: ReconcileOptions = {},
): Promise<ReconcileOutcome> {
  return new Reconciliation(platform, processor, options).run()
}

/** True when the last run stopped before its end, or none has started for a day. */
export async function isReconciliationDue(platform: Platform): Promise<boolean> {
  if ((await readState(platform, POSITION)) !== null) return true
  const last = await lastStart(platform, RECONCILIATION)
  return last === null || platform.clock.now() - last > LONGEST_WITHOUT_MS
}

/** How far a run has come: invoices first, then payouts, each by id. */
interface Position {
  kind: OurRecord['kind']
  after: string
}

/** Consecutive runs that stopped because the processor did not answer. */
interface UnansweredStreak {
  runs: number
  /** Start of the first of them, epoch ms. */
  since: number
  /** The first record that it did not answer about. */
  first: { kind: OurRecord['kind']; id: string }
}

const START: Position = { kind: 'invoice', after: NIL_ID }

/** Names of the states that runs save. */
const POSITION = 'reconciliation'
const STREAK = 'reconciliation_unanswered'

class Reconciliation {
  readonly #platform: Platform
  readonly #processor: Processor
  readonly #options: ReconcileOptions
  readonly #outcome: ReconcileOutcome = { compared: 0, differing: [], unanswered: [], complete: true }
  #lookups = 0
  #unansweredInARow = 0
  /** The last answered look-up: unanswered ones after it are repeated. */
  #answered: Position = START
  #lookedUp: Position = START
  #streak: UnansweredStreak | null = null

  constructor(platform: Platform, processor: Processor, options: ReconcileOptions) {
    this.#platform = platform
    this.#processor = processor
    this.#options = options
  }

  async run(): Promise<ReconcileOutcome> {
    const { resume } = this.#options
    const saved = resume ? await readState<Position>(this.#platform, POSITION) : null
    const start = saved ?? START
    if (resume) this.#streak = await readState(this.#platform, STREAK)
    this.#answered = start
    await this.#savePosition(start)
    const kinds = start.kind === 'invoice' ? (['invoice', 'payout'] as const) : (['payout'] as const)
    for (const kind of kinds) {
      await this.#compareAll(kind, kind === start.kind ? start.after : NIL_ID)
      if (!this.#outcome.complete) break
    }
    if (resume) await this.#saveStreak(start.after === NIL_ID && start.kind === 'invoice')
    await this.#savePosition(this.#outcome.complete ? null : this.#nextPosition(saved !== null))
    return this.#outcome
  }

  /** Skips records without an answer in two runs, so that they do not block the records after them. */
  #nextPosition(resumed: boolean): Position {
    const isStuck = resumed && this.#gaveUp() && this.#outcome.compared === 0
    return isStuck ? this.#lookedUp : this.#answered
  }

  #gaveUp(): boolean {
    return !this.#outcome.complete && this.#unansweredInARow >= MAX_UNANSWERED
  }

  /** A streak ends with a complete run from the start, or with an answer about its first record. */
  async #saveStreak(fromTheStart: boolean): Promise<void> {
    const gaveUp = this.#gaveUp()
    if (gaveUp) {
      const former = this.#streak ?? this.#newStreak()
      this.#streak = { ...former, runs: former.runs + 1 }
    } else if (this.#outcome.complete && fromTheStart) this.#streak = null
    await saveState(this.#platform, STREAK, this.#streak)
    if (gaveUp && this.#streak && this.#streak.runs >= UNANSWERED_RUNS) await this.#flagStreak(this.#streak)
  }

  #newStreak(): UnansweredStreak {
    const [first] = this.#outcome.unanswered.slice(-MAX_UNANSWERED)
    if (!first) throw new Error('every look-up was answered')
    return { runs: 0, since: this.#platform.clock.now(), first: { kind: first.kind, id: first.id } }
  }

  async #flagStreak({ first, since }: UnansweredStreak): Promise<void> {
    await this.#platform.database.transaction(async (tx) => {
      const ours = await currentRecord(tx, first)
      if (!ours) return
      await noteUnanswered(this.#platform, tx, {
        ...subjectOf(ours),
        summary: `Reconciliation stopped in ${UNANSWERED_RUNS} or more runs because the processor did not answer, first about ${nameOf(ours)}. This record and later ones may not have been compared.`,
        ours: figuresOf(ours),
        theirs: [{ unanswered_since: isoTime(since) }],
      })
    })
  }

  async #compareAll(kind: OurRecord['kind'], from: string): Promise<void> {
    const filter = await this.#filter(kind)
    const read = kind === 'invoice' ? invoiceRecords : payoutRecords
    for (let after = from; ; ) {
      const records = await read(this.#platform.database.reader, filter, after, PAGE)
      if (records.length === 0) return
      for (const ours of records) {
        if (this.#mustStop()) {
          this.#outcome.complete = false
          return
        }
        await this.#compareOne(ours, filter.always.includes(ours.id))
        after = ours.id
      }
      await this.#savePosition(this.#answered)
    }
  }

  async #filter(kind: OurRecord['kind']): Promise<RecordFilter> {
    const now = this.#platform.clock.now()
    const flagged = await flaggedDifferences(this.#platform.database.reader)
    return {
      since: this.#options.since ?? now - RECONCILED_DAYS * DAY_MS,
      quietSince: now - QUIET_MS,
      always: flagged[subjectType(kind)],
    }
  }

  #mustStop(): boolean {
    return (
      this.#options.signal?.aborted === true ||
      this.#lookups >= (this.#options.mostLookups ?? MAX_LOOKUPS) ||
      this.#unansweredInARow >= MAX_UNANSWERED
    )
  }

  /** After a crash the next run starts at the last saved position. A difference that is found again is flagged once. */
  async #savePosition(position: Position | null): Promise<void> {
    if (this.#options.resume) await saveState(this.#platform, POSITION, position)
  }

  async #compareOne(ours: OurRecord, flagged: boolean): Promise<void> {
    const { kind, id } = ours
    const { signal, pauseMs = PAUSE_MS } = this.#options
    if (this.#lookups > 0 && pauseMs > 0) {
      await pause(pauseMs, undefined, signal ? { signal } : {}).catch(() => undefined)
    }
    this.#lookups += 1
    this.#lookedUp = { kind, after: id }
    const found = await lookUpRecords(this.#platform.database.reader, this.#processor, kind, id)
    if (found.kind === 'unavailable') {
      this.#unansweredInARow += 1
      this.#outcome.unanswered.push({ kind, id, detail: found.detail })
      this.#platform.log.warn({ [subjectType(kind)]: id, detail: found.detail }, 'not reconciled')
      return
    }
    this.#unansweredInARow = 0
    this.#answered = { kind, after: id }
    if (this.#streak?.first.id === id) this.#streak = null
    this.#outcome.compared += 1
    this.#options.onProgress?.(this.#outcome.compared)
    await this.#note(ours, found.items, flagged)
  }

  async #note(ours: OurRecord, items: LookupItem[], flagged: boolean): Promise<void> {
    const differences = compareRecords(ours, items)
    if (differences.length === 0 && !flagged) return
    const flag = await this.#platform.database.transaction(async (tx) => {
      // A record that changed since it was read was compared with an old state. The next run compares it again.
      if (JSON.stringify(await currentRecord(tx, ours)) !== JSON.stringify(ours)) return null
      if (differences.length > 0)
        return noteDifference(this.#platform, tx, findingOf(ours, items, differences))
      await noteAgreement(this.#platform, tx, subjectOf(ours))
      return null
    })
    if (flag) this.#outcome.differing.push({ ours, items, differences, flag })
  }
}

function currentRecord(db: Queries, { kind, id }: Pick<OurRecord, 'kind' | 'id'>): Promise<OurRecord | null> {
  return kind === 'invoice' ? invoiceRecord(db, id) : payoutRecord(db, id)
}

function subjectType(kind: OurRecord['kind']): 'billing_cycle' | 'payout' {
  return kind === 'invoice' ? 'billing_cycle' : 'payout'
}

function subjectOf({ kind, id }: OurRecord) {
  return { subjectType: subjectType(kind), subjectId: id }
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

function findingOf(
  ours: OurRecord,
  items: readonly LookupItem[],
  differences: readonly RecordDifference[],
): ReconciliationFinding {
  return {
    ...subjectOf(ours),
    summary: `The processor's record of ${nameOf(ours)} differs from ours: ${describeDifferences(differences)}.`,
    differences,
    ours: figuresOf(ours),
    theirs: items.map(({ id, amount, currency, status }) => ({
      id,
      amount: formatMoney(amount),
      currency,
      status,
    })),
  }
}
