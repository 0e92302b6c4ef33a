import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { FIXTURE_PRODUCT_ID } from '../../fixtures/fill-fixture.ts'
import { type Paisa, parseMoney } from '../../shared/money.ts'

/** Who takes part, and under which terms. The orders are those of a lawn shop, from the fixtures. */
export const MERCHANT = { email: 'owner@chenab-lawn.example.pk', name: 'Chenab Lawn' }
export const CREATOR = { email: 'sana@reels.example.pk', name: 'Sana Mirza' }
export const OTHER_CREATOR = { email: 'bilal@vlogs.example.pk', name: 'Bilal Ahmed' }
export const SHOP_DOMAIN = 'chenab-lawn.myshopify.com'
export const DESTINATION = { iban: 'PK36SCBL0000001123456702', account_title: 'SANA MIRZA' }
/** The merchant's, where the processor requests invoices from an account. */
export const BILLING_ACCOUNT = { iban: 'PK24SCBL0000001171495101' }
export const COUPON_CODE = 'SANA10'
export const FAILURE_REASON = 'the account is closed for credits today'
/** 10 % is also the default platform fee, of the commission, on top of it. */
export const OFFER = {
  title: 'Embroidered Lawn Suit, 3 Piece',
  product_url: 'https://chenab-lawn.myshopify.com/products/embroidered-lawn-suit?variant=42',
  category: 'Fashion',
  niche: 'Lawn',
  commission_rate: 10,
  attribution_window_days: 30,
  product_ids: [FIXTURE_PRODUCT_ID],
}

/** Sent while the first billing cycle is open: the fixture, and what it is in a few words. */
const FIRST_ORDERS: [file: string, what: string][] = [
  ['note-attributes-before-landing-site.json', 'reference kept in the cart'],
  ['named-product-among-others.json', 'only the offer’s product counts'],
  ['cash-on-delivery-paid-late.json', 'cash on delivery, paid 20 days later'],
  ['coupon-code.json', 'the creator’s coupon code, without a click'],
  ['test-order.json', 'test order'],
  ['other-currency.json', 'paid in US dollars'],
  ['unknown-reference.json', 'reference of no click'],
  ['outside-attribution-window.json', 'ordered 31 days after the click'],
  ['self-purchase.json', 'bought by the creator'],
  ['other-product.json', 'another product'],
]
/** Sent after that cycle has been closed, so that something is left unbilled in the end. */
const LATER_ORDER: [file: string, what: string] = ['id-above-2-53.json', 'an order id above 2^53']

const manifest = z.array(
  z.object({
    file: z.string(),
    order_id: z.string(),
    order_name: z.string(),
    expect: z.object({
      acceptance_status: z.enum(['accepted', 'rejected']),
      rejection_reason: z.string().nullable(),
      net_amount: z.string(),
      commission: z.string(),
      platform_fee: z.string(),
    }),
  }),
)

/** An order of the story, and what the fixtures' manifest says must come of it. Amounts in paisa. */
export interface StoryOrder {
  what: string
  orderId: string
  orderName: string
  /** The webhook's body, placeholders not filled yet. */
  template: string
  accepted: boolean
  rejectionReason: string | null
  net: Paisa
  commission: Paisa
  fee: Paisa
}

export interface StoryOrders {
  first: StoryOrder[]
  later: StoryOrder
}

const FIXTURES = new URL('../../fixtures/', import.meta.url)

/** Reads the orders of the story and what the manifest expects of them. */
export function readStoryOrders(): StoryOrders {
  const entries = manifest.parse(
    JSON.parse(readFileSync(new URL('store-sales.manifest.json', FIXTURES), 'utf8')),
  )
  const order = ([file, what]: [string, string]): StoryOrder => {
    const entry = entries.find((one) => one.file === file)
    if (!entry) throw new Error(`the manifest of the fixtures does not name ${file}`)
    return {
      what,
      orderId: entry.order_id,
      orderName: entry.order_name,
      template: readFileSync(new URL(`store-sales/${file}`, FIXTURES), 'utf8'),
      accepted: entry.expect.acceptance_status === 'accepted',
      rejectionReason: entry.expect.rejection_reason,
      net: paisa(entry.expect.net_amount),
      commission: paisa(entry.expect.commission),
      fee: paisa(entry.expect.platform_fee),
    }
  }
  return { first: FIRST_ORDERS.map(order), later: order(LATER_ORDER) }
}

/** Reads an amount of the wire. Throws on anything else: neither fixture nor service may say it otherwise. */
export function paisa(text: string): Paisa {
  const amount = parseMoney(text)
  if (amount === null) throw new Error(`"${text}" is no amount`)
  return amount
}
