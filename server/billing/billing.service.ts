import { displayMoney, type Paisa } from '../../shared/money.ts'
import type { BillingCycleWire } from '../../shared/schemas/billing.ts'
import { accountBalances } from '../ledger/ledger.service.ts'
import type { Queries, Tx } from '../platform/database/database.ts'
import { type KeysetScan, pageItems } from '../platform/database/keyset-scan.ts'
import { type NewRow, stateOf, TamperedRow } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import {
  addToShares,
  addToTotals,
  type CycleAddition,
  type CycleFilter,
  type CycleRow,
  type CycleShare,
  countCycles,
  findCycles,
  insertCycles,
  lastPeriodEnds,
  lockOpenCycles,
} from './billing.store.ts'
import { nextCyclePeriod } from './billing-period.rule.ts'
import { wireCycle } from './billing-wire.ts'
import { type CycleCharge, cycleCharge, isRoomFor, LARGEST_CYCLE } from './close-cycle.rule.ts'
import { closeLocked } from './close-cycle.service.ts'
import { availableCredits } from './credits.store.ts'

export {
  type CycleRow,
  cyclePeriodsOf,
  findCycle as getCycle,
  type ShareRow,
  sharesOf as cycleShares,
} from './billing.store.ts'

/** An accepted sale to add to its merchant's open cycle. Amounts in paisa. */
export interface SaleToBill {
  saleId: string
  merchantId: string
  creatorId: string
  commission: Paisa
  platformFee: Paisa
}

/** The sales would take a cycle beyond `LARGEST_CYCLE`. */
export class CycleFull extends Error {
  constructor(cycleId: string) {
    super(
      `billing cycle ${cycleId} would exceed ${displayMoney(LARGEST_CYCLE)}, the most that a cycle holds; retry the event when it is closed`,
    )
    this.name = 'CycleFull'
  }
}

/**
 * Adds accepted sales to their merchants' open cycles and returns the cycle ids by merchant id. A cycle whose period is over is
 * closed first, so a late close job changes nothing; a missing cycle is opened. `acceptedAt` (epoch ms) is the time of the sales. Runs
 * in the transaction that records them. Throws `CycleFull` if a cycle cannot hold its sales.
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
  const sums = [...byMerchant].map(([merchantId, merchantSales]) => {
    const cycle = cycles.get(merchantId)
    if (!cycle) throw new Error(`no open cycle for merchant ${merchantId}`)
    const sum = sumsOf(cycle.id, merchantSales)
    if (!isRoomFor(cycle, sum.addition.commission + sum.addition.fee)) throw new CycleFull(cycle.id)
    return sum
  })
  const additions = sums.map(({ addition }) => addition)
  if ((await addToTotals(tx, additions)) < sums.length) throw new Error('a cycle is no longer open')
  const shares = sums.flatMap((sum) => sum.shares)
  await addToShares(tx, shares)
  return new Map([...cycles].map(([merchantId, { id }]) => [merchantId, id]))
}

/** What these sales add to their cycle and to each creator's share of it. */
function sumsOf(cycleId: string, sales: readonly SaleToBill[]) {
  const addition: CycleAddition = { cycleId, sales: 0, commission: 0, fee: 0 }
  const shares = new Map<string, CycleShare>()
  for (const { creatorId, commission, platformFee } of sales) {
    addition.sales += 1
    addition.commission += commission
    addition.fee += platformFee
    const none = { billing_cycle_id: cycleId, creator_id: creatorId, sales_count: 0, commission: 0 }
    const share = shares.get(creatorId) ?? none
    share.sales_count += 1
    share.commission += commission
    shares.set(creatorId, share)
  }
  return { addition, shares: [...shares.values()] }
}

