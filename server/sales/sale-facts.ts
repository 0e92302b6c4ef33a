import type { BasisPoints } from '../../shared/rates.ts'
import { mailboxOf } from '../moderation/mailbox.rule.ts'
import type { OrderFacts, OrderLine } from '../shopify/order-facts.ts'
import type { TrackingSource } from '../shopify/tracking.ts'

/**
 * Everything that the decision about one sale looks at. It is stored on the receipt for ever and shown to merchant and creator, so
 * nothing in it may describe the buyer; and it is plain JSON, so that the decision can be replayed from the stored copy.
 * Times are epoch ms.
 */
export interface SaleFacts {
  order: SaleOrder
  /** Whether the order's e-mail reaches the creator's mailbox; this and the next field are all that is kept of the buyer. */
  buyer_is_creator: boolean
  /**
   * Whether the buyer's name is the title of a payout account of the creator. Names repeat, so it rejects nothing; it counts for the
   * flag `self_purchase`. Missing on receipts of version 1. Never shown: it would tell the merchant the creator's legal name.
   */
  buyer_name_matches?: boolean
  /** The owner of the store that sent the order. */
  reporting_merchant_id: string
  /** The click that the tracking reference names; `null` when there is none. */
  click: SaleClick | null
  /** Suspensions at the moment of processing: of the link's creator (false without a click), and of the reporting merchant. */
  creator_suspended: boolean
  merchant_suspended: boolean
  /** Share of the commission that the platform bills on top. */
  platform_fee_rate: BasisPoints
}

export interface SaleOrder {
  order_id: string
  order_name: string
  created_at: number
  currency: string
  test: boolean
  financial_status: string | null
  cancelled: boolean
  taxes_included: boolean
  /**
   * The id of a click as the store sent it. `null` beside a source means that something stood there which cannot be one of our
   * ids; it is not kept, because a visitor can write anything into an address, also somebody's name.
   */
  tracking_reference: string | null
  tracking_source: TrackingSource | null
  lines: OrderLine[]
}

export interface SaleClick {
  id: string
  created_at: number
  /** False for a click that was redirected without a reference: offer not live, or creator suspended. */
  tracked: boolean
  link: LinkTerms
}

/** The link of the click, with the terms that its approval locked. */
export interface LinkTerms {
  id: string
  slug: string
  merchant_id: string
  offer_id: string
  creator_id: string
  commission_rate: BasisPoints
  attribution_window_days: number
  /** `null` (or an empty list) when the offer names no products: every line counts then. */
  product_ids: string[] | null
  locked_at: number
}

const CLICK_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** The part of an order that may be kept: field by field, so that a new field of `OrderFacts` does not slip in unseen. */
export function saleOrderOf(order: OrderFacts): SaleOrder {
  const reference = order.tracking_reference?.toLowerCase() ?? ''
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
    tracking_source: order.tracking_source,
    lines: order.lines,
  }
}

/** Whether the order's e-mail and the creator's reach one mailbox; false when the order has none. */
export function isBuyer(order: OrderFacts, creatorEmail: string | null): boolean {
  if (order.buyer_email === null || creatorEmail === null) return false
  return mailboxOf(order.buyer_email.trim().toLowerCase()) === mailboxOf(creatorEmail.trim().toLowerCase())
}

/** Whether one of the order's names is the title of one of these payout accounts; case, spacing and punctuation do not count. */
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
