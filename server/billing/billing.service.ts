import type { Paisa } from '../../shared/money.ts'
import { cycleClosed } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { recordAudit } from '../moderation/audit.service.ts'
import { afterCommit, type Queries, type Tx } from '../platform/database.ts'
import { eachOnItsOwn } from '../platform/each-on-its-own.ts'
import type { Platform } from '../platform/platform.ts'
import { newsOf } from '../platform/signals.ts'
import { queueAttempt } from '../processor/attempts.service.ts'
import { displayNamesOf, emailsOf } from '../users/users.service.ts'
import {
  addToShares,
  addToTotals,
  type CycleFilter,
  type CycleRow,
  dueCycleIds,
  findCycle,
  findCycles,
  insertCycles,
  lastPeriodEnds,
  lockCycle,
  lockOpenCycles,
  moveCycle,
  sharesOf,
} from './billing.store.ts'
import { boundaryAfter, nextCyclePeriod } from './billing-period.rule.ts'
import { decideClose } from './close-cycle.rule.ts'
import { creditGrantedTo, cycleTotals, lockMerchantCredit } from './credits.store.ts'

export type { CycleRow, ShareRow } from './billing.store.ts'

/** An accepted sale on its way into its merchant's open cycle; amounts in paisa. */
export interface SaleToBill {
  saleId: string
  merchantId: string
  creatorId: string
  commission: Paisa
  platformFee: Paisa
}

/**
 * Puts accepted sales into their merchants' open cycles, closing on the way a cycle whose period is over (so a late
 * job changes nothing) and opening one where there is none. `acceptedAt` (epoch ms) is the moment that the sales are
 * dated with. Answers the cycle's id by sale id. Runs in the transaction that records the sales.
 */
export async function addSalesToCycles(
  platform: Platform,
  tx: Tx,
  sales: readonly SaleToBill[],
  acceptedAt: number,
): Promise<Map<string, string>> {
  if (sales.length === 0) return new Map()
  const byMerchant = Map.groupBy(sales, (sale) => sale.merchantId)
  const cycles = await openCyclesFor(platform, tx, [...byMerchant.keys()].sort(), acceptedAt)
  const cycleOf = new Map<string, string>()
  const shares = new Map<string, { cycleId: string; creatorId: string; sales: number; commission: Paisa }>()
  for (const [merchantId, merchantSales] of byMerchant) {
    const cycleId = cycles.get(merchantId)
    if (!cycleId) throw new Error(`no open cycle for merchant ${merchantId}`)
    const addition = { cycleId, sales: 0, commission: 0, fee: 0 }
    for (const sale of merchantSales) {
      cycleOf.set(sale.saleId, cycleId)
      addition.sales += 1
      addition.commission += sale.commission
      addition.fee += sale.platformFee
      const key = `${cycleId}\n${sale.creatorId}`
      const share = shares.get(key) ?? { cycleId, creatorId: sale.creatorId, sales: 0, commission: 0 }
      share.sales += 1
      share.commission += sale.commission
      shares.set(key, share)
    }
    if (!(await addToTotals(tx, addition))) throw new Error(`cycle ${cycleId} is not open any more`)
  }
  await addToShares(
    tx,
    [...shares.values()].map((share) => ({
      billing_cycle_id: share.cycleId,
      creator_id: share.creatorId,
      sales_count: share.sales,
      commission: share.commission,
    })),
  )
  return cycleOf
}

/** An open cycle, whose period is not over at `now` (epoch ms), for each merchant. */
async function openCyclesFor(
  platform: Platform,
  tx: Tx,
  merchantIds: string[],
  now: number,
): Promise<Map<string, string>> {
  const open = new Map<string, string>()
  for (const cycle of await lockOpenCycles(tx, platform.database.dialect, merchantIds)) {
    const outcome = await closeIfDue(platform, tx, cycle, now)
    if (outcome !== 'closed') open.set(cycle.merchant_id, cycle.id)
  }
  const missing = merchantIds.filter((id) => !open.has(id))
  if (missing.length === 0) return open
  const formerEnds = await lastPeriodEnds(tx, missing)
  const fresh = missing.map((merchantId) =>
    newCycle(platform, merchantId, formerEnds.get(merchantId) ?? null, now),
  )
  await insertCycles(tx, fresh)
  for (const cycle of fresh) open.set(cycle.merchant_id, cycle.id)
  return open
}

function newCycle(
  platform: Platform,
  merchantId: string,
  formerPeriodEnd: number | null,
  now: number,
): CycleRow {
  const period = nextCyclePeriod({
    formerPeriodEnd,
    acceptedAt: now,
    length: platform.config.BILLING_PERIOD,
    zone: platform.config.BILLING_TIMEZONE,
  })
  return {
    id: platform.ids.next(),
    merchant_id: merchantId,
    state: 'open',
    period_start: period.start,
    period_end: period.end,
    sales_count: 0,
    commission_total: 0,
    fee_total: 0,
    credit_total: 0,
    amount_due: 0,
    processor_invoice_id: null,
    processor_payment_reference: null,
    payment_url: null,
    created_at: now,
    closed_at: null,
    charged_at: null,
  }
}

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
 * Closes every open cycle whose period is over at `asOf` (epoch ms; now unless given), each in a transaction of its own, so that it can be
 * interrupted and run again; one that fails keeps no other from closing, and its error is thrown at the end. Cycles of
 * less than one rupee are extended to the next boundary instead. With an `actor` each gets an audit row; the schedule
 * has none.
 */
