import type { Paisa } from '../../shared/money.ts'
import { accountBalances } from '../ledger/ledger.service.ts'
import type { Queries } from '../platform/database.ts'
import { type CycleRow, findCycles } from './billing.store.ts'
import { type CycleCharge, cycleCharge } from './close-cycle.rule.ts'
import { creditGrantedTo, creditStandings, cycleTotals } from './credits.store.ts'

/** Where a merchant stands; amounts in paisa. */
export interface MerchantAccount {
  /** With its running totals; `null` when nothing has been accepted since the last close. */
  openCycle: CycleRow | null
  /** What the open cycle would charge if it closed now; `null` without one. */
  expected: CycleCharge | null
  /** Granted, and used by no cycle yet. */
  availableCredit: Paisa
  /** Of closed cycles that are not paid yet, as the journal has it. */
  receivable: Paisa
}

export async function merchantAccount(db: Queries, merchantId: string): Promise<MerchantAccount> {
  const [openCycle = null] = await findCycles(db, { merchantId, state: 'open', limit: 1, before: null })
  const granted = await creditGrantedTo(db, merchantId)
  const { creditUsed } = await cycleTotals(db, merchantId)
  const accounts = await accountBalances(db, merchantId)
  const availableCredit = granted - creditUsed
  return {
    openCycle,
    expected: openCycle && expectedCharge(openCycle, availableCredit),
    availableCredit,
    receivable: accounts.find(({ account }) => account === 'merchant_receivable')?.balance ?? 0,
  }
}

/**
 * These cycles as callers see them: `credit_total` and `amount_due` of an open one are what it would charge if it
 * closed now.
 */
export async function withExpectedCharges(db: Queries, cycles: readonly CycleRow[]): Promise<CycleRow[]> {
  const open = cycles.filter(({ state }) => state === 'open')
  if (open.length === 0) return [...cycles]
  const standings = await creditStandings(
    db,
    open.map(({ merchant_id }) => merchant_id),
  )
  return cycles.map((cycle) => {
    if (cycle.state !== 'open') return cycle
    const { granted, creditUsed } = standings.get(cycle.merchant_id) ?? { granted: 0, creditUsed: 0 }
    const charge = expectedCharge(cycle, granted - creditUsed)
    return { ...cycle, credit_total: charge.creditUsed, amount_due: charge.amountDue }
  })
}

function expectedCharge(cycle: CycleRow, availableCredit: Paisa): CycleCharge {
  return cycleCharge({
    commissionTotal: cycle.commission_total,
    feeTotal: cycle.fee_total,
    availableCredit,
  })
}
