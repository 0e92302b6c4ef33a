import type { z } from 'zod'
import { CURRENCY, formatMoney, type Paisa } from '../../shared/money.ts'
import type { creditRequest } from '../../shared/schemas/admin.ts'
import { countFlags, openFlagAbout, raiseFlag } from '../flags/flags.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { isoTime } from '../platform/clock.ts'
import { advisoryLock, type Tx } from '../platform/database/database.ts'
import type { Platform } from '../platform/platform.ts'
import { checkQuota } from '../users/users.service.ts'
import { findSale } from './sales.store.ts'

type CreditRequest = z.infer<typeof creditRequest>

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
    const pending = await findPending(tx, sale.id)
    if (pending?.amount === amount && pending.reason === request.reason) return pending
    if (pending) {
      throw new Refusal(
        'conflict',
        `A request for ${pending.amount} on this sale is already open. Wait for its decision.`,
      )
    }
    await checkQuota(tx, merchantId, {
      most: MAX_OPEN_REQUESTS,
      count: () => countFlags(tx, { kind: KIND, status: 'open' }, merchantId),
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
    return (await findPending(tx, sale.id)) as CreditRequest
  })
}

/** The open request for a sale, by the flag that an operator resolves. */
async function findPending(tx: Tx, saleId: string): Promise<CreditRequest | null> {
  const flag = await openFlagAbout(tx, { kind: KIND, subjectType: 'sale', subjectId: saleId })
  if (!flag) return null
  const { amount, reason } = JSON.parse(flag.evidence) as { amount: string; reason: string }
  return {
    flag_id: flag.id,
    sale_id: saleId,
    amount,
    currency: CURRENCY,
    reason,
    status: 'pending',
    created_at: isoTime(flag.created_at),
  }
}
