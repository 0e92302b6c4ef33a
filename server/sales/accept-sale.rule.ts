import { DAY_MS } from '../../shared/durations.ts'
import { jsonOrNull } from '../../shared/json.ts'
import { CURRENCY, type Paisa } from '../../shared/money.ts'
import type { BasisPoints } from '../../shared/rates.ts'
import { type RejectionReason, SALE_REJECTION_REASONS } from '../../shared/rejection-reasons.ts'
import type { OrderSource } from '../../shared/schemas/stores.ts'
import type { LinkTerms } from '../links/links.service.ts'
import {
  type Basis,
  type BasisLine,
  basisOf,
  commissionOn,
  isCovered,
  platformFeeOn,
  whyNotCounted,
} from './commission.rule.ts'
import type { SaleClick, SaleCoupon, SaleFacts, SaleOrder } from './sale-facts.ts'

/** Stored on each receipt. Raise it with every change that could decide or compute a stored sale differently. */
export const SALE_RULE_VERSION = 4
/** Receipts of earlier versions are of releases that no longer open. */
const OLDEST_RULE_VERSION = 3

/** Whether receipts of this version are replayed. */
export function isKnownVersion(version: number): boolean {
  return version >= OLDEST_RULE_VERSION && version <= SALE_RULE_VERSION
}

/** `not_applicable`: because of an earlier failure there is nothing to check. */
export interface SaleCheck {
  name: RejectionReason
  verdict: 'passed' | 'failed' | 'not_applicable'
  saw: Record<string, string | number | boolean | null>
}

export interface SaleDecision {
  rule_version: number
  acceptance_status: 'accepted' | 'rejected'
  rejection_reason: RejectionReason | null
  /** What leads to the link; `null` without a link of the reporting merchant. */
  attributed_by: 'coupon' | 'click' | null
  checks: SaleCheck[]
  /** Empty for an order that is not in PKR. */
  basis_lines: BasisLine[]
  /** The commission basis, also for a rejected sale; 0 for an order that is not in PKR. */
  net_amount: Paisa
  /** The link's locked rate; `null` without a link of the reporting merchant. */
  commission_rate: BasisPoints | null
  /** 0 for a rejected sale, like the fee. */
  commission: Paisa
  platform_fee_rate: BasisPoints
  platform_fee: Paisa
}

/** Stored with each sale. Contains everything to replay the decision and nothing about the buyer. */
export interface SaleReceipt {
  facts: SaleFacts
  decision: SaleDecision
}

/**
 * Parses a stored receipt; `null` if it is unreadable, which `ledger verify` reports. Facts of an earlier version of the rule say so: they
 * are decided, and explained, by that version.
 */
export function readReceipt(text: string): SaleReceipt | null {
  const receipt = jsonOrNull(text) as SaleReceipt | null
  if (!receipt?.facts?.order || !receipt.decision) return null
  const { facts, decision } = receipt
  const { rule_version } = decision
  return rule_version === SALE_RULE_VERSION ? receipt : { facts: { ...facts, rule_version }, decision }
}

/** How far a store's clock may be behind ours. */
export const CLOCK_TOLERANCE_MS = 5 * 60_000

const PAID = ['paid', 'partially_refunded']

/** The link that a sale is credited to, and what leads to it. */
export interface Attribution {
  by: 'coupon' | 'click'
  /** The coupon code; `null` for a click. */
  code: string | null
  /** `null` for a coupon code. */
  click: SaleClick | null
  link: LinkTerms
  creator_suspended: boolean
  buyer_is_creator: boolean
  buyer_name_matches: boolean
}

/**
 * A coupon code in force comes before any click, because buyers type it on purpose; of several, the first in the order's list. A code that
 * cannot earn gives way to one that can, and to a click that can: its creator would get nothing, and take it from another one. A click
 * counts if its link belongs to the reporting merchant: terms of another merchant's link do not apply to this order and must not be
 * shown. `null` without either.
 */
