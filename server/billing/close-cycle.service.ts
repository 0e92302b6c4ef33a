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
import { type CloseDecision, type CycleCharge, decideClose } from './close-cycle.rule.ts'
import { checkedCredits, lockMerchantCredits } from './credits.store.ts'
import { queueInvoices } from './invoices.service.ts'

/** What a close did to one cycle, or with `dryRun` would do. Amounts in paisa, times in epoch ms. */
export type CloseOutcome = ReturnType<typeof outcomeOf>

export interface CloseOptions {
  asOf?: number
  merchantId?: string
  dryRun?: boolean
  actor?: string
  progress?: (at: number, all: number) => void
}

/** Cycles per transaction. With fewer, its fixed cost outweighs their work; with more, sales of their merchants, on SQLite all writes, wait long. */
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
  const preview = async (cycleIds: readonly string[]) => {
    const cycles = await findCyclesByIds(database.reader, platform.keys, cycleIds)
    return decideCloses(platform, database.reader, cycles, asOf)
  }
  const work = async (cycleIds: readonly string[]) => {
    const page = { asOf, actor: options.actor, flagged }
    const decided = options.dryRun
      ? await preview(cycleIds)
      : await database.transaction((tx) => closePage(platform, tx, cycleIds, page))
    const places = new Map(cycleIds.map((id, place) => [id, place]))
    const outcomes = decided.map(({ cycle, decision }) => outcomeOf(platform, cycle, decision, asOf))
    return outcomes.sort((a, b) => (places.get(a.cycleId) ?? 0) - (places.get(b.cycleId) ?? 0))
  }
  const onFailure = async (cycleId: string, error: unknown) => {
    const subject = { subjectType: 'billing_cycle', subjectId: cycleId } as const
    if (!options.dryRun) await flagFailedRun(platform, subject, 'close of a billing cycle', error)
    const cycle = await findCycle(database.reader, cycleId)
    return cycle ? outcomeOf(platform, cycle, null, asOf) : null
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
  if (actor === undefined) return decided
  const records = decided.map(({ cycle, decision }): AuditRecord => {
    const about = {
      actor,
      action: 'billing.close',
      subjectType: 'billing_cycle',
      subjectId: cycle.id,
    } as const
    const before = { state: 'open', period_end: cycle.period_end }
    const after =
      decision.kind === 'close'
        ? { state: 'closed', credit_total: decision.creditTotal, amount_due: decision.amountDue }
        : { state: 'open', period_end: nextBoundary(platform, asOf) }
    return { ...about, before, after }
  })
  await recordAudits(platform, tx, records)
  return decided
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
export async function closeLocked(platform: Platform, tx: Tx, cycles: readonly CycleRow[], asOf: number) {
  if (cycles.length === 0) return []
  await lockMerchantCredits(tx, merchantsOf(cycles))
  const decided = await decideCloses(platform, tx, cycles, asOf)
  const extended = decided.flatMap(({ cycle, decision }) => (decision.kind === 'extend' ? [cycle] : []))
  await changeRows(tx, 'billing_cycles', extended, { period_end: nextBoundary(platform, asOf) })
  await applyCloses(platform, tx, decided)
  return decided
}

/** The due cycles with their decisions. Expects at most one cycle per merchant, because a second would use the same credit. */
async function decideCloses({ keys }: Platform, db: Queries, cycles: readonly CycleRow[], asOf: number) {
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

async function applyCloses(platform: Platform, tx: Tx, decided: readonly DecidedCycle[]): Promise<void> {
  const now = platform.clock.now()
  const charges = new Map<string, CycleCharge>()
  for (const { cycle, decision } of decided) if (decision.kind === 'close') charges.set(cycle.id, decision)
  if (charges.size === 0) return
  const due = decided.flatMap(({ cycle }) => (charges.has(cycle.id) ? [cycle] : []))
  const closed = await changeRows(tx, 'billing_cycles', due, ({ id }) => {
    const { creditTotal = 0, amountDue = 0 } = charges.get(id) ?? {}
    return { state: 'closed' as const, credit_total: creditTotal, amount_due: amountDue, closed_at: now }
  })
  const entries = closed.map(({ id: cycleId, merchant_id: merchantId, amount_due: amountDue }) =>
    cycleClosed({ cycleId, merchantId, amountDue }),
  )
  await writeEntries(platform, tx, entries, now)
  await queueInvoices(platform, tx, closed)
  const events = closed.map((cycle): NewEvent => {
    const { id: subjectId, merchant_id: accountId } = cycle
    return { type: 'billing_cycle.closed', accountId, subjectId, data: wireCycle(platform, cycle) }
  })
  await publishEvents(platform, tx, events)
  afterCommit(tx, () => {
    for (const { merchant_id } of closed) platform.topics.send(userTopic(merchant_id))
  })
}

function nextBoundary(platform: Platform, asOf: number): number {
  return boundaryAfter(asOf, platform.config.BILLING_PERIOD, platform.config.BILLING_TIMEZONE)
}

/** Without a decision the close failed: nothing was done, and the cycle is flagged. */
function outcomeOf(
  platform: Platform,
  cycle: CycleRow,
  decision: DecidedCycle['decision'] | null,
  asOf: number,
) {
  const closing = decision?.kind === 'close'
  const kind: 'closed' | 'extended' | 'failed' = closing ? 'closed' : decision ? 'extended' : 'failed'
  return {
    cycleId: cycle.id,
    merchantId: cycle.merchant_id,
    kind,
    periodStart: cycle.period_start,
    periodEnd: decision?.kind === 'extend' ? nextBoundary(platform, asOf) : cycle.period_end,
    salesCount: cycle.sales_count,
    commissionTotal: cycle.commission_total,
    feeTotal: cycle.fee_total,
    creditTotal: closing ? decision.creditTotal : 0,
    amountDue: closing ? decision.amountDue : 0,
  }
}
