import type { Paisa } from '../../shared/money.ts'
import { type CycleRow, cycleShares, getCycle } from '../billing/billing.service.ts'
import { sharePayouts } from '../payouts/share-payouts.service.ts'
import type { Queries } from '../platform/database.ts'
import { listAttempts } from '../processor/attempts.service.ts'
import type { SaleRow } from './sales.store.ts'

/** What came of a sale. Amounts in paisa, times in epoch ms. */
export interface SaleOutcome {
  /** `null`: it was rejected, so nothing is billed. */
  cycle: SaleCycle | null
  /** How the creator's share of that cycle went out, failed tries included, oldest first. */
  payouts: SalePayout[]
}

export interface SaleCycle
  extends Pick<
    CycleRow,
    | 'id'
    | 'state'
    | 'period_start'
    | 'period_end'
    | 'amount_due'
    | 'credit_total'
    | 'processor_invoice_id'
    | 'processor_payment_reference'
    | 'closed_at'
    | 'charged_at'
  > {
  /** What the invoice's latest call came to, as long as the processor has not made it. */
  invoiceProblem: string | null
  /** The creator's commission in the whole cycle, which is what a payout carries. */
  creatorShare: Paisa
  releasedAt: number | null
}

export interface SalePayout {
  id: string
  state: 'pending' | 'submitted' | 'paid' | 'failed'
  /** Of the whole payout, which other cycles may have a part in. */
  amount: Paisa
  processorPayoutId: string | null
  failureReason: string | null
  createdAt: number
  settledAt: number | null
}

type Billed = Pick<SaleRow, 'billing_cycle_id' | 'creator_id'>

export async function outcomeOfSale(db: Queries, sale: Billed): Promise<SaleOutcome> {
  return { cycle: await cycleOfSale(db, sale), payouts: await payoutsOfSale(db, sale) }
}

async function cycleOfSale(db: Queries, sale: Billed): Promise<SaleCycle | null> {
  const cycle = sale.billing_cycle_id ? await getCycle(db, sale.billing_cycle_id) : undefined
  if (!cycle) return null
  const attempt = (await listAttempts(db, 'invoice', cycle.id)).at(-1)
  const share = (await cycleShares(db, cycle.id)).find((row) => row.creator_id === sale.creator_id)
  return {
    ...cycle,
    invoiceProblem: attempt && attempt.state !== 'created' ? attempt.detail : null,
    creatorShare: share?.commission ?? 0,
    releasedAt: share?.released_at ?? null,
  }
}

async function payoutsOfSale(db: Queries, sale: Billed): Promise<SalePayout[]> {
  if (sale.billing_cycle_id === null || sale.creator_id === null) return []
  return (await sharePayouts(db, sale.billing_cycle_id, sale.creator_id)).map((payout) => ({
    id: payout.id,
    state: payout.state,
    amount: payout.amount,
    processorPayoutId: payout.processor_payout_id,
    failureReason: payout.failure_reason,
    createdAt: payout.created_at,
    settledAt: payout.settled_at,
  }))
}
