import { CURRENCY, type Paisa } from '../../shared/money.ts'
import type { BasisPoints } from '../../shared/rates.ts'
import {
  type Basis,
  type BasisLine,
  basisOf,
  commissionOn,
  isNamed,
  platformFeeOn,
} from './commission.rule.ts'
import type { SaleClick, SaleFacts, SaleOrder } from './sale-facts.ts'

/**
 * Stands on each receipt; raised with every change that could decide or compute a stored sale differently. 2: `buyer_is_creator`
 * compares mailboxes, and the facts have `buyer_name_matches`.
 */
export const SALE_RULE_VERSION = 2

/** The checks in the order in which they are judged; the first that fails names the rejection. */
export const SALE_REJECTION_REASONS = [
  'test_order',
  'not_paid',
  'currency_not_pkr',
  'no_tracking_reference',
  'unknown_tracking_reference',
  'other_merchants_link',
  'untracked_click',
  'click_after_order',
  'outside_attribution_window',
  'creator_suspended',
  'merchant_suspended',
  'self_purchase',
  'product_not_in_offer',
  'nothing_payable',
] as const

export type RejectionReason = (typeof SALE_REJECTION_REASONS)[number]

/** One check of the receipt. `not_applicable`: an earlier failure left it nothing to look at. */
export interface SaleCheck {
  name: RejectionReason
  verdict: 'passed' | 'failed' | 'not_applicable'
  saw: Record<string, string | number | boolean | null>
}

export interface SaleDecision {
  rule_version: number
  acceptance_status: 'accepted' | 'rejected'
  rejection_reason: RejectionReason | null
  checks: SaleCheck[]
  /** Empty for an order that is not in PKR, whose amounts have no place in a PKR record. */
  basis_lines: BasisLine[]
  /** The basis, also of a rejected sale, so that both sides see what it was about; 0 for an order that is not in PKR. */
  net_amount: Paisa
  /** The link's locked rate; `null` without a link of the reporting merchant. */
  commission_rate: BasisPoints | null
  /** 0 for a rejected sale, as is the fee. */
  commission: Paisa
  platform_fee_rate: BasisPoints
  platform_fee: Paisa
}

/** How far the store's clock may lie behind ours. */
export const CLOCK_TOLERANCE_MS = 5 * 60_000

/** A window is counted in spans of 24 hours; Pakistan has no summer time. */
const DAY_MS = 86_400_000

const PAID = ['paid', 'partially_refunded']

interface Evidence {
  facts: SaleFacts
  /**
   * The click, if its link is the reporting merchant's. The terms of anybody else's link say nothing about this order and are no
   * business of this merchant's, so that the checks of a click do not look at it then.
   */
  click: SaleClick | null
  basis: Basis | null
  commission: Paisa
}

type Finding = Omit<SaleCheck, 'name'>

const NOTHING_TO_SEE: Finding = { verdict: 'not_applicable', saw: {} }

/**
 * Decides whether a reported order becomes an accepted sale, and what it pays. Every check runs and is kept. `version` replays a
 * former version of the rule on the facts of its time: versions 1 and 2 differ in how facts are gathered, not in their checks.
 */
export function decideSale(facts: SaleFacts, version = SALE_RULE_VERSION): SaleDecision {
  const evidence = gather(facts)
  const checks = SALE_REJECTION_REASONS.map((name): SaleCheck => {
    const { verdict, saw } = CHECKS[name](evidence)
    return { name, verdict, saw }
  })
  const rejection_reason = checks.find((check) => check.verdict === 'failed')?.name ?? null
  const commission = rejection_reason === null ? evidence.commission : 0
  return {
    rule_version: version,
    acceptance_status: rejection_reason === null ? 'accepted' : 'rejected',
    rejection_reason,
    checks,
    basis_lines: evidence.basis?.lines ?? [],
    net_amount: evidence.basis?.basis ?? 0,
    commission_rate: evidence.click?.link.commission_rate ?? null,
    commission,
    platform_fee_rate: facts.platform_fee_rate,
    platform_fee: platformFeeOn(commission, facts.platform_fee_rate),
  }
}

/** Whether the rule has, or had, this version. */
export function isRuleVersion(version: unknown): version is number {
  return Number.isInteger(version) && Number(version) >= 1 && Number(version) <= SALE_RULE_VERSION
}

