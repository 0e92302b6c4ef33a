import { setTimeout as pause } from 'node:timers/promises'
import { CURRENCY, formatMoney } from '../../shared/money.ts'
import { invoiceRecord, invoiceRecords } from '../billing/invoices.service.ts'
import {
  flaggedDifferences,
  noteAgreement,
  noteDifference,
  noteUnanswered,
  type ReconciliationFinding,
} from '../moderation/reconciliation-flags.service.ts'
import { payoutRecord, payoutRecords } from '../payouts/payouts.service.ts'
import { isoTime } from '../platform/clock.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { NIL_ID } from '../platform/ids.ts'
import type { Platform } from '../platform/platform.ts'
import type { RecordFilter } from '../processor/attempts.service.ts'
import type { LookupItem, Processor } from '../processor/processor.ts'
import { compareRecords, type OurRecord, type RecordDifference } from '../processor/records.rule.ts'
import {
  FROM_THE_START,
  type ReconcileProgress,
  readProgress,
  readStreak,
  saveProgress,
  saveStreak,
  type UnansweredStreak,
} from './reconcile-progress.store.ts'
import { lastRuns } from './schedule-runs.store.ts'

/** The scheduled job's name. */
export const RECONCILIATION = 'reconciliation'

const DAY_MS = 86_400_000
/** Settled invoices and payouts are compared for so long: a bank can take a payment back weeks later. */
export const RECONCILED_DAYS = 35
/** The processor's own event may still be on its way: it has a try every few minutes. */
const QUIET_MS = 15 * 60_000
/** At most ten look-ups a second, for each scheduler that runs one. */
const PAUSE_MS = 100
/** A run of about eight minutes; the next one goes on from there. */
const MOST_LOOKUPS = 5000
const RECORDS_AT_ONCE = 200
/** So many look-ups in a row without an answer: the processor is away, and the rest need not be tried. */
const UNANSWERED_IN_A_ROW = 5
/** So many runs in a row that ended so: somebody must be told, or nothing might be compared for months. */
const UNANSWERED_RUNS = 3

export interface ReconcileOptions {
  /** Epoch ms: settled ones count from here on; `RECONCILED_DAYS` back unless given. */
  since?: number
  /** Goes on where the last run was interrupted, and leaves its own place if it is. */
  resume?: boolean
  mostLookups?: number
  pauseMs?: number
  /** Ends the run between two look-ups. */
  signal?: AbortSignal
  onProgress?: (compared: number) => void
}

export interface FoundDifference {
  ours: OurRecord
  items: LookupItem[]
  differences: RecordDifference[]
  /** `known`: a person has resolved this very difference. */
  flag: 'raised' | 'refreshed' | 'known'
}

export interface ReconcileOutcome {
  compared: number
  differing: FoundDifference[]
  /** The processor could not be asked about these. */
  unanswered: { kind: OurRecord['kind']; id: string; detail: string }[]
  /** False when the run ended before it had asked about everything. */
  complete: boolean
}

/**
 * Compares closed and charged cycles and all kinds of payouts with what the processor holds under their references, and
 * puts every difference before a person. It moves no money and no state: only the processor's signed events do.
 */
export function reconcile(
  platform: Platform,
  processor: Processor,
  options: ReconcileOptions = {},
): Promise<ReconcileOutcome> {
  return new Reconciliation(platform, processor, options).run()
}

/** A machine that sleeps at the hour of the schedule would never compare anything. */
const LONGEST_WITHOUT_MS = 26 * 3_600_000

/** Whether a run was interrupted, by a crash or by its own bounds, and has the rest to do; or none has begun for a day. */
export async function isReconciliationDue(platform: Platform): Promise<boolean> {
  if ((await readProgress(platform)) !== null) return true
  const last = (await lastRuns(platform.database.reader)).find(({ name }) => name === RECONCILIATION)
  return last === undefined || platform.clock.now() - last.started_at > LONGEST_WITHOUT_MS
}

