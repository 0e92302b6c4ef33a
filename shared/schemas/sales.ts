import { z } from 'zod'
import { SALE_REJECTION_REASONS } from '../rejection-reasons.ts'
import { creditRequest } from './admin.ts'
import {
  currency,
  idParam,
  isInOrder,
  moneyText,
  NOT_IN_ORDER,
  pageInput,
  pageOf,
  percent,
  unshownLine,
  wireTime,
  wireTimeInput,
} from './common.ts'
import { subId } from './links.ts'
import { offerStatus, party } from './offers.ts'
import { ORDER_SOURCES } from './stores.ts'

export const acceptanceStatus = z.enum(['accepted', 'rejected'])
export const rejectionReason = z.enum(SALE_REJECTION_REASONS)

export const sale = z.object({
  id: idParam,
  acceptance_status: acceptanceStatus,
  rejection_reason: rejectionReason
    .nullable()
    .meta({ description: 'The first check that failed.', example: null }),
  attributed_by: z
    .enum(['coupon', 'click'])
    .nullable()
    .describe('What credits the order to the link; null without a link.'),
  offer_id: idParam.nullable(),
  creator_id: idParam.nullable(),
  affiliate_link_slug: z.string().nullable(),
  sub_id: subId.optional().describe('Of the click that earned it; for the creator only.'),
  store_id: idParam,
  order_id: z.string().meta({ description: "The store's own id of the order.", example: '5912345678901' }),
  order_name: z.string().nullable().meta({ example: '#1001' }),
  net_amount: moneyText,
  commission_rate: percent.nullable(),
  commission: moneyText,
  platform_fee: moneyText.optional().describe('For the merchant only.'),
  currency,
  billing_cycle_id: idParam.nullable(),
  ordered_at: wireTime,
  created_at: wireTime,
  decided_at: wireTime.describe(
    'When the decision was made; after created_at only for an order that was reported unpaid first.',
  ),
})
export type Sale = z.infer<typeof sale>

/** A sale with the names of its offer, creator and store. */
export const listedSale = sale
  .extend({
    offer: z.object({ id: idParam, title: z.string() }).nullable(),
    creator: party.nullable(),
    store: z.object({ id: idParam, shop_domain: z.string() }),
  })
  .meta({ id: 'Sale' })
export type ListedSale = z.infer<typeof listedSale>

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])

export const saleReceipt = z
  .object({
    rule_version: z.int(),
    checks: z.array(
      z.object({
        name: z.string().meta({ example: 'outside_attribution_window' }),
        verdict: z.enum(['passed', 'failed', 'not_applicable']),
        saw: z.record(z.string(), scalar).describe('What the check looked at.'),
      }),
    ),
    lines: z
      .array(
        z.object({
          title: z.string(),
          product_id: z.string().nullable(),
          quantity: z.int(),
          unit_price: z
            .string()
            .regex(/^\d{1,13}\.\d{2,20}$/)
            .meta({
              description: 'Rupees as the store sent them, with at least two places.',
              example: '4999.00',
            }),
          gross: moneyText,
          discount: moneyText,
          tax: moneyText,
          refunded: moneyText
            .optional()
            .describe('The share of an amount that was refunded without naming items.'),
          net: moneyText,
          counted: z.boolean(),
          why_not: z
            .string()
            .nullable()
            .describe('`gift_card`, `tip`, `fee` or `other_product`; null for a line that counts.'),
        }),
      )
      .describe(
        'How the net amount came about, line by line. A creator sees the lines that count, a merchant all of them.',
      ),
    discount_spread: moneyText
      .optional()
      .describe('Discounts of the order that no line carried; they are part of the discounts of its lines.'),
    amount_refunded: moneyText
      .optional()
      .describe('Refunded without naming items; deducted from all lines in proportion.'),
    unclear: z
      .array(z.enum(['discount', 'refund', 'subtotal']))
      .optional()
      .describe('What the order does not tell about its amounts. An operator is asked to look.'),
    lines_left_out: z.int().describe('Lines of the order that do not count and are not shown.'),
    net_amount: moneyText,
    commission_rate: percent.nullable(),
    rate_source: z
      .enum(['offer', 'individual'])
      .nullable()
      .describe("Why the rate is what it is: the offer's at the approval, or one for this creator only."),
    offer_commission_rate: percent.nullable().describe("The offer's rate at the approval."),
    commission: moneyText,
    platform_fee_rate: percent.optional().describe('For the merchant only.'),
    platform_fee: moneyText.optional().describe('For the merchant only.'),
    attributed_by: z.enum(['coupon', 'click']).nullable(),
    tracked_by: z
      .enum(ORDER_SOURCES)
      .describe(
        'Where the order named its link: `cart` attribute, `line` property (buy now), `landing` page, `coupon` code in force, or `none`.',
      ),
    coupons: z
      .array(
        z.object({
          code: z.string(),
          affiliate_link_slug: z.string(),
          in_force: z
            .boolean()
            .describe('Whether the link had the code, with a live offer, when the order was created.'),
          starts_at: wireTime,
          ends_at: wireTime.nullable(),
          offer_status: offerStatus.nullable().describe('When the order was created.'),
        }),
      )
      .describe("The order's codes that belong or belonged to links. A creator sees own ones."),
    clicked_at: wireTime
      .nullable()
      .describe('The click that the order names, also when a coupon code comes before it.'),
    clicked_link_slug: z.string().nullable(),
    terms_locked_at: wireTime.nullable(),
    attribution_window_days: z.int().nullable().describe('As locked with the other terms.'),
    product_ids: z.array(z.string()).nullable().describe('As locked; null stands for every product.'),
  })
  .meta({ id: 'SaleReceipt' })
