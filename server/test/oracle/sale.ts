import { DAY, MINUTE } from './calendar.ts'
import { type Fraction, share, shareOf } from './exact.ts'
import type { Order, OrderLine } from './order.ts'
import { type Click, known, type Link, type State } from './state.ts'

export type OracleReason = NonNullable<ReturnType<typeof firstFailure>>

/** What becomes of one order. Amounts in paisa. */
export interface Verdict {
  /** The first check that fails; `null`: accepted. */
  reason: OracleReason | null
  basis: number
  /** Of the link, if that is the reporting merchant's. */
  rate: number | null
  commission: number
  fee: number
  /** The link that the order is credited to, and the click or coupon code that does it. */
  link: Link | null
  click: Click | null
  code: string | null
}

const FIVE_MINUTES = 5 * MINUTE
const WHOLE = 10_000

/** The decision about an order of a merchant's store, as things stand now. */
export function judge(state: State, merchant: string, order: Order): Verdict {
  const clicks = order.references.map((text) => state.clicks.get(text.toLowerCase()) ?? null)
  const ours = clicks.filter((one) => one?.link.merchant === merchant)
  const found = ours.find((one) => one && clickProblem(one, order) === null) ?? ours[0] ?? clicks[0] ?? null
  const click = found?.link.merchant === merchant ? found : null
  const ofMerchant = [...state.links.values()].filter((link) => link.merchant === merchant)
  const inForce = (code: string) =>
    ofMerchant.find((link) => hadCode(link, code, order) && wasLive(state, link, order)) ?? null
  const named = order.codes.filter((one) => inForce(one) !== null)
  const canEarn = (link: Link | null) => link !== null && mayEarn(state, link, order)
  const clickEarns = click !== null && clickProblem(click, order) === null && canEarn(click.link)
  const code = named.find((one) => canEarn(inForce(one))) ?? (clickEarns ? null : (named[0] ?? null))
  const coupon = code === null ? null : inForce(code)
  const everKnown = order.codes.some((code) =>
    ofMerchant.some(({ codes }) => codes.some((one) => one.code === code)),
  )
  const link = coupon ?? click?.link ?? null
  const products = link?.terms.productIds ?? []
  const basis = order.currency === 'PKR' ? basisOf(order, products) : 0
  const commission = link ? share(basis, link.terms.rate, WHOLE) : 0
  const reason = firstFailure(state, {
    merchant,
    order,
    found,
    click,
    coupon,
    everKnown,
    link,
    named: products,
    commission,
  })
  const earned = reason === null ? commission : 0
  return {
    reason,
    basis,
    rate: link?.terms.rate ?? null,
    commission: earned,
    fee: share(earned, state.settings.platformFeeRate, WHOLE),
    link,
    click: coupon ? null : click,
    code,
  }
}

/** Whether the link's creator may earn and the order holds something of the offer. */
function mayEarn(state: State, { creator, terms }: Link, order: Order): boolean {
  if (known(state.people, creator).suspended) return false
  return order.lines.some((line) => line.remaining > 0 && isGoods(line, terms.productIds))
}

/** The order's codes that earn, and when the latest of those that any link of the merchant ever had was given to it. */
export function codesOf(state: State, merchant: string, order: Order) {
  const links = [...state.links.values()].filter((link) => link.merchant === merchant)
  const earning = order.codes.filter((code) =>
    links.some((link) => hadCode(link, code, order) && wasLive(state, link, order)),
  )
  const since = order.codes.flatMap((code) => {
    const starts = links
      .flatMap(({ codes }) => codes.flatMap((one) => (one.code === code ? one.from : [])))
      .sort((a, b) => a - b)
    return starts.findLast((start) => start < nextSecond(order.placedAt)) ?? starts[0] ?? []
  })
  return { earning, since: since.length > 0 ? Math.max(...since) : null }
}

/** Stores know an order's time to the second: what begins within it counts. */
const nextSecond = (time: number): number => (Math.floor(time / 1000) + 1) * 1000

function hadCode(link: Link, code: string, { placedAt }: Order): boolean {
  return link.codes.some(
    (one) =>
      one.code === code && one.from < nextSecond(placedAt) && (one.until === null || placedAt < one.until),
  )
}

function wasLive(state: State, link: Link, { placedAt }: Order): boolean {
  const before = known(state.offers, link.offer).statuses.filter(({ since }) => since < nextSecond(placedAt))
  return before.at(-1)?.status === 'live'
}

