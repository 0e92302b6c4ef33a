import { formatMoney, type Paisa } from '../../shared/money.ts'
import { openFlagAbout, resolvedFlagCount } from '../moderation/flag-queue.service.ts'
import { raiseFlag } from '../moderation/flags.service.ts'
import type { Tx } from '../platform/database.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { findSale, type SaleWithSlug } from './sales.store.ts'

export interface CreditRequest {
  saleId: string
  /** Paisa, above zero. */
  amount: Paisa
  reason: string
}

/** A request that waits for an operator; `createdAt` in epoch ms. */
export interface PendingCreditRequest extends CreditRequest {
  createdAt: number
}

const KIND = 'credit_request'

/**
 * Puts a merchant's wish for a credit on one of their sales before an operator, who grants or declines it; moves no money. The same
 * wish again changes nothing. Refuses with `not_found`, and with `conflict` for a rejected sale (nothing was billed), for more
 * than was billed, and while another wish about this sale waits. What has been granted already is reckoned with at the grant,
 * since credits are a merchant's and not a sale's.
 */
export async function requestCredit(
  platform: Platform,
  merchantId: string,
  request: CreditRequest,
): Promise<PendingCreditRequest> {
  return platform.database.transaction(async (tx) => {
    const sale = await findSale(tx, { merchantId }, request.saleId)
    if (!sale) throw new Refusal('not_found', 'There is no such sale.')
    refuseMoreThanBilled(sale, request.amount)
    const subject = { kind: KIND, subjectType: 'sale', subjectId: sale.id } as const
    const waiting = await openFlagAbout(tx, subject)
    if (waiting) return sameRequest(request, waiting)
    await raiseFlag(platform, tx, {
      ...subject,
      summary: `A merchant asks for a credit of Rs ${formatMoney(request.amount)} on a sale.`,
      evidence: await evidenceOf(tx, sale, request),
    })
    return { ...request, createdAt: platform.clock.now() }
  })
}

function refuseMoreThanBilled(sale: SaleWithSlug, amount: Paisa): void {
  if (sale.acceptance_status === 'rejected') {
    throw new Refusal('conflict', 'This sale was rejected: nothing was billed for it.')
  }
  const billed = sale.commission + sale.platform_fee
  if (amount <= billed) return
  throw new Refusal('conflict', `At most ${formatMoney(billed)} was billed for this sale.`)
}

async function evidenceOf(tx: Tx, sale: SaleWithSlug, request: CreditRequest) {
  return {
    merchant_id: sale.merchant_id,
    amount: formatMoney(request.amount),
    reason: request.reason,
    billed: formatMoney(sale.commission + sale.platform_fee),
    order_id: sale.order_id,
    order_name: sale.order_name,
    billing_cycle_id: sale.billing_cycle_id,
    earlier_requests: await resolvedFlagCount(tx, KIND, sale.id),
  }
}

function sameRequest(
  request: CreditRequest,
  waiting: { evidence: string; created_at: number },
): PendingCreditRequest {
  const { amount, reason } = JSON.parse(waiting.evidence) as { amount: string; reason: string }
  if (amount === formatMoney(request.amount) && reason === request.reason) {
    return { ...request, createdAt: waiting.created_at }
  }
  throw new Refusal('conflict', `A request for ${amount} on this sale waits for its decision already.`)
}
