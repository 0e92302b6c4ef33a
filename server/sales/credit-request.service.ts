import { formatMoney, type Paisa, parseMoney } from '../../shared/money.ts'
import { countFlags, openFlagAbout, raiseFlag } from '../flags/flags.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { advisoryLock, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { checkQuota } from '../users/users.service.ts'
import { findSale, type SaleWithSlug } from './sales.store.ts'

export interface CreditRequest {
  saleId: string
  /** Paisa, above zero. */
  amount: Paisa
  reason: string
}

/** An open request; `createdAt` in epoch ms. */
export interface PendingCreditRequest extends CreditRequest {
  /** The flag that an operator resolves. */
  flagId: string
  createdAt: number
}

const KIND = 'credit_request'
export const MAX_OPEN_REQUESTS = 50

/**
 * Stores a merchant's request for a credit on an own sale, which an operator grants or declines. Moves no money. A repeated request
 * changes nothing. Throws `not_found`; `conflict` for a rejected sale, for more than was billed, and while a different request for the
 * sale is open; `quota_exceeded` for too many open requests. Earlier credits are checked when the credit is granted, because
 * they belong to the merchant, not to a sale.
 */
export async function requestCredit(
  platform: Platform,
  merchantId: string,
  request: CreditRequest,
): Promise<PendingCreditRequest> {
  return platform.database.transaction(async (tx) => {
    const sale = await findSale(tx, { merchantId }, request.saleId)
    if (!sale) throw new Refusal('not_found', 'Sale not found.')
    assertAtMostBilled(sale, request.amount)
    await advisoryLock(tx, `credit request on sale ${sale.id}`)
    const pending = await findPending(tx, sale.id)
    if (pending) return assertSame(request, pending)
    await checkQuota(tx, merchantId, {
      most: MAX_OPEN_REQUESTS,
      count: () => countFlags(tx, { kind: KIND, status: 'open' }, merchantId),
      detail: `At most ${MAX_OPEN_REQUESTS} credit requests can be open at a time. Try again when one is resolved.`,
    })
    await raiseFlag(platform, tx, {
      kind: KIND,
      subjectType: 'sale',
      subjectId: sale.id,
      summary: `A merchant requests a credit of Rs ${formatMoney(request.amount)} for a sale.`,
      evidence: await evidenceOf(tx, sale, request),
    })
    const stored = await findPending(tx, sale.id)
    if (!stored) throw new Error(`the credit request on sale ${sale.id} was not stored`)
    return stored
  })
}

async function findPending(tx: Tx, saleId: string): Promise<PendingCreditRequest | null> {
  const flag = await openFlagAbout(tx, { kind: KIND, subjectType: 'sale', subjectId: saleId })
  if (!flag) return null
  const { amount, reason } = JSON.parse(flag.evidence) as { amount: string; reason: string }
  return { flagId: flag.id, saleId, amount: parseMoney(amount) ?? 0, reason, createdAt: flag.created_at }
}

function assertAtMostBilled(sale: SaleWithSlug, amount: Paisa): void {
  if (sale.acceptance_status === 'rejected') {
    throw new Refusal('conflict', 'This sale was rejected, so nothing was billed for it.')
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
    earlier_requests: await countFlags(tx, { kind: KIND, subjectId: sale.id, status: 'resolved' }),
  }
}

function assertSame(request: CreditRequest, pending: PendingCreditRequest): PendingCreditRequest {
  if (pending.amount === request.amount && pending.reason === request.reason) return pending
  throw new Refusal(
    'conflict',
    `A request for ${formatMoney(pending.amount)} on this sale is already open. Wait for its decision.`,
  )
}
