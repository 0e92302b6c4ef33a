import type { Paisa } from '../../shared/money.ts'
import type { BasisPoints } from '../../shared/rates.ts'
import type { SaleDecision } from './accept-sale.rule.ts'
import type { SaleFacts } from './sale-facts.ts'

/** What a decision came to, once or today. `none`: the event made no sale, and `reason` says why. */
export interface Verdict {
  verdict: 'accepted' | 'rejected' | 'none'
  reason: string | null
  creatorId: string | null
  netAmount: Paisa
  commissionRate: BasisPoints | null
  commission: Paisa
  platformFee: Paisa
}

/** A fact of the time that nobody has kept: today's stands in for it. */
export type LostFact =
  | 'creator_suspended'
  | 'merchant_suspended'
  | 'buyer_is_creator'
  | 'platform_fee_rate'
  | 'click'

export interface FactsOfTheTime {
  facts: SaleFacts
  lost: LostFact[]
}

/**
 * Today's reading of an order beside the circumstances under which it was judged then: `today` as the order would be
 * judged now, `then` as the receipt has it (`null` when the event made no sale). Click and terms are the receipt's as long
 * as the reference is read as it was; one that is read otherwise today leads to its own click, which with its link has
 * not changed since either, unless it is gone: clicks with ids below `pruned` may be.
 */
export function factsOfTheTime(today: SaleFacts, then: SaleFacts | null, pruned: string): FactsOfTheTime {
  const reference = today.order.tracking_reference
  const clickGone = today.click === null && reference !== null && reference < pruned
  if (then === null) {
    const ofCreator: LostFact[] = today.click === null ? [] : ['creator_suspended']
    const ofClick: LostFact[] = clickGone ? ['click'] : []
    return { facts: today, lost: ['merchant_suspended', ...ofCreator, 'platform_fee_rate', ...ofClick] }
  }
  const sameReference = reference === then.order.tracking_reference
  const click = sameReference ? then.click : today.click
  const lost: LostFact[] = []
  const sameCreator = click?.link.creator_id === then.click?.link.creator_id
  if (!sameCreator && click !== null) lost.push('creator_suspended')
  // Today's comparison of the addresses was with this click's creator, unless the click itself is gone by now.
  const compared = click === null || click.id === today.click?.id
  if (!compared) lost.push('buyer_is_creator')
  if (clickGone && !sameReference) lost.push('click')
  return {
    facts: {
      order: today.order,
      buyer_is_creator: click !== null && (compared ? today : then).buyer_is_creator,
      buyer_name_matches: click !== null && ((compared ? today : then).buyer_name_matches ?? false),
      reporting_merchant_id: then.reporting_merchant_id,
      click,
      creator_suspended: click !== null && (sameCreator ? then : today).creator_suspended,
      merchant_suspended: then.merchant_suspended,
      platform_fee_rate: then.platform_fee_rate,
    },
    lost,
  }
}

export function verdictOf(decision: SaleDecision, facts: SaleFacts): Verdict {
  const { click, reporting_merchant_id } = facts
  return {
    verdict: decision.acceptance_status,
    reason: decision.rejection_reason,
    creatorId: click?.link.merchant_id === reporting_merchant_id ? click.link.creator_id : null,
    netAmount: decision.net_amount,
    commissionRate: decision.commission_rate,
    commission: decision.commission,
    platformFee: decision.platform_fee,
  }
}

export function noSale(reason: string): Verdict {
  return {
    verdict: 'none',
    reason,
    creatorId: null,
    netAmount: 0,
    commissionRate: null,
    commission: 0,
    platformFee: 0,
  }
}

/** Why an event made no sale is told in words that may change; that it made none is what counts. */
export function isDifferent(before: Verdict, after: Verdict): boolean {
  if (before.verdict === 'none' && after.verdict === 'none') return false
  return (Object.keys(before) as (keyof Verdict)[]).some((field) => before[field] !== after[field])
}
