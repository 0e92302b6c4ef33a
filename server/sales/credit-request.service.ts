import { formatMoney, type Paisa, parseMoney } from '../../shared/money.ts'
import { openFlagAbout, openFlagCountOf, resolvedFlagCount } from '../moderation/flag-queue.service.ts'
import { raiseFlag } from '../moderation/flags.service.ts'
import type { Tx } from '../platform/database.ts'
import { lockName } from '../platform/named-lock.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { checkQuota } from '../users/quota.service.ts'
import { findSale, type SaleWithSlug } from './sales.store.ts'

export interface CreditRequest {
  saleId: string
  /** Paisa, above zero. */
  amount: Paisa
  reason: string
}

/** A stored request that waits for an operator; `createdAt` in epoch ms. */
export interface PendingCreditRequest extends CreditRequest {
  /** The flag that an operator decides on. */
  flagId: string
  createdAt: number
}

const KIND = 'credit_request'
export const MAX_OPEN_REQUESTS = 50

/**
 * Stores a merchant's request for a credit on one of their sales, for an operator who grants or declines it, and answers it as it is
 * stored; moves no money. The same request again changes nothing. Refuses with `not_found`, and with `conflict` for a rejected
 * sale (nothing was billed), for more than was billed, while another request about this sale waits,
 * and with `quota_exceeded` while too many requests of the merchant wait. Earlier credits count when
 * the credit is granted, since they belong to the merchant and not to a sale.
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
    await lockName(tx, `credit request on sale ${sale.id}`)
    const waiting = await storedRequest(tx, sale.id)
    if (waiting) return sameRequest(request, waiting)
    await checkQuota(tx, merchantId, {
      most: MAX_OPEN_REQUESTS,
      count: () => openFlagCountOf(tx, KIND, merchantId),
      detail: `At most ${MAX_OPEN_REQUESTS} credit requests may wait at a time. Try again when one is decided.`,
    })
    await raiseFlag(platform, tx, {
      kind: KIND,
      subjectType: 'sale',
      subjectId: sale.id,
      summary: `A merchant asks for a credit of Rs ${formatMoney(request.amount)} on a sale.`,
      evidence: await evidenceOf(tx, sale, request),
    })
    const stored = await storedRequest(tx, sale.id)
    if (!stored) throw new Error(`the credit request on sale ${sale.id} was not stored`)
    return stored
  })
}

async function storedRequest(tx: Tx, saleId: string): Promise<PendingCreditRequest | null> {
  const flag = await openFlagAbout(tx, { kind: KIND, subjectType: 'sale', subjectId: saleId })
  if (!flag) return null
  const { amount, reason } = JSON.parse(flag.evidence) as { amount: string; reason: string }
  return { flagId: flag.id, saleId, amount: parseMoney(amount) ?? 0, reason, createdAt: flag.created_at }
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

function sameRequest(request: CreditRequest, waiting: PendingCreditRequest): PendingCreditRequest {
  if (waiting.amount === request.amount && waiting.reason === request.reason) return waiting
  throw new Refusal(
    'conflict',
    `A request for ${formatMoney(waiting.amount)} on this sale waits for its decision already.`,
  )
}
