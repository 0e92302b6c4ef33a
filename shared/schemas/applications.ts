import { z } from 'zod'
import { idParam, longText, pageInput, pageOf, percent, unshownLine, wireTime } from './common.ts'
import { couponCode, couponCodeInput, linkReference } from './links.ts'
import { commissionRate, party } from './offers.ts'

export const applicationStatus = z
  .enum(['pending', 'approved', 'rejected', 'withdrawn'])
  .describe('Decided by the merchant; `withdrawn` by the creator.')

export const application = z
  .object({
    id: idParam,
    offer_id: idParam,
    offer: z
      .object({ id: idParam, title: z.string().describe('As creators see it.') })
      .describe('That it is for, in any status.'),
    creator: party.describe('Who applies.'),
    status: applicationStatus,
    message: z.string().nullable().describe('To the merchant.'),
    promotion_url: z.string().nullable().describe('Where the creator will promote the offer.'),
    locked_commission_rate: percent.nullable().describe('The rate of the approval; null before it.'),
    affiliate_link: linkReference
      .extend({
        coupon_code: couponCode
          .nullable()
          .describe('The code that credits orders of the store to the link, now.'),
        ended_at: wireTime.nullable().describe('When the merchant ended it.'),
      })
      .nullable()
      .describe('Made by the approval.'),
    decision_reason: z.string().nullable().describe("The merchant's, for the creator to read."),
    decided_at: wireTime.nullable().describe('When the merchant decided, or the creator withdrew.'),
    created_at: wireTime,
  })
  .meta({ id: 'Application' })
export type Application = z.infer<typeof application>

export const applyInput = z.strictObject({
  id: idParam,
  message: longText(0, 2000).nullable().default(null).describe('To the merchant.'),
  promotion_url: unshownLine(1, 2048)
    .nullable()
    .default(null)
    .describe('Where the creator will promote the offer: https, a public host name.'),
})

export const listOfferApplicationsInput = z.strictObject({
  id: idParam,
  status: applicationStatus.optional(),
  ...pageInput,
})
export const listApplicationsInput = z
  .strictObject({ status: applicationStatus.optional(), ...pageInput })
  .prefault({})

export const decideApplicationInput = z.strictObject({
  id: idParam,
  decision: z.enum(['approve', 'reject']).describe('Final; an approval makes the link.'),
  reason: longText(0, 1000).nullable().default(null).describe('For the creator to read.'),
  coupon_code: couponCodeInput
    .nullable()
    .default(null)
    .describe(
      "With an approval: a discount code of the merchant's store that credits its orders to the link.",
    ),
  commission_rate: commissionRate
    .optional()
    .describe("With an approval: a rate for this creator in place of the offer's. Locked on the link."),
})

export const applicationPage = pageOf(application)