export function attributionOf(facts: SaleFacts): Attribution | null {
  const coupons = facts.coupons?.filter((one) => isInForce(one, facts.order)) ?? []
  const earning = versionOf(facts) === 3 ? coupons[0] : coupons.find((one) => obstacleOf(one, facts) === null)
  const click = byClick(facts)
  const coupon = earning ?? (click && isEarningClick(click, facts) ? undefined : coupons[0])
  return coupon
    ? { by: 'coupon', code: coupon.code, click: null, link: coupon.link, ...partiesOf(coupon) }
    : click
}

function byClick(facts: SaleFacts): Attribution | null {
  const { click } = facts
  if (click?.link.merchant_id !== facts.reporting_merchant_id) return null
  return { by: 'click', code: null, click, link: click.link, ...partiesOf(facts) }
}

/** Why the link's creator cannot earn from this order; `null` when nothing of that stands against it. */
function obstacleOf(
  { link, creator_suspended }: Pick<Attribution, 'link' | 'creator_suspended'>,
  { order }: SaleFacts,
): 'creator_suspended' | 'product_not_in_offer' | null {
  if (creator_suspended) return 'creator_suspended'
  const counts = order.lines.some(
    (line) => line.quantity > 0 && whyNotCounted(line, link.product_ids) === null,
  )
  return counts ? null : 'product_not_in_offer'
}

function isEarningClick(attribution: Attribution, facts: SaleFacts): boolean {
  const to = { merchantId: facts.reporting_merchant_id, createdAt: facts.order.created_at }
  return isUsableClick(attribution.click as SaleClick, to) && obstacleOf(attribution, facts) === null
}

function versionOf({ rule_version = SALE_RULE_VERSION }: SaleFacts): number {
  return rule_version
}

function partiesOf({ creator_suspended, buyer_is_creator, buyer_name_matches }: SaleCoupon | SaleFacts) {
  return { creator_suspended, buyer_is_creator, buyer_name_matches }
}

/** The first coupon code of an order that was in force when it was created. */
export function couponInForce<Coupon extends CouponTimes>(facts: {
  order: Pick<SaleOrder, 'created_at'>
  coupons?: readonly Coupon[]
}): Coupon | undefined {
  return facts.coupons?.find((one) => isInForce(one, facts.order))
}

/**
 * The last millisecond of the second of `time`, both epoch ms. Stores write an order's time in whole seconds, so what began within that
 * second was there for the order.
 */
export function endOfSecond(time: number): number {
  return time - (time % 1000) + 999
}

/** What decides whether a coupon code is in force. */
export type CouponTimes = Pick<SaleCoupon, 'code' | 'starts_at' | 'ends_at' | 'offer_status'>

/** Whether the link had the code, and its offer was live, when the order was created. */
export function isInForce(coupon: CouponTimes, { created_at }: Pick<SaleOrder, 'created_at'>): boolean {
  const { starts_at, ends_at, offer_status } = coupon
  return (
    offer_status === 'live' &&
    starts_at <= endOfSecond(created_at) &&
    (ends_at === null || created_at < ends_at)
  )
}

const SOURCES = { note_attributes: 'cart', line_item: 'line', landing_site: 'landing' } as const

/** What led, or was to lead, the order to a link: a coupon code in force, else the place of its tracking reference. */
export function orderSource(facts: SaleFacts): OrderSource {
  if (attributionOf(facts)?.by === 'coupon') return 'coupon'
  const { tracking_source } = facts.order
  return tracking_source === null ? 'none' : SOURCES[tracking_source]
}

/** What a sale's row says of its attribution. */
export function namedBy(attribution: Attribution | null) {
  return {
    offer_id: attribution?.link.offer_id ?? null,
    creator_id: attribution?.link.creator_id ?? null,
    link_id: attribution?.link.id ?? null,
    click_id: attribution?.click?.id ?? null,
    coupon_code: attribution?.code ?? null,
    buyer_name_matches: attribution?.buyer_name_matches ? 1 : 0,
  }
}

/**
 * Whether a click can lead an order of this merchant to its link: the first reference with such a click is taken, so that a useless one
 * in an earlier place hides no good one.
 */