/** What `not_paid` asks of an order. */
export function isPaid(order: Pick<SaleOrder, 'financial_status' | 'cancelled'>): boolean {
  return order.financial_status !== null && PAID.includes(order.financial_status) && !order.cancelled
}

function gather(facts: SaleFacts): Evidence {
  const click = facts.click?.link.merchant_id === facts.reporting_merchant_id ? facts.click : null
  const inPkr = facts.order.currency === CURRENCY
  const basis = inPkr ? basisOf(facts.order, click?.link.product_ids ?? null) : null
  const commission = basis && click ? commissionOn(basis.basis, click.link.commission_rate) : 0
  return { facts, click, basis, commission }
}

const CHECKS: Record<RejectionReason, (evidence: Evidence) => Finding> = {
  test_order: ({ facts }) => judge(!facts.order.test, { test: facts.order.test }),

  not_paid({ facts: { order } }) {
    return judge(isPaid(order), {
      financial_status: order.financial_status,
      cancelled: order.cancelled,
    })
  },

  currency_not_pkr: ({ facts }) =>
    judge(facts.order.currency === CURRENCY, { currency: facts.order.currency }),

  no_tracking_reference: ({ facts }) =>
    judge(facts.order.tracking_source !== null, { tracking_source: facts.order.tracking_source }),

  unknown_tracking_reference({ facts: { order, click } }) {
    if (order.tracking_source === null) return NOTHING_TO_SEE
    return judge(click !== null, {
      tracking_source: order.tracking_source,
      tracking_reference: order.tracking_reference,
    })
  },

  other_merchants_link({ facts, click }) {
    if (facts.click === null) return NOTHING_TO_SEE
    return judge(click !== null, { link_is_of_reporting_merchant: click !== null })
  },

  untracked_click({ click }) {
    if (click === null) return NOTHING_TO_SEE
    return judge(click.tracked, { tracked: click.tracked })
  },

  // An order counts as after its click up to and including the tolerance: the two moments come from two clocks.
  click_after_order({ facts, click }) {
    if (click === null) return NOTHING_TO_SEE
    return judge(click.created_at <= facts.order.created_at + CLOCK_TOLERANCE_MS, {
      clicked_at: click.created_at,
      ordered_at: facts.order.created_at,
      tolerance_ms: CLOCK_TOLERANCE_MS,
    })
  },

  // From the click to the order's creation, since cash on delivery is paid weeks later; the window's last millisecond is in it.
  outside_attribution_window({ facts, click }) {
    if (click === null) return NOTHING_TO_SEE
    const window_ends_at = click.created_at + click.link.attribution_window_days * DAY_MS
    return judge(facts.order.created_at <= window_ends_at, {
      clicked_at: click.created_at,
      ordered_at: facts.order.created_at,
      attribution_window_days: click.link.attribution_window_days,
      window_ends_at,
    })
  },

  creator_suspended({ facts, click }) {
    if (click === null) return NOTHING_TO_SEE
    return judge(!facts.creator_suspended, { creator_suspended: facts.creator_suspended })
  },

  merchant_suspended: ({ facts }) =>
    judge(!facts.merchant_suspended, { merchant_suspended: facts.merchant_suspended }),

  self_purchase({ facts, click }) {
    if (click === null) return NOTHING_TO_SEE
    return judge(!facts.buyer_is_creator, { buyer_is_creator: facts.buyer_is_creator })
  },

  product_not_in_offer({ facts, click }) {
    const named = click?.link.product_ids ?? []
    if (named.length === 0) return NOTHING_TO_SEE
    const matching = facts.order.lines.filter((line) => isNamed(line.product_id, named)).length
    return judge(matching > 0, {
      products_in_offer: named.length,
      lines: facts.order.lines.length,
      lines_in_offer: matching,
    })
  },

  // Also a basis so small that its commission rounds to nothing: a sale that pays nobody is no accepted sale.
  nothing_payable({ click, basis, commission }) {
    if (click === null || basis === null) return NOTHING_TO_SEE
    return judge(commission > 0, { net_amount: basis.basis, commission })
  },
}

function judge(passes: boolean, saw: SaleCheck['saw']): Finding {
  return { verdict: passes ? 'passed' : 'failed', saw }
}
