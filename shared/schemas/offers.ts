import { z } from 'zod'
import {
  idParam,
  lineOfText,
  longText,
  pageInput,
  pageOf,
  percent,
  percentFrom,
  unshownLine,
  wholeNumber,
  wireTime,
} from './common.ts'

export const offerStatus = z
  .enum(['draft', 'live', 'paused', 'ended'])
  .describe('Only a `live` offer is listed and earns; `ended` is final.')
export const vettingState = z
  .enum(['not_required', 'pending', 'approved', 'rejected'])
  .describe('Whether an admin must approve the offer, or has approved or rejected it.')
export const offerSort = z.enum(['newest', 'commission_desc', 'commission_asc'])
export type OfferSort = z.infer<typeof offerSort>

/** A user as others see them. */
export const party = z.object({
  id: idParam,
  display_name: z.string().describe('The name that others see.'),
})

export const commissionRate = percentFrom(0.01, 90).meta({
  description: "Percent of a sale's net amount, with at most two decimals.",
  example: 12.5,
})
const webAddress = unshownLine(1, 2048)
const productIds = z
  .array(
    z
      .string()
      .regex(/^\d{1,20}$/, "must be the store's product id in digits")
      .meta({ example: '8123456789012' }),
  )
  .min(1)
  .max(500)
  .nullable()
  .describe("The store's product ids that earn commission; null for every product.")

const editable = {
  title: lineOfText(1, 200).describe('Of the offer, as creators see it.'),
  description: longText(0, 5000).nullable().describe('For creators; may have line breaks.'),
  product_url: webAddress.meta({
    description: 'Where visitors are sent: https, a public host name, no credentials.',
    example: 'https://my-shop.pk/products/lawn-kurta',
  }),
  image_url: webAddress.nullable().describe('https, a public host name, no credentials.'),
  category: lineOfText(1, 60).describe('Creators search by it: `GET /categories` shows those in use.'),
  niche: lineOfText(1, 60).describe('A part of the category.'),
  commission_rate: commissionRate,
  attribution_window_days: wholeNumber(1, 365).describe(
    'How many days after a click an order still earns commission.',
  ),
  product_ids: productIds,
}

export const offer = z
  .object({
    id: idParam,
    merchant: party.describe('Whose offer it is.'),
    title: z.string().describe('As creators see it.'),
    description: z.string().nullable().describe('For creators.'),
    product_url: z.string().describe('Where visitors are sent.'),
    image_url: z.string().nullable().describe('A picture of the product.'),
    category: z.string().describe('As the merchant wrote it.'),
    niche: z.string().describe('A part of the category.'),
    commission_rate: percent,
    status: offerStatus,
    vetting: vettingState,
    vetting_reason: z.string().nullable().describe('Why an admin rejected the offer; null otherwise.'),
    attribution_window_days: z.int().describe('How many days after a click an order still earns commission.'),
    product_ids: z
      .array(z.string())
      .nullable()
      .describe('The products that earn commission; null for every product.'),
    paid_rate_90d: percent
      .nullable()
      .describe(
        "Percent of the offer's pending orders of the last 90 days that became sales, of those that are decided: how much of its cash on delivery arrives. Null below 20 of them.",
      ),
    created_at: wireTime,
    updated_at: wireTime,
  })
  .meta({ id: 'Offer' })
export type Offer = z.infer<typeof offer>

export const createOfferInput = z.strictObject({
  ...editable,
  description: editable.description.default(null),
  image_url: editable.image_url.default(null),
  attribution_window_days: editable.attribution_window_days.default(30),
  product_ids: editable.product_ids.default(null),
})

export const updateOfferInput = z.strictObject({
  id: idParam,
  ...z.object(editable).partial().shape,
})

export const setOfferStatusInput = z.strictObject({ id: idParam, status: offerStatus })
export const listOffersInput = z
  .strictObject({
    category: unshownLine(1, 60).optional().describe('Whole category, in any case and spelling.'),
    niche: unshownLine(1, 60).optional().describe('Whole niche, in any case and spelling.'),
    commission_min: percent.optional().describe('At least this commission rate, in percent.'),
    commission_max: percent.optional().describe('At most this commission rate, in percent.'),
    paid_rate_min: percent.optional().meta({
      description: 'At least this `paid_rate_90d`, in percent. An offer whose rate is null does not match.',
      example: 70,
    }),
    merchant_id: idParam.optional(),
    q: unshownLine(1, 200)
      .optional()
      .describe(
        'Words that title and description must hold together, in any case and order; of the last one the beginning is enough. Punctuation means nothing.',
      ),
    sort: offerSort
      .default('newest')
      .describe('`newest` goes by when an offer was made; equal commission rates come newest first.'),
    mine: z.boolean().default(false).describe('Own offers in every status; for merchants.'),
    status: offerStatus.optional().describe('With `mine` only: without it all that is listed is live.'),
    ...pageInput,
  })
  .prefault({})

export const offerPage = pageOf(offer)

export const offerCategories = z.object({
  items: z
    .array(
      z.object({
        category: z.string().describe('In its most used spelling.'),
        niche: z.string().describe('A part of the category.'),
        offers: z.int().min(1).describe('Live ones.'),
      }),
    )
    .describe('The most used first, at most 500. Spellings that a search takes for the same are one.'),
})
export type OfferCategories = z.infer<typeof offerCategories>