class Reconciliation {
  readonly #platform: Platform
  readonly #processor: Processor
  readonly #options: ReconcileOptions
  readonly #outcome: ReconcileOutcome = { compared: 0, differing: [], unanswered: [], complete: true }
  #lookups = 0
  #unansweredInARow = 0
  /** Where the last answer was: what could not be asked about in a row is asked about again. */
  #answeredUpTo: ReconcileProgress = FROM_THE_START
  #askedUpTo: ReconcileProgress = FROM_THE_START
  #streak: UnansweredStreak | null = null

  constructor(platform: Platform, processor: Processor, options: ReconcileOptions) {
    this.#platform = platform
    this.#processor = processor
    this.#options = options
  }

  async run(): Promise<ReconcileOutcome> {
    const kept = this.#options.resume ? await readProgress(this.#platform) : null
    const start = kept ?? FROM_THE_START
    if (this.#options.resume) this.#streak = await readStreak(this.#platform)
    this.#answeredUpTo = start
    await this.#keepPlace(start)
    const kinds = start.kind === 'invoice' ? (['invoice', 'payout'] as const) : (['payout'] as const)
    for (const kind of kinds) {
      await this.#compareAll(kind, kind === start.kind ? start.after : NIL_ID)
      if (!this.#outcome.complete) break
    }
    if (this.#options.resume) await this.#keepStreak(start.after === NIL_ID && start.kind === 'invoice')
    await this.#keepPlace(this.#outcome.complete ? null : this.#nextPlace(kept !== null))
    return this.#outcome
  }

  /** What was never answered about, in two runs, must not stand before everything behind it: the next run passes it over. */
  #nextPlace(resumed: boolean): ReconcileProgress {
    const isStuck = resumed && this.#gaveUp() && this.#outcome.compared === 0
    return isStuck ? this.#askedUpTo : this.#answeredUpTo
  }

  #gaveUp(): boolean {
    return !this.#outcome.complete && this.#unansweredInARow >= UNANSWERED_IN_A_ROW
  }

  /**
   * A run that reaches the end only because an earlier one had passed something over ends no streak: one from the start
   * does, or an answer about what came first.
   */
  async #keepStreak(wasFromTheStart: boolean): Promise<void> {
    const gaveUp = this.#gaveUp()
    if (gaveUp) {
      const former = this.#streak ?? this.#newStreak()
      this.#streak = { ...former, runs: former.runs + 1 }
    } else if (this.#outcome.complete && wasFromTheStart) this.#streak = null
    await saveStreak(this.#platform, this.#streak)
    if (gaveUp && this.#streak && this.#streak.runs >= UNANSWERED_RUNS) await this.#tell(this.#streak)
  }

  #newStreak(): UnansweredStreak {
    const [first] = this.#outcome.unanswered.slice(-UNANSWERED_IN_A_ROW)
    if (!first) throw new Error('everything was answered')
    return { runs: 0, since: this.#platform.clock.now(), first: { kind: first.kind, id: first.id } }
  }

  async #tell({ first, since }: UnansweredStreak): Promise<void> {
    await this.#platform.database.transaction(async (tx) => {
      const ours = await recordNow(tx, first)
      if (ours) await tellUnanswered(this.#platform, tx, ours, since)
    })
  }

  async #compareAll(kind: OurRecord['kind'], from: string): Promise<void> {
    const filter = await this.#filter(kind)
    const read = kind === 'invoice' ? invoiceRecords : payoutRecords
    for (let after = from; ; ) {
      const records = await read(this.#platform.database.reader, filter, after, RECORDS_AT_ONCE)
      if (records.length === 0) return
      for (const ours of records) {
        if (this.#mustEnd()) {
          this.#outcome.complete = false
          return
        }
        await this.#compareOne(ours, filter.always.includes(ours.id))
        after = ours.id
      }
      await this.#keepPlace(this.#answeredUpTo)
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

  #mustEnd(): boolean {
    return (
      this.#options.signal?.aborted === true ||
      this.#lookups >= (this.#options.mostLookups ?? MOST_LOOKUPS) ||
      this.#unansweredInARow >= UNANSWERED_IN_A_ROW
    )
  }

  /** After a crash the next run begins at the last place kept: what is compared twice is flagged once. */
  async #keepPlace(place: ReconcileProgress | null): Promise<void> {
    if (this.#options.resume) await saveProgress(this.#platform, place)
  }

  async #compareOne(ours: OurRecord, flagged: boolean): Promise<void> {
    const { kind, id } = ours
    const { signal, pauseMs = PAUSE_MS } = this.#options
    if (this.#lookups > 0 && pauseMs > 0) {
      await pause(pauseMs, undefined, signal ? { signal } : {}).catch(() => undefined)
    }
    this.#lookups += 1
    this.#askedUpTo = { kind, after: id }
    const found = await (kind === 'invoice'
      ? this.#processor.findInvoices(id)
      : this.#processor.findPayouts(id))
    if (found.kind === 'unavailable') {
      this.#unansweredInARow += 1
      this.#outcome.unanswered.push({ kind, id, detail: found.detail })
      this.#platform.log.warn({ [subjectType(kind)]: id, detail: found.detail }, 'not reconciled')
      return
    }
    this.#unansweredInARow = 0
    this.#answeredUpTo = { kind, after: id }
    if (this.#streak?.first.id === id) this.#streak = null
    this.#outcome.compared += 1
    this.#options.onProgress?.(this.#outcome.compared)
    const items = found.items.filter((item) => item.reference === id)
    await this.#note(ours, items, flagged)
  }

  async #note(ours: OurRecord, items: LookupItem[], flagged: boolean): Promise<void> {
    const differences = compareRecords(ours, items)
    if (differences.length === 0 && !flagged) return
    const flag = await this.#platform.database.transaction(async (tx) => {
      // What has moved since it was read was compared with the past: the next run looks at it again.
      if (!isSame(await recordNow(tx, ours), ours)) return null
      const subject = { subjectType: subjectType(ours.kind), subjectId: ours.id }
      if (differences.length > 0) {
        return noteDifference(this.#platform, tx, { ...subject, ...findingOf(ours, items, differences) })
      }
      await noteAgreement(this.#platform, tx, subject)
      return null
    })
    if (flag) this.#outcome.differing.push({ ours, items, differences, flag })
  }
}

function recordNow(db: Queries, { kind, id }: Pick<OurRecord, 'kind' | 'id'>): Promise<OurRecord | null> {
  return kind === 'invoice' ? invoiceRecord(db, id) : payoutRecord(db, id)
}

function isSame(one: OurRecord | null, other: OurRecord): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function subjectType(kind: OurRecord['kind']): 'billing_cycle' | 'payout' {
  return kind === 'invoice' ? 'billing_cycle' : 'payout'
}

const WORDS: Record<RecordDifference, string> = {
  paid_there: 'it is paid there and not here',
  failed_there: 'it has failed there and not here',
  open_there: 'it is still open there and not here',
  unclear_there: 'its state there is no word that we know',
  unknown_there: 'the processor does not know it',
  double_there: 'the processor holds it more than once',
  other_id_there: 'the processor has it under another id than we noted',
  amount_differs: 'its amount there is another',
  currency_differs: 'its currency there is another',
}

/** The differences as a person reads them. */
export function wordsOf(differences: readonly RecordDifference[]): string {
  return differences.map((difference) => WORDS[difference]).join(', ')
}

function tellUnanswered(platform: Platform, tx: Tx, ours: OurRecord, since: number) {
  return noteUnanswered(platform, tx, {
    subjectType: subjectType(ours.kind),
    subjectId: ours.id,
    summary: `Reconciliation has ended ${UNANSWERED_RUNS} times or more for want of answers from the processor, first about ${whatOf(ours)}: this and what follows may not have been compared.`,
    ours: figuresOf(ours),
    theirs: [{ unanswered_since: isoTime(since) }],
  })
}

function whatOf(ours: OurRecord): string {
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
): Pick<ReconciliationFinding, 'summary' | 'differences' | 'ours' | 'theirs'> {
  return {
    summary: `The processor's record of ${whatOf(ours)} is not ours: ${wordsOf(differences)}.`,
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
