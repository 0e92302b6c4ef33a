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

export const acceptanceStatus = z
  .enum(['accepted', 'rejected'])
  .describe('An accepted sale earns commission.')
export const rejectionReason = z.enum(SALE_REJECTION_REASONS).describe('The first check that failed.')

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
  offer_id: idParam.nullable().describe('Of the link; null without one.'),
  creator_id: idParam.nullable().describe('Of the link; null without one.'),
  affiliate_link_slug: z
    .string()
    .nullable()
    .describe('Of the link that the order leads to; null without one.'),
  sub_id: subId.optional().describe('Of the click that earned it; for the creator only.'),
  store_id: idParam,
  order_id: z.string().meta({ description: "The store's own id of the order.", example: '5912345678901' }),
  order_name: z.string().nullable().meta({ description: 'As the store shows it.', example: '#1001' }),
  net_amount: moneyText.describe(
    'What commission is computed on: the products of the offer, without tax, shipping and discounts.',
  ),
  commission_rate: percent.nullable().describe('As locked on the link.'),
  commission: moneyText.describe('For the creator; 0.00 for a rejected sale.'),
  platform_fee: moneyText.optional().describe('For the merchant only.'),
  currency,
  billing_cycle_id: idParam.nullable().describe('That bills it; null for a rejected sale.'),
  ordered_at: wireTime.describe('When the order was created in the store.'),
  created_at: wireTime.describe('When the store reported it.'),
  decided_at: wireTime.describe(
    'When the decision was made; after created_at only for an order that was reported unpaid first.',
  ),
})
export type Sale = z.infer<typeof sale>

/** A sale with the names of its offer, creator and store. */
export const listedSale = sale
  .extend({
    offer: z
      .object({ id: idParam, title: z.string().describe('As creators see it.') })
      .nullable()
      .describe('That the link is for.'),
    creator: party.nullable().describe('Whose link it is.'),
    store: z
      .object({ id: idParam, shop_domain: z.string().describe('The `.myshopify.com` name of the shop.') })
      .describe('Where the order was made.'),
  })
  .meta({ id: 'Sale' })
export type ListedSale = z.infer<typeof listedSale>

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])

export const saleReceipt = z
  .object({
    rule_version: z.int().describe('Of the checks.'),
    checks: z
      .array(
        z.object({
          name: z.string().meta({
            description: 'The rejection reason if it fails.',
            example: 'outside_attribution_window',
          }),
          verdict: z
            .enum(['passed', 'failed', 'not_applicable'])
            .describe('The first failed check is the rejection reason.'),
          saw: z.record(z.string(), scalar).describe('What the check looked at.'),
        }),
      )
      .describe('In their order.'),
    lines: z
      .array(
        z.object({
          title: z.string().describe('As the store names the product.'),
          product_id: z.string().nullable().describe("The store's own id of the product."),
          quantity: z.int().describe('How many pieces.'),
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
          counted: z.boolean().describe('Whether it earns commission.'),
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
    commission_rate: percent.nullable().describe('As locked on the link.'),
    rate_source: z
      .enum(['offer', 'individual'])
      .nullable()
      .describe("Why the rate is what it is: the offer's at the approval, or one for this creator only."),
    offer_commission_rate: percent.nullable().describe("The offer's rate at the approval."),
    commission: moneyText,
    platform_fee_rate: percent.optional().describe('For the merchant only.'),
    platform_fee: moneyText.optional().describe('For the merchant only.'),
    attributed_by: z
      .enum(['coupon', 'click'])
      .nullable()
      .describe('What credits the order to the link; null without a link.'),
    tracked_by: z
      .enum(ORDER_SOURCES)
      .describe(
        'Where the order named its link: `cart` attribute, `line` property (buy now), `landing` page, `coupon` code in force, or `none`.',
      ),
    coupons: z
      .array(
        z.object({
          code: z.string().describe('Of the order.'),
          affiliate_link_slug: z.string().describe('Of the link that has or had the code.'),
          in_force: z
            .boolean()
            .describe('Whether the link had the code, with a live offer, when the order was created.'),
          starts_at: wireTime,
          ends_at: wireTime.nullable().describe('Null while the link has it.'),
          offer_status: offerStatus.nullable().describe('When the order was created.'),
        }),
      )
      .describe("The order's codes that belong or belonged to links. A creator sees own ones."),
    clicked_at: wireTime
      .nullable()
      .describe('The click that the order names, also when a coupon code comes before it.'),
    clicked_link_slug: z.string().nullable().describe('Of the link that was clicked.'),
    terms_locked_at: wireTime.nullable().describe('When the application was approved.'),
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
        state: z.enum(['open', 'closed', 'charged']).describe('`charged` is paid by the merchant.'),
        period_start: wireTime,
        period_end: wireTime,
        closed_at: wireTime.nullable().describe('When it was invoiced.'),
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
          state: z
            .enum(['pending', 'submitted', 'paid', 'failed'])
            .describe('As the processor confirmed it.'),
          share: moneyText.describe('What the payout carries of this billing cycle.'),
          replaces_payout_id: idParam
            .nullable()
            .describe('The failed payout before it that had carried the same share.'),
          created_at: wireTime,
          settled_at: wireTime.nullable().describe('When it was paid or failed.'),
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
    merchant: party.describe('Whose store it is.'),
    receipt: saleReceipt.describe('How the decision came about.'),
    former_decisions: z
      .array(
        z.object({
          decided_at: wireTime,
          acceptance_status: acceptanceStatus,
          rejection_reason: rejectionReason.nullable().describe('The first check that failed.'),
          receipt: saleReceipt.describe('How that decision came about.'),
        }),
      )
      .describe(
        'A sale rejected as not_paid is decided again when its order is reported as paid. A creator sees what was decided about own links.',
      ),
    outcome: saleOutcome.describe('What became of it: billing and payouts.'),
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
    affiliate_link_slug: unshownLine(1, 60).optional().describe('The last part of a link.'),
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