interface Facts {
  merchant: string
  order: Order
  /** The link may belong to any merchant. */
  found: Click | null
  /** Of this merchant's link. */
  click: Click | null
  /** The link of the first code that it had, while its offer was live. */
  coupon: Link | null
  /** Whether the order has a code that any link of the merchant ever had. */
  everKnown: boolean
  /** By code or click. */
  link: Link | null
  named: readonly string[]
  commission: number
}

function firstFailure(state: State, facts: Facts) {
  const { order, found, click, merchant } = facts
  if (order.test) return 'test_order'
  if (!paid(order)) return 'not_paid'
  if (order.currency !== 'PKR') return 'currency_not_pkr'
  if (facts.coupon === null) {
    if (order.references.length === 0)
      return facts.everKnown ? 'coupon_not_in_force' : 'no_tracking_reference'
    if (found === null) return 'unknown_tracking_reference'
    if (click === null) return 'other_merchants_link'
    const problem = clickProblem(click, order)
    if (problem) return problem
  }
  const creator = known(state.people, facts.link?.creator ?? '')
  if (creator.suspended) return 'creator_suspended'
  if (known(state.people, merchant).suspended) return 'merchant_suspended'
  if (order.buyerEmails.some((email) => reachesMailbox(email, creator.email))) return 'self_purchase'
  if (!order.lines.some((line) => isCovered(line, facts.named))) return noProduct(facts.named, order)
  return facts.commission > 0 ? null : 'nothing_payable'
}

function clickProblem(click: Click, { placedAt }: Order) {
  if (!click.tracked) return 'untracked_click'
  if (click.at > placedAt + FIVE_MINUTES) return 'click_after_order'
  return placedAt > click.at + click.link.terms.windowDays * DAY ? 'outside_attribution_window' : null
}

export function paid(order: Order): boolean {
  return ['paid', 'partially_refunded'].includes(order.financialStatus ?? '') && !order.cancelled
}

/** Whether the store has taken an order back: canceled it, or paid everything back. */
export function isGivenBack({ financialStatus, cancelled }: Order): boolean {
  return cancelled || ['refunded', 'voided'].includes(financialStatus ?? '')
}

/** Gmail ignores dots and has two names; what follows a plus sign is a label. */
function reachesMailbox(one: string, other: string): boolean {
  const mailbox = (address: string) => {
    const [, name = '', domain = ''] = /^(.+?)(?:\+.*)?@([^@]*)$/.exec(address.toLowerCase()) ?? []
    return /^(gmail|googlemail)\.com$/.test(domain) ? name.replaceAll('.', '') : `${name}@${domain}`
  }
  return mailbox(one) === mailbox(other)
}

/** Terms without products cover an order without lines too, which then pays nothing. */
function noProduct(named: readonly string[], { lines }: Order) {
  if (named.length > 0 && lines.some((line) => line.deleted)) return 'product_unknown'
  return named.length > 0 ? 'product_not_in_offer' : 'nothing_payable'
}

function isCovered(line: OrderLine, named: readonly string[]): boolean {
  return named.length === 0 || (line.productId !== null && named.includes(line.productId))
}

function isGoods(line: OrderLine, named: readonly string[]): boolean {
  if (line.giftCard || !isCovered(line, named)) return false
  return !line.extra || named.length > 0
}

/** Net of the covered goods, less their part of what was refunded. */
function basisOf(order: Order, named: readonly string[]): number {
  const paid = order.lines.reduce((sum, line) => sum + paidFor(line), 0)
  const refunded = Math.min(order.refunded, paid)
  return order.lines
    .filter((line) => isGoods(line, named))
    .reduce((sum, line) => {
      const net = netOf(line, order.taxesIncluded)
      return sum + net - (refunded > 0 ? Math.min(net, share(net, refunded, paid)) : 0)
    }, 0)
}

function paidFor(line: OrderLine): number {
  return Math.max(0, shareOf(line.price, line.remaining, 1) - remaining(line.discount, line))
}

function netOf(line: OrderLine, taxesIncluded: boolean): number {
  const tax = taxesIncluded ? remaining(line.tax, line) : 0
  const gross = shareOf(line.price, line.remaining, 1)
  return Math.max(0, gross - remaining(line.discount, line) - tax)
}

/** Of an edited line, discount and tax belong to the remaining pieces in their proportion. */
function remaining(amount: Fraction, line: OrderLine): number {
  return line.remaining < line.ordered ? shareOf(amount, line.remaining, line.ordered) : shareOf(amount, 1, 1)
}
