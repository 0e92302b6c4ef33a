import type { Paisa } from '../../shared/money.ts'
import type { Queries, Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import {
  addToShares,
  addToTotals,
  type CycleAddition,
  type CycleFilter,
  type CycleRow,
  type CycleShare,
  findCycle,
  findCycles,
  insertCycles,
  lastPeriodEnds,
  lockOpenCycles,
  sharesOf,
} from './billing.store.ts'
import { nextCyclePeriod } from './billing-period.rule.ts'
import { closeLocked } from './close.service.ts'
import { withExpectedCharges } from './merchant-account.service.ts'

export type { CycleRow, ShareRow } from './billing.store.ts'
export { type CloseOptions, type CloseOutcome, closeDueCycles } from './close.service.ts'

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
 * dated with. Answers the cycle's id by merchant id. Runs in the transaction that records the sales.
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
    const cycleId = cycles.get(merchantId)
    if (!cycleId) throw new Error(`no open cycle for merchant ${merchantId}`)
    return sumsOf(cycleId, merchantSales)
  })
  const open = await addToTotals(
    tx,
    sums.map(({ addition }) => addition),
  )
  if (open < sums.length) throw new Error('a cycle is not open any more')
  await addToShares(
    tx,
    sums.flatMap(({ shares }) => shares),
  )
  return cycles
}

/** What these sales add to their cycle, and to each creator's share of it. */
function sumsOf(cycleId: string, sales: readonly SaleToBill[]) {
  const addition: CycleAddition = { cycleId, sales: 0, commission: 0, fee: 0 }
  const shares = new Map<string, CycleShare>()
  for (const { creatorId, commission, platformFee } of sales) {
    addition.sales += 1
    addition.commission += commission
    addition.fee += platformFee
    const share = shares.get(creatorId)
    if (share) {
      share.sales_count += 1
      share.commission += commission
    } else {
      shares.set(creatorId, {
        ...{ billing_cycle_id: cycleId, creator_id: creatorId },
        ...{ sales_count: 1, commission },
      })
    }
  }
  return { addition, shares: [...shares.values()] }
}

/** An open cycle, whose period is not over at `now` (epoch ms), for each merchant. */
async function openCyclesFor(
  platform: Platform,
  tx: Tx,
  merchantIds: string[],
  now: number,
): Promise<Map<string, string>> {
  const cycles = await lockOpenCycles(tx, platform.database.dialect, merchantIds)
  const open = new Map(cycles.map((cycle) => [cycle.merchant_id, cycle.id]))
  const over = cycles.filter((cycle) => now >= cycle.period_end)
  for (const { cycle, decision } of await closeLocked(platform, tx, over, now)) {
    if (decision.kind === 'close') open.delete(cycle.merchant_id)
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

/**
 * Cycles, newest first; of one merchant, or of all for the operator. An open one shows what it would charge if it
 * closed now.
 */
export async function listCycles(platform: Platform, filter: CycleFilter): Promise<CycleRow[]> {
  const { reader } = platform.database
  return withExpectedCharges(reader, await findCycles(reader, filter))
}

export function getCycle(db: Queries, cycleId: string): Promise<CycleRow | undefined> {
  return findCycle(db, cycleId)
}

/** What each creator earned in a cycle. */
export function cycleShares(db: Queries, cycleId: string) {
  return sharesOf(db, cycleId)
}
