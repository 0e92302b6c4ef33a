import type { SaleDecision } from './accept-sale.rule.ts'
import type { SaleCoupon, SaleFacts } from './sale-facts.ts'

type Amounts = Pick<SaleDecision, 'net_amount' | 'commission_rate' | 'commission' | 'platform_fee'>

/** The result of a recorded or new decision. `none`: the event made no sale; `reason` says why. */
export interface Verdict extends Amounts {
  verdict: 'accepted' | 'rejected' | 'none'
  reason: string | null
  creator_id: string | null
}

/** A fact that was not recorded; today's value replaces it. */
export type LostFact =
  | 'creator_suspended'
  | 'merchant_suspended'
  | 'buyer_is_creator'
  | 'platform_fee_rate'
  | 'click'

/**
 * Combines today's reading of an order with the facts of its first decision: `today` as it would be decided now, `then` from the
 * receipt (`null` if the event made no sale). Click and terms come from the receipt if the reference reads the same. A different
 * reference has its own click; clicks and links do not change, but clicks with ids below `pruned` may have been deleted.
 */
export function factsOfTheTime(today: SaleFacts, then: SaleFacts | null, pruned: string) {
  const reference = today.order.tracking_reference
  const clickGone = today.click === null && reference !== null && reference < pruned
  if (then === null) {
    const ofCreator: LostFact[] = today.click === null && !today.coupons ? [] : ['creator_suspended']
    const ofClick: LostFact[] = clickGone ? ['click'] : []
    const lost: LostFact[] = ['merchant_suspended', ...ofCreator, 'platform_fee_rate', ...ofClick]
    return { facts: today, lost }
  }
  const sameReference = reference === then.order.tracking_reference
  const click = sameReference ? then.click : today.click
  const lost: LostFact[] = []
  const sameCreator = click?.link.creator_id === then.click?.link.creator_id
  if (!sameCreator && click !== null) lost.push('creator_suspended')
  // Today's comparison used this click's creator, unless the click has been deleted.
  const compared = click === null || click.id === today.click?.id
  if (!compared) lost.push('buyer_is_creator')
  if (clickGone && !sameReference) lost.push('click')
  const coupons = today.coupons?.map((coupon) => couponOfTheTime(coupon, then.coupons ?? []))
  if (coupons?.some((coupon) => coupon.lost) && !lost.includes('creator_suspended')) {
    lost.push('creator_suspended')
  }
  return {
    facts: {
      order: today.order,
      ...(coupons && { coupons: coupons.map(({ facts }) => facts) }),
      buyer_is_creator: click !== null && (compared ? today : then).buyer_is_creator,
      buyer_name_matches: click !== null && (compared ? today : then).buyer_name_matches,
      reporting_merchant_id: then.reporting_merchant_id,
      click,
      creator_suspended: click !== null && (sameCreator ? then : today).creator_suspended,
      merchant_suspended: then.merchant_suspended,
      platform_fee_rate: then.platform_fee_rate,
    },
    lost,
  }
}

/** The history of a code does not change, so only its creator's suspension comes from the receipt. */
function couponOfTheTime(
  today: SaleCoupon,
  then: readonly SaleCoupon[],
): { facts: SaleCoupon; lost: boolean } {
  const same = then.find(({ code, link }) => code === today.code && link.id === today.link.id)
  if (!same) return { facts: today, lost: true }
  return { facts: { ...today, creator_suspended: same.creator_suspended }, lost: false }
}

export function verdictOf(
  decided: Amounts & Pick<SaleDecision, 'acceptance_status' | 'rejection_reason'>,
  creatorId: string | null,
): Verdict {
  return {
    verdict: decided.acceptance_status,
    reason: decided.rejection_reason,
    creator_id: creatorId,
    net_amount: decided.net_amount,
    commission_rate: decided.commission_rate,
    commission: decided.commission,
    platform_fee: decided.platform_fee,
  }
}

export function noSale(reason: string): Verdict {
  const nothing = { net_amount: 0, commission_rate: null, commission: 0, platform_fee: 0 }
  return { verdict: 'none', reason, creator_id: null, ...nothing }
}

/** Two events without a sale are equal whatever their reasons. */
export function isDifferent(before: Verdict, after: Verdict): boolean {
  if (before.verdict === 'none' && after.verdict === 'none') return false
  return (Object.keys(before) as (keyof Verdict)[]).some((field) => before[field] !== after[field])
}
