import { z } from 'zod'
import {
  currency,
  idParam,
  moneyText,
  pageInput,
  pageOf,
  percent,
  wireTime,
  wireTimeInput,
} from './common.ts'

export const acceptanceStatus = z.enum(['accepted', 'rejected'])

export const sale = z
  .object({
    id: idParam,
    acceptance_status: acceptanceStatus,
    rejection_reason: z
      .string()
      .nullable()
      .meta({ description: 'The first check that failed.', example: null }),
    offer_id: idParam.nullable(),
    creator_id: idParam.nullable(),
    affiliate_link_slug: z.string().nullable(),
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
  })
  .meta({ id: 'Sale' })
export type Sale = z.infer<typeof sale>

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
          gross: moneyText,
          discount: moneyText,
          tax: moneyText,
          net: moneyText,
          counted: z.boolean(),
          why_not: z.string().nullable(),
        }),
      )
      .describe('How the net amount came about, line by line.'),
    net_amount: moneyText,
    commission_rate: percent.nullable(),
    commission: moneyText,
    platform_fee_rate: percent.optional().describe('For the merchant only.'),
    platform_fee: moneyText.optional().describe('For the merchant only.'),
    clicked_at: wireTime.nullable(),
    terms_locked_at: wireTime.nullable(),
  })
  .meta({ id: 'SaleReceipt' })
export type SaleReceiptWire = z.infer<typeof saleReceipt>

export const saleWithReceipt = sale.extend({ receipt: saleReceipt }).meta({ id: 'SaleWithReceipt' })

export const listSalesInput = z
  .strictObject({
    acceptance_status: acceptanceStatus.optional(),
    offer_id: idParam.optional(),
    from: wireTimeInput.optional().describe('Inclusive, on created_at.'),
    to: wireTimeInput.optional().describe('Exclusive, on created_at.'),
    ...pageInput,
  })
  .prefault({})
export const getSaleInput = z.strictObject({ id: idParam })
export const salePage = pageOf(sale)