export function isUsableClick(
  click: SaleClick,
  { merchantId, createdAt }: { merchantId: string; createdAt: number },
): boolean {
  return (
    click.link.merchant_id === merchantId &&
    click.tracked &&
    click.created_at <= createdAt + CLOCK_TOLERANCE_MS &&
    createdAt <= click.created_at + click.link.attribution_window_days * DAY_MS
  )
}

interface Evidence {
  facts: SaleFacts
  attribution: Attribution | null
  /** The click of the attribution: no check looks at another one. */
  click: SaleClick | null
  coupons: SaleCoupon[]
  basis: Basis | null
  commission: Paisa
}

type Finding = Omit<SaleCheck, 'name'>

const NOT_APPLICABLE: Finding = { verdict: 'not_applicable', saw: {} }

/** Decides whether a reported order becomes an accepted sale, and what it pays. All checks run and are kept. */
export function decideSale(facts: SaleFacts): SaleDecision {
  const evidence = gather(facts)
  const rule_version = versionOf(facts)
  const names = SALE_REJECTION_REASONS.filter((name) => rule_version > 3 || name !== 'product_unknown')
  const checks = names.map((name): SaleCheck => {
    const { verdict, saw } = CHECKS[name](evidence)
    return { name, verdict, saw }
  })
  const rejection_reason = checks.find((check) => check.verdict === 'failed')?.name ?? null
  const commission = rejection_reason === null ? evidence.commission : 0
  return {
    rule_version,
    acceptance_status: rejection_reason === null ? 'accepted' : 'rejected',
    rejection_reason,
    attributed_by: evidence.attribution?.by ?? null,
    checks,
    basis_lines: evidence.basis?.lines ?? [],
    net_amount: evidence.basis?.netAmount ?? 0,
    commission_rate: evidence.attribution?.link.commission_rate ?? null,
    commission,
    platform_fee_rate: facts.platform_fee_rate,
    platform_fee: platformFeeOn(commission, facts.platform_fee_rate),
  }
}

/** The condition of the check `not_paid`. */
export function isPaid(order: Pick<SaleOrder, 'financial_status' | 'cancelled'>): boolean {
  return order.financial_status !== null && PAID.includes(order.financial_status) && !order.cancelled
}

function gather(facts: SaleFacts): Evidence {
  const attribution = attributionOf(facts)
  const inPkr = facts.order.currency === CURRENCY
  const basis = inPkr ? basisOf(facts.order, attribution?.link.product_ids ?? null) : null
  const commission =
    basis && attribution ? commissionOn(basis.netAmount, attribution.link.commission_rate) : 0
  const click = attribution?.click ?? null
  return { facts, attribution, click, coupons: facts.coupons ?? [], basis, commission }
}