export async function closeDueCycles(
  platform: Platform,
  options: CloseOptions = {},
): Promise<CloseOutcome[]> {
  const asOf = options.asOf ?? platform.clock.now()
  const due = await dueCycleIds(platform.database.reader, asOf, options.merchantId ?? null)
  const work = (cycleId: string) =>
    options.dryRun
      ? previewClose(platform, platform.database.reader, cycleId, asOf)
      : platform.database.transaction((tx) => closeOne(platform, tx, cycleId, asOf, options.actor))
  return eachOnItsOwn(platform, due, work, options.progress)
}

async function previewClose(platform: Platform, db: Queries, cycleId: string, asOf: number) {
  const cycle = await findCycle(db, cycleId)
  if (!cycle) return null
  const decision = await closeDecision(db, cycle, asOf)
  return decision.kind === 'not_due' ? null : outcomeOf(platform, cycle, decision, asOf)
}

async function closeOne(
  platform: Platform,
  tx: Tx,
  cycleId: string,
  asOf: number,
  actor: string | undefined,
) {
  const cycle = await lockCycle(tx, platform.database.dialect, cycleId)
  if (!cycle) return null
  await lockMerchantCredit(tx, platform.database.dialect, cycle.merchant_id)
  const decision = await closeDecision(tx, cycle, asOf)
  if (decision.kind === 'not_due') return null
  await applyClose(platform, tx, cycle, decision, asOf)
  const outcome = outcomeOf(platform, cycle, decision, asOf)
  if (actor !== undefined) await noteClose(platform, tx, actor, outcome, cycle.period_end)
  return outcome
}

function noteClose(
  platform: Platform,
  tx: Tx,
  actor: string,
  outcome: CloseOutcome,
  formerEnd: number,
): Promise<void> {
  const after =
    outcome.kind === 'closed'
      ? { state: 'closed', credit_total: outcome.creditTotal, amount_due: outcome.amountDue }
      : { state: 'open', period_end: outcome.periodEnd }
  return recordAudit(platform, tx, {
    actor,
    action: 'billing.close',
    subjectType: 'billing_cycle',
    subjectId: outcome.cycleId,
    reason: null,
    before: { state: 'open', period_end: formerEnd },
    after,
  })
}

async function closeIfDue(
  platform: Platform,
  tx: Tx,
  cycle: CycleRow,
  asOf: number,
): Promise<'closed' | 'open'> {
  if (asOf < cycle.period_end) return 'open'
  await lockMerchantCredit(tx, platform.database.dialect, cycle.merchant_id)
  const decision = await closeDecision(tx, cycle, asOf)
  if (decision.kind === 'not_due') return 'open'
  await applyClose(platform, tx, cycle, decision, asOf)
  return decision.kind === 'close' ? 'closed' : 'open'
}

type Due = Exclude<ReturnType<typeof decideClose>, { kind: 'not_due' }>

async function closeDecision(db: Queries, cycle: CycleRow, asOf: number) {
  const granted = await creditGrantedTo(db, cycle.merchant_id)
  const { creditUsed } = await cycleTotals(db, cycle.merchant_id)
  return decideClose({
    state: cycle.state,
    periodEnd: cycle.period_end,
    asOf,
    commissionTotal: cycle.commission_total,
    feeTotal: cycle.fee_total,
    availableCredit: granted - creditUsed,
  })
}

function nextBoundary(platform: Platform, asOf: number): number {
  return boundaryAfter(asOf, platform.config.BILLING_PERIOD, platform.config.BILLING_TIMEZONE)
}

async function applyClose(
  platform: Platform,
  tx: Tx,
  cycle: CycleRow,
  decision: Due,
  asOf: number,
): Promise<void> {
  const now = platform.clock.now()
  const change =
    decision.kind === 'extend'
      ? { period_end: nextBoundary(platform, asOf) }
      : {
          state: 'closed' as const,
          credit_total: decision.creditUsed,
          amount_due: decision.amountDue,
          closed_at: now,
        }
  if (!(await moveCycle(tx, cycle.id, 'open', change)))
    throw new Error(`cycle ${cycle.id} is not open any more`)
  if (decision.kind === 'extend') return
  await writeEntries(
    platform,
    tx,
    [cycleClosed({ cycleId: cycle.id, merchantId: cycle.merchant_id, amountDue: decision.amountDue })],
    now,
  )
  await queueInvoice(platform, tx, cycle.id, cycle.merchant_id, decision.amountDue)
  afterCommit(tx, () => platform.signals.send(newsOf(cycle.merchant_id)))
}

/** Has a cycle's invoice asked for, of its merchant as named now; answers the attempt's id. */
export async function queueInvoice(
  platform: Platform,
  tx: Tx,
  cycleId: string,
  merchantId: string,
  amount: Paisa,
  lookUpFirst = false,
): Promise<string> {
  const [emails, names] = [await emailsOf(tx, [merchantId]), await displayNamesOf(tx, [merchantId])]
  return queueAttempt(platform, tx, {
    kind: 'invoice',
    subjectId: cycleId,
    amount,
    lookUpFirst,
    request: {
      customer: { id: merchantId, email: emails.get(merchantId) ?? '', name: names.get(merchantId) ?? '' },
    },
  })
}

function outcomeOf(platform: Platform, cycle: CycleRow, decision: Due, asOf: number): CloseOutcome {
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

/** Cycles, newest first; of one merchant, or of all for the operator. */
export function listCycles(platform: Platform, filter: CycleFilter): Promise<CycleRow[]> {
  return findCycles(platform.database.reader, filter)
}

export function getCycle(db: Queries, cycleId: string): Promise<CycleRow | undefined> {
  return findCycle(db, cycleId)
}

/** What each creator earned in a cycle. */
export function cycleShares(db: Queries, cycleId: string) {
  return sharesOf(db, cycleId)
}
