import { FIXTURE_PRODUCT_ID } from '../fixtures/fill-fixture.ts'

/** The marketplace that `demo` shows and `seed` fills: its people, store and offers. The orders are the fixtures'. */
export const SHOP_DOMAIN = 'chenab-lawn.myshopify.com'
export const MERCHANT = { email: 'owner@chenab-lawn.example.pk', displayName: 'Chenab Lawn' }
export const ADMIN = { email: 'admin@example.pk', displayName: 'Admin' }
export const CREATORS = [
  { email: 'sana@reels.example.pk', displayName: 'Sana Mirza', iban: 'PK36SCBL0000001123456702' },
  { email: 'bilal@vlogs.example.pk', displayName: 'Bilal Ahmed', iban: 'PK29HABB0000001123456705' },
] as const
/** The merchant's account, where the processor requests invoices from it. */
export const BILLING_ACCOUNT = { iban: 'PK24SCBL0000001171495101' }
/** On the first creator's link to the first offer. */
export const COUPON_CODE = 'SANA10'

/** Rates in percent, as on the wire. The first one names the fixtures' product. */
export const OFFERS = [
  {
    title: 'Embroidered Lawn Suit, 3 Piece',
    product_url: `https://${SHOP_DOMAIN}/products/embroidered-lawn-suit`,
    category: 'Fashion',
    niche: 'Lawn',
    commission_rate: 10,
    attribution_window_days: 30,
    product_ids: [FIXTURE_PRODUCT_ID],
  },
  {
    title: 'Anything from the summer collection',
    product_url: `https://${SHOP_DOMAIN}/collections/summer`,
    category: 'Fashion',
    niche: 'Summer',
    commission_rate: 7.5,
    attribution_window_days: 14,
    product_ids: null,
  },
  {
    title: 'Hand-stitched Khussa',
    product_url: `https://${SHOP_DOMAIN}/products/khussa`,
    category: 'Footwear',
    niche: 'Khussa',
    commission_rate: 12.5,
    attribution_window_days: 30,
    product_ids: null,
  },
]
