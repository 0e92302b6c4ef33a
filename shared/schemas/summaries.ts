import { z } from 'zod'
import { billingCycle } from './billing.ts'
import { currency, idParam, moneyText, wholeNumber, wireTime, wireTimeInput } from './common.ts'
import { UNIQUE_CLICKS } from './links.ts'
import { payout, payoutState } from './payouts.ts'
import { listedSale, rejectionReason } from './sales.ts'

const count = z.int().min(0).describe('How many.')

const outcomes = z
  .object({
    from: wireTime,
    to: wireTime.describe('Exclusive.'),
    accepted: count.describe('Accepted sales.'),
    attributed_by: z
      .object({ coupon: count, click: count })
      .describe('The accepted sales by what credits them to a link.'),
    commission: moneyText.describe('Of the accepted sales.'),
    rejected: count.describe('Rejected sales.'),
    rejected_by_reason: z
      .array(z.object({ reason: rejectionReason, sales: count }))
      .describe('The most frequent first.'),
  })
  .describe('Sales decided in the period.')

const waiting = {
  pending_orders: count.describe('Orders that wait for their payment now, such as cash on delivery.'),
  expected_commission: moneyText.describe('What these orders would pay if they were paid unchanged.'),
}

/** Why the next payout run would leave a creator out. */
export const payoutWait = z.enum([
  'below_threshold',
  'suspended',
  'no_destination',
  'destination_broken',
  'failed_three_times',
  'failure_not_confirmed',
])

export const creatorSummary = z
  .object({
    role: z.literal('creator').describe('Whose summary it is.'),
    clicks: count.describe('Tracked visits of all own links, ever; `from` and `to` do not apply.'),
    unique_clicks: count.describe(UNIQUE_CLICKS),
    sales: outcomes,
    ...waiting,
    pending: moneyText.describe('Earned in billing cycles that are not charged yet.'),
    released: moneyText.describe('Payable.'),
    in_transit: moneyText.describe('In payouts that the processor has not confirmed yet.'),
    paid: moneyText,
    payout_threshold: moneyText,
    next_payout: z
      .object({
        amount: moneyText.describe('What the next run pays, or would pay if it did not wait.'),
        waits_for: payoutWait.nullable().meta({ description: 'Null: the next run pays.', example: null }),
        missing: moneyText.describe('What is missing to the threshold.'),
        replaces_failed: z
          .boolean()
          .describe('It pays again what had failed: the run asks the processor about that payout first.'),
      })
      .describe('What the next payout run will make of the released balance, as things stand.'),
    currency,
  })
  .meta({ id: 'CreatorSummary' })
export type CreatorSummaryWire = z.infer<typeof creatorSummary>

const byOffer = z.object({
  offer_id: idParam,
  title: z.string().describe('As creators see it.'),
  sales: count,
  commission: moneyText,
  platform_fee: moneyText,
})

const byCreator = z.object({
  creator_id: idParam,
  display_name: z.string().describe('The name that others see.'),
  sales: count,
  commission: moneyText,
})

const openCycle = z.object({
  id: idParam,
  period_start: wireTime,
  period_end: wireTime.describe('Exclusive.'),
  sales: count,
  commission_total: moneyText,
  fee_total: moneyText,
  expected_credit: moneyText.describe('What of the available credit a close would use now.'),
  expected_amount_due: moneyText.describe('What would be invoiced if the cycle closed now.'),
  by_offer: z.array(byOffer).describe('Most commission first, `top` at most.'),
  by_creator: z.array(byCreator).describe('Most commission first, `top` at most.'),
})

export const merchantSummary = z
  .object({
    role: z.literal('merchant').describe('Whose summary it is.'),
    sales: outcomes,
    ...waiting,
    open_cycle: openCycle
      .nullable()
      .describe('The open billing cycle so far; null when nothing has been accepted since the last close.'),
    receivable: moneyText.describe('Invoiced, or about to be, and not paid yet.'),
    available_credit: moneyText.describe('Granted and not used by any cycle yet.'),
    currency,
  })
  .meta({ id: 'MerchantSummary' })
export type MerchantSummaryWire = z.infer<typeof merchantSummary>

export const summary = z.union([creatorSummary, merchantSummary])

export const summaryInput = z
  .strictObject({
    from: wireTimeInput.optional().describe('Inclusive; 30 days before `to` unless given.'),
    to: wireTimeInput.optional().describe('Exclusive; now unless given. At most 366 days after `from`.'),
    top: wholeNumber(1, 100).default(10).describe('How many offers and creators at most.'),
  })
  .prefault({})

const seriesKey = z.enum(['day', 'link', 'offer', 'sub_id']).describe('What the figures are grouped by.')
export type SeriesKey = z.infer<typeof seriesKey>

export const seriesInput = z.strictObject({
  by: seriesKey,
  from: wireTimeInput.optional().describe('Its whole day counts; 30 days before `to` unless given.'),
  to: wireTimeInput
    .optional()
    .describe('Exclusive, but its whole day counts; now unless given. At most 366 days after `from`.'),
})

export const series = z
  .object({
    items: z
      .array(
        z.object({
          key: z.string().meta({
            description: 'A date, the slug of a link, the id of an offer, or a sub id (empty: none).',
            example: '2026-11-20',
          }),
          label: z.string().meta({ description: 'For people.', example: '2026-11-20' }),
          clicks: count.describe('Tracked visits.'),
          unique_clicks: count.describe(UNIQUE_CLICKS),
          sales: count.describe('Accepted ones, by the day of their decision.'),
          rejected: count.describe('Rejected ones.'),
          net_amount: moneyText.describe('Of the accepted sales.'),
          commission: moneyText.describe('Of the accepted sales.'),
        }),
      )
      .describe('Days in order, also those without anything; others by commission, at most 1,000.'),
    currency,
    timezone: z.string().meta({ description: 'Where the days begin.', example: 'Asia/Karachi' }),
  })
  .meta({ id: 'Series' })
export type Series = z.infer<typeof series>

const at = wireTime.describe('When it happened.')

/** One event of a live stream: the resource as it is when it is sent, and the change that caused the event. */
export const liveEvent = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('start').describe('The stream has begun.'), at }),
  z.object({
    kind: z.literal('sale').describe('A sale was decided.'),
    at,
    sale: listedSale.describe('As it is now.'),
  }),
  z.object({
    kind: z.literal('payout').describe('A payout has changed.'),
    at,
    change: payoutState,
    payout: payout.describe('As it is now.'),
  }),
  z.object({
    kind: z.literal('billing_cycle').describe('A billing cycle has changed.'),
    at,
    change: z.enum(['opened', 'closed', 'invoiced', 'charged']).describe('The step that was taken.'),
    billing_cycle: billingCycle.describe('As it is now.'),
  }),
])
export type LiveEvent = z.infer<typeof liveEvent>

export const liveInput = z
  .strictObject({
    lastEventId: z
      .string()
      .max(2000)
      .optional()
      .describe('The id of the last event that arrived; sent by the client itself when it reconnects.'),
  })
  .prefault({})
