import type { Paisa } from '../../shared/money.ts'
import { cycleClosed } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { type AuditRecord, recordAudits } from '../moderation/audit.service.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database.ts'
import { pageByPage } from '../platform/page-by-page.ts'
import type { Platform } from '../platform/platform.ts'
import { newsOf } from '../platform/signals.ts'
import { type CycleRow, dueCycleIds } from './billing.store.ts'
import { boundaryAfter } from './billing-period.rule.ts'
import { closeOpenCycles, extendOpenCycles, findCyclesByIds, lockCycles } from './close.store.ts'
import { type CloseDecision, decideClose } from './close-cycle.rule.ts'
import { creditStandings, lockMerchantCredits } from './credits.store.ts'
import { queueInvoices } from './queue-invoices.service.ts'

/** What a close did, or with a dry run would do, to one cycle. Amounts in paisa, times in epoch ms. */
export interface CloseOutcome {
  cycleId: string
  merchantId: string
  kind: 'closed' | 'extended'
  periodStart: number
  periodEnd: number
  salesCount: number
  commissionTotal: Paisa
  feeTotal: Paisa
  creditTotal: Paisa
  amountDue: Paisa
}

export interface CloseOptions {
  asOf?: number
  merchantId?: string
  dryRun?: boolean
  actor?: string
  progress?: (at: number, all: number) => void
}

/**
 * As many cycles as one transaction closes. Sales of their merchants wait for it, on SQLite all writes do, so it has to
 * be over in a few hundredths of a second; what a page saves in statements is saved by then.
 */
const PAGE = 200

/**
 * Closes every open cycle whose period is over at `asOf` (epoch ms; now unless given), a page in each transaction, so that it can
 * be interrupted and run again; one that fails keeps no other from closing, and its error is thrown at the end. Cycles of
 * less than one rupee are extended to the next boundary instead. With an `actor` each gets an audit row; the schedule
 * has none.
 */
export async function closeDueCycles(
  platform: Platform,
  options: CloseOptions = {},
): Promise<CloseOutcome[]> {
  const asOf = options.asOf ?? platform.clock.now()
  const { database } = platform
  const due = await dueCycleIds(database.reader, asOf, options.merchantId ?? null)
  const work = async (cycleIds: readonly string[]) => {
    const settled = options.dryRun
      ? await decideCloses(database.reader, await findCyclesByIds(database.reader, cycleIds), asOf)
      : await database.transaction((tx) => closePage(platform, tx, cycleIds, { asOf, actor: options.actor }))
    const places = new Map(cycleIds.map((id, place) => [id, place]))
    const outcomes = settled.map((one) => outcomeOf(platform, one, asOf))
    return outcomes.sort((a, b) => (places.get(a.cycleId) ?? 0) - (places.get(b.cycleId) ?? 0))
  }
  return pageByPage(platform, due, PAGE, work, options.progress)
}

async function closePage(
  platform: Platform,
  tx: Tx,
  cycleIds: readonly string[],
  { asOf, actor }: { asOf: number; actor: string | undefined },
): Promise<Settled[]> {
  const settled = await closeLocked(platform, tx, await lockCycles(tx, cycleIds), asOf)
  if (actor !== undefined) {
    const records = settled.map((one) => auditOf(actor, outcomeOf(platform, one, asOf), one.cycle.period_end))
    await recordAudits(platform, tx, records)
  }
  return settled
}

function auditOf(actor: string, outcome: CloseOutcome, formerEnd: number): AuditRecord {
  const after =
    outcome.kind === 'closed'
      ? { state: 'closed', credit_total: outcome.creditTotal, amount_due: outcome.amountDue }
      : { state: 'open', period_end: outcome.periodEnd }
  return {
    actor,
    action: 'billing.close',
    subjectType: 'billing_cycle',
    subjectId: outcome.cycleId,
    reason: null,
    before: { state: 'open', period_end: formerEnd },
    after,
  }
}

type Due = Exclude<CloseDecision, { kind: 'not_due' }>

/** A cycle as it was, and what was decided about it. */
interface Settled {
  cycle: CycleRow
  decision: Due
}

