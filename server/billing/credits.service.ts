import type { Paisa } from '../../shared/money.ts'
import { recordAudit } from '../flags/audit.service.ts'
import { creditGranted } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { Refusal } from '../platform/api/refusal.ts'
import { insertRowsIfNew } from '../platform/database/protected-rows.ts'
import type { Platform } from '../platform/platform.ts'
import { acceptedTotalOf } from './billing.store.ts'
import { creditRefusal } from './credit.rule.ts'
import { publishDecision, settleRequest } from './credit-requests.service.ts'
import { creditsOf, findCreditByReference, lockMerchantCredits } from './credits.store.ts'

export { type CreditName, creditNamesOf } from './credits.store.ts'

export interface CreditGrant {
  merchantId: string
  /** Paisa. */
  amount: Paisa
  /** The operator's own number. One reference is one credit, however often the command runs. */
  reference: string
  reason: string
  actor: string
  /** The flag of the credit request that it answers; else the merchant's only open request of this amount is answered. */
  requestId?: string | null
}

/**
 * Grants a merchant a credit, which the next closes use, and closes the credit request that it answers. Throws `conflict` for more than the
 * merchant's accepted commission and fee less earlier credits, and for a reference that another credit has; `not_found` for an unknown
 * request; `TamperedRow` when one of the merchant's credits was changed outside of the service, and `UnknownKeyError`.
 * `created` is false when the same credit was granted before.
 */
export function grantCredit(platform: Platform, grant: CreditGrant) {
  const { merchantId, amount, reference, reason, actor, requestId = null } = grant
  const referenceTaken = () => new Refusal('conflict', `Reference ${reference} belongs to another credit.`)
  return platform.database.transaction(async (tx) => {
    await lockMerchantCredits(tx, [merchantId])
    const credits = await creditsOf(tx, platform.keys, [merchantId])
    const earlierCredits = credits.reduce((sum, credit) => sum + credit.amount, 0)
    const earlier = await findCreditByReference(tx, reference)
    if (earlier) {
      if (earlier.merchant_id !== merchantId || earlier.amount !== amount) throw referenceTaken()
      return { id: earlier.id, created: false, requestId: earlier.request_id }
    }
    const acceptedTotal = await acceptedTotalOf(tx, merchantId)
    const refusal = creditRefusal({ amount, acceptedTotal, earlierCredits })
    if (refusal) throw new Refusal(refusal.code, refusal.detail)
    const id = platform.ids.next()
    const now = platform.clock.now()
    const request_id = await settleRequest(platform, tx, { merchantId, amount, reference, requestId })
    const credit = { id, merchant_id: merchantId, amount, reference, reason, request_id, created_at: now }
    if ((await insertRowsIfNew(tx, 'credits', [credit])).length === 0) throw referenceTaken()
    await writeEntries(platform, tx, [creditGranted({ creditId: id, merchantId, amount })], now)
    if (request_id !== null) await publishDecision(platform, tx, request_id)
    await recordAudit(platform, tx, {
      actor,
      action: 'billing.credit',
      subjectType: 'user',
      subjectId: merchantId,
      reason,
      before: { credit_granted: earlierCredits },
      after: { credit_granted: earlierCredits + amount, credit_id: id, reference },
    })
    return { id, created: true, requestId: request_id }
  })
}
