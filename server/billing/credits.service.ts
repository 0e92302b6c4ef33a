import type { Paisa } from '../../shared/money.ts'
import { creditGranted } from '../ledger/entries.rule.ts'
import { writeEntries } from '../ledger/ledger.service.ts'
import { recordAudit } from '../moderation/audit.service.ts'
import type { Platform } from '../platform/platform.ts'
import { Refusal } from '../platform/refusal.ts'
import { checkCredit } from './close-cycle.rule.ts'
import {
  creditGrantedTo,
  cycleTotals,
  findCreditByReference,
  insertCredit,
  lockMerchantCredits,
} from './credits.store.ts'

export interface CreditGrant {
  merchantId: string
  /** Paisa. */
  amount: Paisa
  /** The operator's own number for it: one credit a reference, however often the command is run. */
  reference: string
  reason: string
  actor: string
}

export interface GrantedCredit {
  id: string
  /** False when this very credit had been granted before. */
  created: boolean
}

/**
 * Grants a merchant a credit, used up by the next closes. Refuses with `conflict` what is more than the merchant's
 * accepted commission and fee less earlier credits, and a reference that stands for another credit.
 */
export function grantCredit(platform: Platform, grant: CreditGrant): Promise<GrantedCredit> {
  return platform.database.transaction(async (tx) => {
    await lockMerchantCredits(tx, [grant.merchantId])
    const earlier = await findCreditByReference(tx, grant.reference)
    if (earlier) {
      if (earlier.merchant_id === grant.merchantId && earlier.amount === grant.amount) {
        return { id: earlier.id, created: false }
      }
      throw new Refusal('conflict', `Reference ${grant.reference} stands for another credit.`)
    }
    const { accepted } = await cycleTotals(tx, grant.merchantId)
    const earlierCredits = await creditGrantedTo(tx, grant.merchantId)
    const decision = checkCredit({ amount: grant.amount, acceptedTotal: accepted, earlierCredits })
    if (decision.kind === 'refused') throw new Refusal(decision.code, decision.detail)
    const id = platform.ids.next()
    const now = platform.clock.now()
    const added = await insertCredit(tx, {
      id,
      merchant_id: grant.merchantId,
      amount: grant.amount,
      reference: grant.reference,
      reason: grant.reason,
      created_at: now,
    })
    if (!added) throw new Refusal('conflict', `Reference ${grant.reference} stands for another credit.`)
    await writeEntries(
      platform,
      tx,
      [creditGranted({ creditId: id, merchantId: grant.merchantId, amount: grant.amount })],
      now,
    )
    await recordAudit(platform, tx, {
      actor: grant.actor,
      action: 'billing.credit',
      subjectType: 'user',
      subjectId: grant.merchantId,
      reason: grant.reason,
      before: { credit_granted: earlierCredits },
      after: { credit_granted: earlierCredits + grant.amount, credit_id: id, reference: grant.reference },
    })
    return { id, created: true }
  })
}
