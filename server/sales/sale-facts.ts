import type { BasisPoints } from '../../shared/rates.ts'
import type { LinkTerms } from '../links/links.service.ts'
import type { OfferStatus } from '../offers/offer-status.rule.ts'
import type { OrderFacts, OrderLine } from '../shopify/order-facts.ts'
import type { TrackingSource } from '../shopify/tracking.ts'
import { mailboxOf } from '../users/mailbox.rule.ts'

/**
 * The inputs of the decision about one sale. They are stored on the receipt and shown to merchant and creator, so they must not
 * describe the buyer. They are plain JSON, so the decision can be replayed. Times in epoch ms.
 */
export interface SaleFacts {
  order: SaleOrder
  /** Whether one of the order's e-mails reaches the creator's mailbox. This and the next field are all that is kept about the buyer. */
  buyer_is_creator: boolean
  /**
   * Whether the buyer's name is the title of one of the creator's payout accounts. It counts for the flag `self_purchase` but rejects
   * nothing, because names repeat. Never shown: it would reveal the creator's legal name.
   */
  buyer_name_matches: boolean
  /** The owner of the store that sent the order. */
  reporting_merchant_id: string
  /** The click of the tracking reference; `null` without one. */
  click: SaleClick | null
  /**
   * The order's coupon codes that belong or belonged to links of the reporting merchant, in the order's sequence. Other codes are the
   * shop's own. Missing without any.
   */
  coupons?: SaleCoupon[]
  /** Suspensions when the order is processed: of the link's creator (false without a click) and of the reporting merchant. */
  creator_suspended: boolean
  merchant_suspended: boolean
  /** The platform fee as a share of the commission. */
  platform_fee_rate: BasisPoints
  /** The version of the rule, set when the receipt of an earlier one is read; missing for today's. */
  rule_version?: number
}

/**
 * An order without what describes its buyer. A tracking reference that is not a click id is not stored either (`null` with a source),
 * because a visitor can put anything into an address, including personal data.
 */
export interface SaleOrder
  extends Omit<
    OrderFacts,
    'updated_at' | 'buyer_emails' | 'buyer_names' | 'shop_hosts' | 'discount_codes' | 'references'
  > {
  /** `null` for text that is no click id. */
  tracking_reference: string | null
  /** The place of the reference; `null` without one. */
  tracking_source: TrackingSource | null
  /** How many references in earlier places were passed over, because their clicks do not count. Missing without any. */
  references_passed_over?: number
}

export interface SaleClick {
  id: string
  created_at: number
  /** False for a click that was redirected without a reference: the offer was not live or the creator was suspended. */
  tracked: boolean
  link: LinkTerms
}

/** A coupon code of an order, and the link that it belonged to when the order was created, or else the link that had it last. */
export interface SaleCoupon {
  /** Upper case. */
  code: string
  /** When the link had the code; `ends_at` is exclusive, and `null` while it has it. */
  starts_at: number
  ends_at: number | null
  /** The status of the link's offer when the order was created; `null` before the offer's creation. */
  offer_status: OfferStatus | null
  /** As for the click's creator. */
  creator_suspended: boolean
  buyer_is_creator: boolean
  buyer_name_matches: boolean
  link: LinkTerms
}

const CLICK_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** The click ids that an order's references can be, in their sequence; `null` for other text. */
export function clickIdsOf({ references }: Pick<OrderFacts, 'references'>): (string | null)[] {
  return references.map(({ reference }) => {
    const id = reference.toLowerCase()
    return CLICK_ID.test(id) ? id : null
  })
}

/** The storable part of an order, with the reference at `place`. Copies named fields only, so that a new field of `OrderFacts` is not stored by accident. */
export function saleOrderOf(order: OrderFacts, place = 0): SaleOrder {
  const { reference: text, source } = order.references[place] ?? { reference: '', source: null }
  const reference = text.toLowerCase()
  return {
    order_id: order.order_id,
    order_name: order.order_name,
    created_at: order.created_at,
    currency: order.currency,
    test: order.test,
    financial_status: order.financial_status,
    cancelled: order.cancelled,
    taxes_included: order.taxes_included,
    tracking_reference: CLICK_ID.test(reference) ? reference : null,
    tracking_source: source,
    ...(place > 0 && { references_passed_over: place }),
    lines: order.lines,
    ...(order.discount_spread !== undefined && { discount_spread: order.discount_spread }),
    ...(order.amount_refunded !== undefined && { amount_refunded: order.amount_refunded }),
    ...(order.unclear && { unclear: order.unclear }),
  }
}

/** Whether a line is of a product that the shop has deleted, and nothing says which. */
export function isUnknownProduct({ product_unknown, product_id }: OrderLine): boolean {
  return product_unknown === true && product_id === null
}

/**
 * The lines of an order, in which a product that the shop has deleted since is the one that an earlier report of the order names: in the
 * line of the same title and price. Two products with both leave it open; one that another line still names is not deleted.
 */
export function withKnownProducts(lines: readonly OrderLine[], earlier: readonly OrderLine[]): OrderLine[] {
  const present = new Set(lines.map(({ product_id }) => product_id))
  return lines.map((line) => {
    if (!isUnknownProduct(line)) return line
    const same = earlier.filter(
      ({ title, unit_price, product_id }) =>
        title === line.title && unit_price === line.unit_price && !present.has(product_id),
    )
    const [product_id = null, another] = new Set(same.flatMap((one) => one.product_id ?? []))
    return another === undefined ? { ...line, product_id } : line
  })
}

/** Whether one of the order's e-mails and the creator's reach the same mailbox. */
export function isBuyer(order: Pick<OrderFacts, 'buyer_emails'>, creatorEmail: string | null): boolean {
  if (creatorEmail === null) return false
  const mailbox = mailboxOf(creatorEmail.trim().toLowerCase())
  return order.buyer_emails.some((email) => mailboxOf(email.trim().toLowerCase()) === mailbox)
}

/** Whether one of the order's names equals one of these payout account titles, ignoring case, spacing and punctuation. */
export function hasBuyerName(order: OrderFacts, accountTitles: readonly string[]): boolean {
  const titles = new Set(accountTitles.map(plainName))
  return order.buyer_names.map(plainName).some((name) => name !== '' && titles.has(name))
}

function plainName(name: string): string {
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
}
