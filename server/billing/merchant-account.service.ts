import type { Paisa } from '../../shared/money.ts'
import { accountBalances } from '../ledger/ledger.service.ts'
import type { Queries } from '../platform/database.ts'
import { type CycleRow, findCycles } from './billing.store.ts'
import { decideClose } from './close-cycle.rule.ts'
import { creditGrantedTo, cycleTotals } from './credits.store.ts'

/** Where a merchant stands; amounts in paisa. */
export interface MerchantAccount {
  /** With its running totals; `null` when nothing has been accepted since the last close. */
  openCycle: CycleRow | null
  /** What a close at the end of the period would make of the open cycle as it is; `null` when it would be extended. */
  expected: { creditUsed: Paisa; amountDue: Paisa } | null
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
    expected: openCycle && expectedClose(openCycle, availableCredit),
    availableCredit,
    receivable: accounts.find(({ account }) => account === 'merchant_receivable')?.balance ?? 0,
  }
}

function expectedClose(cycle: CycleRow, availableCredit: Paisa): MerchantAccount['expected'] {
  const decision = decideClose({
    state: cycle.state,
    periodEnd: cycle.period_end,
    asOf: cycle.period_end,
    commissionTotal: cycle.commission_total,
    feeTotal: cycle.fee_total,
    availableCredit,
  })
  return decision.kind === 'close' ? { creditUsed: decision.creditUsed, amountDue: decision.amountDue } : null
}