export type SaleReceiptWire = z.infer<typeof saleReceipt>

export const saleOutcome = z
  .object({
    billing_cycle: z
      .object({
        id: idParam,
        state: z.enum(['open', 'closed', 'charged']),
        period_start: wireTime,
        period_end: wireTime,
        closed_at: wireTime.nullable(),
        charged_at: wireTime.nullable().describe('When the payment released the commission to the creator.'),
        creator_share: moneyText.describe("The creator's commission in this whole cycle."),
        amount_due: moneyText.nullable().optional().describe('For the merchant only; null while open.'),
        credit_total: moneyText.nullable().optional().describe('For the merchant only; null while open.'),
        processor_invoice_id: z.string().nullable().optional().describe('For the merchant only.'),
        processor_payment_reference: z.string().nullable().optional().describe('For the merchant only.'),
      })
      .nullable()
      .describe('Null for a rejected sale: nothing is billed for it.'),
    payouts: z
      .array(
        z.object({
          id: idParam,
          state: z.enum(['pending', 'submitted', 'paid', 'failed']),
          share: moneyText.describe('What the payout carries of this billing cycle.'),
          replaces_payout_id: idParam
            .nullable()
            .describe('The failed payout before it that had carried the same share.'),
          created_at: wireTime,
          settled_at: wireTime.nullable(),
          amount: moneyText.optional().describe('Of the whole payout; for the creator only.'),
          processor_payout_id: z.string().nullable().optional().describe('For the creator only.'),
          failure_reason: z.string().nullable().optional().describe('For the creator only.'),
        }),
      )
      .describe("How the creator's share went out, failed payouts included, oldest first."),
  })
  .meta({ id: 'SaleOutcome' })
export type SaleOutcomeWire = z.infer<typeof saleOutcome>

export const saleWithReceipt = listedSale
  .extend({
    merchant: party,
    receipt: saleReceipt,
    former_decisions: z
      .array(
        z.object({
          decided_at: wireTime,
          acceptance_status: acceptanceStatus,
          rejection_reason: rejectionReason.nullable(),
          receipt: saleReceipt,
        }),
      )
      .describe(
        'A sale rejected as not_paid is decided again when its order is reported as paid. A creator sees what was decided about own links.',
      ),
    outcome: saleOutcome,
    credit_request: creditRequest
      .nullable()
      .optional()
      .describe('The last one about this sale. For the merchant only.'),
  })
  .meta({ id: 'SaleWithReceipt' })
export type SaleWithReceipt = z.infer<typeof saleWithReceipt>

export const listSalesInput = z
  .strictObject({
    acceptance_status: acceptanceStatus.optional(),
    rejection_reason: rejectionReason.optional(),
    offer_id: idParam.optional(),
    creator_id: idParam.optional(),
    affiliate_link_slug: unshownLine(1, 60).optional(),
    store_id: idParam.optional(),
    billing_cycle_id: idParam.optional().describe('The sales that an invoice is made of.'),
    order_id: unshownLine(1, 60).optional().describe("The store's own id of the order."),
    order_name: unshownLine(1, 60)
      .optional()
      .meta({ description: 'Repeats across stores.', example: '#1001' }),
    from: wireTimeInput.optional().describe('Inclusive, on created_at.'),
    to: wireTimeInput.optional().describe('Exclusive, on created_at.'),
    ...pageInput,
  })
  .refine(isInOrder, NOT_IN_ORDER)
  .prefault({})
export const salePage = pageOf(listedSale)
