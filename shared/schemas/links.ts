import { z } from 'zod'
import { currency, idParam, longText, moneyText, pageInput, pageOf, percent, wireTime } from './common.ts'
import { offerStatus, party } from './offers.ts'

export const slug = z
  .string()
  .min(1)
  .max(64)
  .meta({ description: 'The last part of a link.', example: 'k7m2xq9wpd' })

/** A discount code of the merchant's store that credits its orders to a link. */
export const couponCode = z
  .string()
  .regex(/^[A-Z0-9_-]{3,40}$/)
  .meta({ description: 'Compared without case.', example: 'SANA10' })

/** A coupon code as it is sent: → upper case. Letters of other alphabets whose upper case is in A to Z, such as ı, are refused. */
export const couponCodeInput = z
  .string()
  .regex(/^\s*[A-Za-z0-9_-]{3,40}\s*$/, 'must be 3 to 40 letters A to Z, digits, hyphens or underscores')
  .transform((text) => text.trim().toUpperCase())
  .meta({ description: 'Stored in upper case, without spaces around it.', example: 'SANA10' })

const linkUrl = z.string().meta({
  description: 'The address to share.',
  example: 'https://go.example.com/go/k7m2xq9wpd',
})

/** The creator's own mark of a placement: the parameter `sub` of the link's address. */
export const subId = z
  .string()
  .nullable()
  .meta({ description: "The creator's own mark of the placement: `sub` of the visit.", example: 'reel-12' })

/** What a link needs to name itself on other resources. */
export const linkReference = z.object({ slug, url: linkUrl })

export const UNIQUE_CLICKS =
  'Of `clicks`, without repeats of a counted visit: a visitor, recognized by address and browser, counts once an hour per link. Approximate: counted visits are kept in memory only, and many phones of one carrier share an address and a browser text, so fewer are counted than came. A low share of `clicks` is no sign of fraud.'

const linkedOffer = z.object({
  id: idParam,
  title: z.string().describe('As creators see it.'),
  category: z.string().describe('As the merchant wrote it.'),
  niche: z.string().describe('A part of the category.'),
  status: offerStatus,
  merchant: party.describe('Whose offer it is.'),
})

export const resolvedLink = z
  .object({
    slug,
    url: linkUrl,
    active: z.boolean().describe('Whether visitors who follow it can earn the creator commission now.'),
    creator: party.describe('Who shares it.'),
    offer: linkedOffer.describe('What it leads to.'),
    coupon_code: couponCode
      .nullable()
      .optional()
      .describe("For the link's merchant and creator and for admins only."),
  })
  .meta({ id: 'ResolvedLink' })
export type ResolvedLink = z.infer<typeof resolvedLink>

export const affiliateLink = z
  .object({
    id: idParam,
    slug,
    url: linkUrl,
    active: z.boolean().describe('Whether visitors who follow it can earn the creator commission now.'),
    coupon_code: couponCode
      .nullable()
      .describe('The code that credits orders of the store to this link, now.'),
    offer: linkedOffer.describe('What it leads to.'),
    creator: party.describe('Who shares it.'),
    product_host: z
      .string()
      .meta({ example: 'my-shop.pk' })
      .describe('The host name that the link leads to now. Its merchant can change the product address.'),
    commission_rate: percent.describe('Locked at the approval, like window and products.'),
    offer_commission_rate: percent
      .nullable()
      .describe(
        "The offer's rate at the approval where the merchant gave this creator another one; else null.",
      ),
    attribution_window_days: z.int().describe('How many days after a click an order still earns commission.'),
    product_ids: z
      .array(z.string())
      .nullable()
      .describe('The products that earn commission; null for every product.'),
    clicks: z
      .int()
      .describe('Tracked visits; without bots, prefetches, HEAD requests and embedded elements.'),
    unique_clicks: z.int().describe(UNIQUE_CLICKS),
    accepted_sales: z.int().describe('Ever.'),
    commission_earned: moneyText.describe('Of the accepted sales.'),
    currency,
    created_at: wireTime,
    ended_at: wireTime.nullable().describe('When the merchant ended it, for good.'),
    end_reason: z.string().nullable().describe("The merchant's, for the creator to read."),
  })
  .meta({ id: 'AffiliateLink' })
export type AffiliateLink = z.infer<typeof affiliateLink>

export const resolveLinkInput = z.strictObject({ slug })
const endReason = longText(1, 1000).nullable().optional().describe('For the creator to read.')
export const endLinkInput = z.strictObject({
  slug,
  status: z.literal('ended').describe('For good.'),
  reason: endReason,
})
export const changeLinkInput = z
  .strictObject({
    slug,
    coupon_code: couponCodeInput
      .nullable()
      .optional()
      .describe('The code that credits orders to the link from now on; null takes it away.'),
    status: z.literal('ended').optional().describe('Ends the link for good.'),
    reason: endReason,
  })
  .refine(({ coupon_code, status }) => (coupon_code === undefined) !== (status === undefined), {
    path: ['coupon_code'],
    message: 'or status is required, and not both',
  })
  .refine(({ status, reason }) => status !== undefined || !reason, {
    path: ['reason'],
    message: 'is for the end of a link only',
  })
export const listLinksInput = z.strictObject({ offer_id: idParam.optional(), ...pageInput }).prefault({})
export const linkPage = pageOf(affiliateLink)