/**
 * Closes or extends those of these cycles that are due at `asOf` (epoch ms), and answers them. The caller has locked them,
 * in the order of their merchants, which is the order they come in.
 */
export async function closeLocked(
  platform: Platform,
  tx: Tx,
  cycles: readonly CycleRow[],
  asOf: number,
): Promise<Settled[]> {
  if (cycles.length === 0) return []
  await lockMerchantCredits(tx, merchantsOf(cycles))
  const settled = await decideCloses(tx, cycles, asOf)
  await applyExtensions(platform, tx, settled, asOf)
  await applyCloses(platform, tx, settled)
  return settled
}

/** Those of these cycles that are due, at most one of each merchant: a second would reckon with the same credit. */
async function decideCloses(db: Queries, cycles: readonly CycleRow[], asOf: number): Promise<Settled[]> {
  const standings = await creditStandings(db, merchantsOf(cycles))
  return cycles.flatMap((cycle) => {
    const { granted, creditUsed } = standings.get(cycle.merchant_id) ?? { granted: 0, creditUsed: 0 }
    const decision = decideClose({
      state: cycle.state,
      periodEnd: cycle.period_end,
      asOf,
      commissionTotal: cycle.commission_total,
      feeTotal: cycle.fee_total,
      availableCredit: granted - creditUsed,
    })
    return decision.kind === 'not_due' ? [] : [{ cycle, decision }]
  })
}

function merchantsOf(cycles: readonly CycleRow[]): string[] {
  return [...new Set(cycles.map((cycle) => cycle.merchant_id))]
}

async function applyExtensions(platform: Platform, tx: Tx, settled: readonly Settled[], asOf: number) {
  const extended = settled.filter(({ decision }) => decision.kind === 'extend')
  if (extended.length === 0) return
  const ids = extended.map(({ cycle }) => cycle.id)
  assertMoved(ids, await extendOpenCycles(tx, ids, nextBoundary(platform, asOf)))
}

async function applyCloses(platform: Platform, tx: Tx, settled: readonly Settled[]): Promise<void> {
  const now = platform.clock.now()
  const closed = settled.flatMap(({ cycle, decision }) =>
    decision.kind === 'close' ? [{ cycleId: cycle.id, merchantId: cycle.merchant_id, ...decision }] : [],
  )
  if (closed.length === 0) return
  const rows = closed.map(({ cycleId, creditUsed, amountDue }) => {
    return { cycle_id: cycleId, credit_total: creditUsed, amount_due: amountDue }
  })
  assertMoved(
    closed.map(({ cycleId }) => cycleId),
    await closeOpenCycles(tx, rows, now),
  )
  await writeEntries(platform, tx, closed.map(cycleClosed), now)
  const invoices = closed.map(({ amountDue, ...cycle }) => ({ ...cycle, amount: amountDue }))
  await queueInvoices(platform, tx, invoices)
  afterCommit(tx, () => {
    for (const { merchantId } of closed) platform.signals.send(newsOf(merchantId))
  })
}

/** Their rows are locked, so one that has moved all the same is a bug. */
function assertMoved(cycleIds: readonly string[], moved: ReadonlySet<string>): void {
  const missing = cycleIds.find((id) => !moved.has(id))
  if (missing !== undefined) throw new Error(`cycle ${missing} is not open any more`)
}

function nextBoundary(platform: Platform, asOf: number): number {
  return boundaryAfter(asOf, platform.config.BILLING_PERIOD, platform.config.BILLING_TIMEZONE)
}

function outcomeOf(platform: Platform, { cycle, decision }: Settled, asOf: number): CloseOutcome {
  const closing = decision.kind === 'close'
  return {
    cycleId: cycle.id,
    merchantId: cycle.merchant_id,
    kind: closing ? 'closed' : 'extended',
    periodStart: cycle.period_start,
    periodEnd: closing ? cycle.period_end : nextBoundary(platform, asOf),
    salesCount: cycle.sales_count,
    commissionTotal: cycle.commission_total,
    feeTotal: cycle.fee_total,
    creditTotal: closing ? decision.creditUsed : 0,
    amountDue: closing ? decision.amountDue : 0,
  }
}