const CHECKS: Record<RejectionReason, (evidence: Evidence) => Finding> = {
  test_order: ({ facts }) => finding(!facts.order.test, { test: facts.order.test }),

  not_paid({ facts: { order } }) {
    return finding(isPaid(order), {
      financial_status: order.financial_status,
      cancelled: order.cancelled,
    })
  },

  currency_not_pkr: ({ facts }) =>
    finding(facts.order.currency === CURRENCY, { currency: facts.order.currency }),

  no_tracking_reference({ facts: { order }, coupons }) {
    if (order.tracking_source === null && coupons.length > 0) return NOT_APPLICABLE
    const passed = order.references_passed_over
    return finding(order.tracking_source !== null, {
      tracking_source: order.tracking_source,
      ...(passed !== undefined && { references_passed_over: passed }),
    })
  },

  // Fails only without a tracking reference: then there is no click to fall back to.
  coupon_not_in_force({ facts, attribution, coupons }) {
    const { order } = facts
    const credited = coupons.find(({ code }) => attribution?.code === code)
    const inForce = couponInForce({ order, coupons })
    const coupon = credited ?? inForce ?? coupons[0]
    if (!coupon) return NOT_APPLICABLE
    const passedOver = inForce && inForce !== credited ? obstacleOf(inForce, facts) : null
    const saw = {
      coupon_code: coupon.code,
      starts_at: coupon.starts_at,
      ends_at: coupon.ends_at,
      offer_status: coupon.offer_status,
      ordered_at: order.created_at,
      ...(inForce && passedOver && { passed_over: inForce.code, because: passedOver }),
    }
    if (attribution?.by === 'coupon') return finding(true, saw)
    return order.tracking_source === null ? finding(false, saw) : { verdict: 'not_applicable', saw }
  },

  unknown_tracking_reference({ facts: { order, click }, attribution }) {
    if (order.tracking_source === null || attribution?.by === 'coupon') return NOT_APPLICABLE
    return finding(click !== null, {
      tracking_source: order.tracking_source,
      tracking_reference: order.tracking_reference,
    })
  },

  other_merchants_link({ facts, attribution, click }) {
    if (facts.click === null || attribution?.by === 'coupon') return NOT_APPLICABLE
    return finding(click !== null, { link_is_of_reporting_merchant: click !== null })
  },

  untracked_click({ click }) {
    if (click === null) return NOT_APPLICABLE
    return finding(click.tracked, { tracked: click.tracked })
  },

  // With a tolerance, inclusive, because the two times come from two clocks.
  click_after_order({ facts, click }) {
    if (click === null) return NOT_APPLICABLE
    return finding(click.created_at <= facts.order.created_at + CLOCK_TOLERANCE_MS, {
      clicked_at: click.created_at,
      ordered_at: facts.order.created_at,
      tolerance_ms: CLOCK_TOLERANCE_MS,
    })
  },

  // Up to the order's creation, because cash on delivery is paid weeks later. The end of the window is inclusive.
  outside_attribution_window({ facts, click }) {
    if (click === null) return NOT_APPLICABLE
    const window_ends_at = click.created_at + click.link.attribution_window_days * DAY_MS
    return finding(facts.order.created_at <= window_ends_at, {
      clicked_at: click.created_at,
      ordered_at: facts.order.created_at,
      attribution_window_days: click.link.attribution_window_days,
      window_ends_at,
    })
  },

  creator_suspended({ attribution }) {
    if (attribution === null) return NOT_APPLICABLE
    const { creator_suspended } = attribution
    return finding(!creator_suspended, { creator_suspended })
  },

  merchant_suspended: ({ facts }) =>
    finding(!facts.merchant_suspended, { merchant_suspended: facts.merchant_suspended }),

  self_purchase({ attribution }) {
    if (attribution === null) return NOT_APPLICABLE
    const { buyer_is_creator } = attribution
    return finding(!buyer_is_creator, { buyer_is_creator })
  },

  // A product that the shop has deleted since may have been one of the offer.
  product_unknown(evidence) {
    const { covered, lines, matching } = coverOf(evidence)
    if (covered === 0 || matching > 0) return NOT_APPLICABLE
    const unknown = lines.filter((line) => line.product_unknown && line.product_id === null).length
    return finding(unknown === 0, { lines: lines.length, lines_without_product: unknown })
  },

  product_not_in_offer(evidence) {
    const { covered, lines, matching } = coverOf(evidence)
    if (covered === 0 || CHECKS.product_unknown(evidence).verdict === 'failed') return NOT_APPLICABLE
    const bundled = lines.filter((line) => line.bundle_product_id !== undefined).length
    return finding(matching > 0, {
      products_in_offer: covered,
      lines: lines.length,
      lines_in_offer: matching,
      ...(bundled > 0 && { lines_of_bundles: bundled }),
    })
  },

  // Also when the basis is so small that its commission rounds to 0.
  nothing_payable({ attribution, basis, commission }) {
    if (attribution === null || basis === null) return NOT_APPLICABLE
    return finding(commission > 0, { net_amount: basis.netAmount, commission })
  },
}

function coverOf({ facts: { order }, attribution }: Evidence) {
  const covered = attribution?.link.product_ids ?? []
  const matching = order.lines.filter((line) => isCovered(line, covered)).length
  return { covered: covered.length, lines: order.lines, matching }
}

function finding(passes: boolean, saw: SaleCheck['saw']): Finding {
  return { verdict: passes ? 'passed' : 'failed', saw }
}
