import { formatMoney, type Paisa } from '../../shared/money.ts'
import type { CreditRequest } from '../../shared/schemas/admin.ts'
import { creditRequestAbout } from '../billing/credit-requests.service.ts'
import { countFlags, raiseFlag } from '../flags/flags.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { advisoryLock } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { checkQuota } from '../users/users.service.ts'
import { findSale } from './sales.store.ts'

interface Request {
  saleId: string
  /** Paisa, above zero. */
  amount: Paisa
  reason: string
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
  request: Request,
): Promise<CreditRequest> {
  return platform.database.transaction(async (tx) => {
    const sale = await findSale(tx, { merchantId }, request.saleId)
    if (!sale) throw new Refusal('not_found', 'Sale not found.')
    if (sale.acceptance_status === 'rejected') {
      throw new Refusal('conflict', 'This sale was rejected, so nothing was billed for it.')
    }
    const amount = formatMoney(request.amount)
    const billed = sale.commission + sale.platform_fee
    if (request.amount > billed) {
      throw new Refusal('conflict', `At most ${formatMoney(billed)} was billed for this sale.`)
    }
    await advisoryLock(tx, `credit request on sale ${sale.id}`)
    const last = await creditRequestAbout(tx, sale.id)
    if (last?.status === 'pending') {
      if (last.amount === amount && last.reason === request.reason) return last
      throw new Refusal(
        'conflict',
        `A request for ${last.amount} on this sale is already open. Wait for its decision.`,
      )
    }
    await checkQuota(tx, merchantId, {
      most: MAX_OPEN_REQUESTS,
      count: () => countFlags(tx, { kind: KIND, status: 'open', merchantId }),
      detail: `At most ${MAX_OPEN_REQUESTS} credit requests can be open at a time. Try again when one is resolved.`,
    })
    await raiseFlag(platform, tx, {
      kind: KIND,
      subjectType: 'sale',
      subjectId: sale.id,
      summary: `A merchant requests a credit of Rs ${amount} for a sale.`,
      evidence: {
        merchant_id: sale.merchant_id,
        amount,
        reason: request.reason,
        billed: formatMoney(billed),
        order_id: sale.order_id,
        order_name: sale.order_name,
        billing_cycle_id: sale.billing_cycle_id,
        earlier_requests: await countFlags(tx, { kind: KIND, subjectId: sale.id, status: 'resolved' }),
      },
    })
    return (await creditRequestAbout(tx, sale.id)) as CreditRequest
  })
}
