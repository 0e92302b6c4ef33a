import type { Paisa } from '../../shared/money.ts'
import { type AuditRecord, recordAudits } from '../flags/audit.service.ts'
import { closeFlag, flagFailedRun, flaggedByRuns } from '../flags/flags.service.ts'
import { cycleClosed } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { type NewEvent, publishEvents } from '../notifications/outbox.service.ts'
import { processInBatches } from '../platform/database/batches.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database/database.ts'
import { changeRows } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { userTopic } from '../platform/topics.ts'
import { type CycleRow, dueCycleIds, findCycle, findCyclesByIds, lockCycles } from './billing.store.ts'
import { boundaryAfter } from './billing-period.rule.ts'
import { wireCycle } from './billing-wire.ts'
import { type CloseDecision, decideClose } from './close-cycle.rule.ts'
import { checkedCredits, lockMerchantCredits } from './credits.store.ts'
import { queueInvoices } from './invoices.service.ts'

/** What a close did to one cycle, or with `dryRun` would do. Amounts in paisa, times in epoch ms. */
export interface CloseOutcome {
  cycleId: string
  merchantId: string
  /** `failed`: nothing was done, and the cycle is flagged. */
  kind: 'closed' | 'extended' | 'failed'
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

/** Cycles per transaction. It blocks sales of their merchants, on SQLite all writes, so it must stay short. */
const PAGE = 500

/**
 * Closes every open cycle whose period is over at `asOf` (epoch ms; default: now), a page per transaction, so it can be interrupted
 * and repeated. An error for one cycle is flagged and does not stop the others. Cycles of less than one rupee are extended
 * to the next boundary. With an `actor` each cycle gets an audit row; scheduled closes have none.
 */
export async function closeDueCycles(
  platform: Platform,
  options: CloseOptions = {},
): Promise<CloseOutcome[]> {
  const asOf = options.asOf ?? platform.clock.now()
  const { database } = platform
  const due = await dueCycleIds(database.reader, asOf, options.merchantId ?? null)
  const flagged = await flaggedByRuns(database.reader)
  const work = async (cycleIds: readonly string[]) => {
    const decided = options.dryRun
      ? await decideCloses(
          platform,
          database.reader,
          await findCyclesByIds(database.reader, platform.keys, cycleIds),
          asOf,
        )
      : await database.transaction((tx) =>
          closePage(platform, tx, cycleIds, { asOf, actor: options.actor, flagged }),
        )
    const places = new Map(cycleIds.map((id, place) => [id, place]))
    const outcomes = decided.map((one) => outcomeOf(platform, one, asOf))
    return outcomes.sort((a, b) => (places.get(a.cycleId) ?? 0) - (places.get(b.cycleId) ?? 0))
  }
  const onFailure = async (cycleId: string, error: unknown) => {
    const subject = { subjectType: 'billing_cycle', subjectId: cycleId } as const
    if (!options.dryRun) await flagFailedRun(platform, subject, 'close of a billing cycle', error)
    const cycle = await findCycle(database.reader, cycleId)
    return cycle ? outcomeOf(platform, { cycle, decision: null }, asOf) : null
  }
  return processInBatches(platform, due, PAGE, work, { progress: options.progress, onFailure })
}

async function closePage(
  platform: Platform,
  tx: Tx,
  cycleIds: readonly string[],
  { asOf, actor, flagged }: { asOf: number; actor: string | undefined; flagged: ReadonlySet<string> },
): Promise<DecidedCycle[]> {
  const decided = await closeLocked(platform, tx, await lockCycles(tx, cycleIds), asOf)
  for (const subjectId of cycleIds.filter((id) => flagged.has(id))) {
    const flag = { kind: 'run_failed', subjectType: 'billing_cycle', subjectId } as const
    await closeFlag(platform, tx, flag, 'A later run did it.')
  }
  if (actor !== undefined) {
    const records = decided.map((one) => auditOf(actor, outcomeOf(platform, one, asOf), one.cycle.period_end))
    await recordAudits(platform, tx, records)
  }
  return decided
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

/** A due cycle as it was before, with the decision about it. */
interface DecidedCycle {
  cycle: CycleRow
  decision: Exclude<CloseDecision, { kind: 'not_due' }>
}

/**
 * Closes or extends the cycles that are due at `asOf` (epoch ms) and returns them. The caller has locked all of them, in the order
 * of their merchants. Throws `TamperedRow` and `UnknownKeyError`.
 */
export async function closeLocked(
  platform: Platform,
  tx: Tx,
  cycles: readonly CycleRow[],
  asOf: number,
): Promise<DecidedCycle[]> {
  if (cycles.length === 0) return []
  await lockMerchantCredits(tx, merchantsOf(cycles))
  const decided = await decideCloses(platform, tx, cycles, asOf)
  await applyExtensions(platform, tx, decided, asOf)
  await applyCloses(platform, tx, decided)
  return decided
}

/** The due cycles with their decisions. Expects at most one cycle per merchant, because a second would use the same credit. */
async function decideCloses(
  { keys }: Platform,
  db: Queries,
  cycles: readonly CycleRow[],
  asOf: number,
): Promise<DecidedCycle[]> {
  const credits = await checkedCredits(db, keys, merchantsOf(cycles))
  return cycles.flatMap((cycle) => {
    const decision = decideClose({
      state: cycle.state,
      periodEnd: cycle.period_end,
      asOf,
      commissionTotal: cycle.commission_total,
      feeTotal: cycle.fee_total,
      availableCredit: credits.get(cycle.merchant_id) ?? 0,
    })
    return decision.kind === 'not_due' ? [] : [{ cycle, decision }]
  })
}

function merchantsOf(cycles: readonly CycleRow[]): string[] {
  return [...new Set(cycles.map((cycle) => cycle.merchant_id))]
}

async function applyExtensions(platform: Platform, tx: Tx, decided: readonly DecidedCycle[], asOf: number) {
  const extended = decided.filter(({ decision }) => decision.kind === 'extend').map(({ cycle }) => cycle)
  await changeRows(tx, 'billing_cycles', extended, { period_end: nextBoundary(platform, asOf) })
}

async function applyCloses(platform: Platform, tx: Tx, decided: readonly DecidedCycle[]): Promise<void> {
  const now = platform.clock.now()
  const closed = decided.flatMap(({ cycle, decision }) =>
    decision.kind === 'close' ? [{ cycleId: cycle.id, merchantId: cycle.merchant_id, ...decision }] : [],
  )
  if (closed.length === 0) return
  const changes = new Map(
    closed.map(({ cycleId, creditTotal, amountDue }) => [
      cycleId,
      { state: 'closed' as const, credit_total: creditTotal, amount_due: amountDue, closed_at: now },
    ]),
  )
  const cycles = decided.map(({ cycle }) => cycle).filter(({ id }) => changes.has(id))
  await changeRows(tx, 'billing_cycles', cycles, ({ id }) => changes.get(id) ?? {})
  await writeEntries(platform, tx, closed.map(cycleClosed), now)
  const invoices = closed.map(({ amountDue, ...cycle }) => ({ ...cycle, amount: amountDue }))
  await queueInvoices(platform, tx, invoices)
  await publishEvents(
    platform,
    tx,
    decided.flatMap((one) => closedEvent(one, now)),
  )
  afterCommit(tx, () => {
    for (const { merchantId } of closed) platform.topics.send(userTopic(merchantId))
  })
}

function closedEvent({ cycle, decision }: DecidedCycle, now: number): NewEvent[] {
  if (decision.kind !== 'close') return []
  const { creditTotal: credit_total, amountDue: amount_due } = decision
  const data = wireCycle({ ...cycle, state: 'closed', credit_total, amount_due, closed_at: now })
  return [{ type: 'billing_cycle.closed', accountId: cycle.merchant_id, subjectId: cycle.id, data }]
}

function nextBoundary(platform: Platform, asOf: number): number {
  return boundaryAfter(asOf, platform.config.BILLING_PERIOD, platform.config.BILLING_TIMEZONE)
}

function outcomeOf(
  platform: Platform,
  { cycle, decision }: DecidedCycle | { cycle: CycleRow; decision: null },
  asOf: number,
): CloseOutcome {
  const closing = decision?.kind === 'close'
  return {
    cycleId: cycle.id,
    merchantId: cycle.merchant_id,
    kind: closing ? 'closed' : decision ? 'extended' : 'failed',
    periodStart: cycle.period_start,
    periodEnd: decision?.kind === 'extend' ? nextBoundary(platform, asOf) : cycle.period_end,
    salesCount: cycle.sales_count,
    commissionTotal: cycle.commission_total,
    feeTotal: cycle.fee_total,
    creditTotal: closing ? decision.creditTotal : 0,
    amountDue: closing ? decision.amountDue : 0,
  }
}