/** An open cycle for each merchant whose period is not over at `now` (epoch ms). */
async function openCyclesFor(platform: Platform, tx: Tx, merchantIds: string[], now: number) {
  const cycles = await lockOpenCycles(tx, merchantIds)
  const open = new Map(cycles.map((cycle) => [cycle.merchant_id, cycle]))
  const over = cycles.filter((cycle) => now >= cycle.period_end)
  for (const { cycle, decision } of await closeLocked(platform, tx, over, now)) {
    if (decision.kind === 'close') open.delete(cycle.merchant_id)
  }
  const missing = merchantIds.filter((id) => !open.has(id))
  if (missing.length === 0) return open
  const formerEnds = await lastPeriodEnds(tx, missing)
  const fresh = missing.map((merchantId): NewRow<'billing_cycles'> => {
    const { start, end } = nextCyclePeriod({
      formerPeriodEnd: formerEnds.get(merchantId) ?? null,
      acceptedAt: now,
      length: platform.config.BILLING_PERIOD,
      zone: platform.config.BILLING_TIMEZONE,
    })
    const totals = { sales_count: 0, commission_total: 0, fee_total: 0, credit_total: 0, amount_due: 0 }
    const period = { period_start: start, period_end: end, created_at: now }
    return { id: platform.ids.next(), merchant_id: merchantId, state: 'open', ...totals, ...period }
  })
  for (const cycle of await insertCycles(tx, fresh)) open.set(cycle.merchant_id, cycle)
  return open
}

/** Cycles of one merchant or, for the operator, of all; newest first. Open ones show what they would charge now. */
export async function listCycles(platform: Platform, filter: CycleFilter): Promise<CycleRow[]> {
  const { reader } = platform.database
  return shownCycles(platform, reader, await findCycles(reader, filter))
}

/**
 * Cycles as they are shown: open ones with `credit_total` and `amount_due` as if they closed now, and none that was changed outside of the
 * service with a `payment_url`, which could lead elsewhere. Those are flagged.
 */
export async function shownCycles(platform: Platform, db: Queries, rows: readonly CycleRow[]) {
  const cycles = rows.map((cycle) => withCheckedLink(platform, cycle))
  for (const cycle of rows.filter((_, index) => cycles[index] !== rows[index]))
    await platform.reportTampered(new TamperedRow('billing_cycles', cycle))
  const open = cycles.filter(({ state }) => state === 'open')
  if (open.length === 0) return cycles
  const merchantIds = open.map(({ merchant_id }) => merchant_id)
  const credits = await availableCredits(db, merchantIds)
  return cycles.map((cycle) => {
    if (cycle.state !== 'open') return cycle
    const { creditTotal, amountDue } = expectedCharge(cycle, credits.get(cycle.merchant_id) ?? 0)
    return { ...cycle, credit_total: creditTotal, amount_due: amountDue }
  })
}

/** The cycle; without its `payment_url` unless it is as the service wrote it. */
export function withCheckedLink({ keys }: Platform, cycle: CycleRow): CycleRow {
  return stateOf(keys, 'billing_cycles', cycle) === 'holds' ? cycle : { ...cycle, payment_url: null }
}

/** What the cycle would charge now; nothing for totals beyond 2^53, whose close fails and is flagged. */
function expectedCharge(cycle: CycleRow, availableCredit: Paisa): CycleCharge {
  if (!Number.isSafeInteger(Number(cycle.commission_total) + Number(cycle.fee_total)))
    return { creditTotal: 0, amountDue: 0 }
  return cycleCharge({
    commissionTotal: cycle.commission_total,
    feeTotal: cycle.fee_total,
    availableCredit,
  })
}

/**
 * A merchant's billing position, in paisa: the open cycle with its running totals (`null` when no sale has been accepted since the last
 * close) and what it would charge now, the credit that no cycle has used, and what is due for closed cycles, from the journal.
 */
export async function merchantAccount(db: Queries, merchantId: string) {
  const [openCycle = null] = await findCycles(db, { merchantId, state: 'open', limit: 1, before: null })
  const availableCredit = (await availableCredits(db, [merchantId])).get(merchantId) ?? 0
  const accounts = await accountBalances(db, merchantId)
  return {
    openCycle,
    expected: openCycle && expectedCharge(openCycle, availableCredit),
    availableCredit,
    receivable: accounts.find(({ account }) => account === 'merchant_receivable')?.balance ?? 0,
  }
}

/** Cycles for an export: of one merchant, or with `null` of all, each with its merchant. */
export function scanCycles(
  platform: Platform,
  merchantId: string | null,
): KeysetScan<BillingCycleWire & { merchant_id?: string }> {
  return {
    count: (step) => countCycles(platform.database.reader, merchantId, step),
    async read(step) {
      const filter = { merchantId, state: null, before: step.below, limit: step.size }
      return pageItems(step, await listCycles(platform, filter), (row) => ({
        ...wireCycle(platform, row),
        ...(merchantId === null && { merchant_id: row.merchant_id }),
      }))
    },
  }
}
