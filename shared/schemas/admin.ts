import { z } from 'zod'
import {
  currency,
  idParam,
  longText,
  moneyInput,
  moneyText,
  pageInput,
  pageOf,
  percent,
  wireTime,
} from './common.ts'

/** Every kind of thing that is put before a person. */
export const flagKind = z
  .enum([
    'event_set_aside',
    'event_body_conflict',
    'processor_event_unmapped',
    'payment_amount_mismatch',
    'second_payment_reference',
    'payout_amount_mismatch',
    'payout_contradiction',
    'processor_refusal',
    'invoice_failed',
    'payment_reversed',
    'account_title_differs',
    'processor_balance_low',
    'events_undelivered',
    'processor_disagrees',
    'reconciliation_difference',
    'payout_failed_repeatedly',
    'payout_destination_replaced',
    'billing_account_replaced',
    'billing_account_missing',
    'click_velocity',
    'conversion_unusual',
    'self_purchase',
    'integrity_violation',
    'shared_iban',
    'shared_mailbox',
    'rejected_sales_burst',
    'order_changed',
    'order_date_suspicious',
    'click_reused',
    'coupon_leak',
    'tracking_source_shift',
    'store_silent',
    'store_rejecting',
    'conversion_dropped',
    'offer_paused_in_traffic',
    'orders_in_pauses',
    'cycle_unpaid',
    'offer_vetting',
    'credit_request',
    'domain_shared',
    'product_host_unverified',
    'run_failed',
  ])
  .meta({ example: 'self_purchase' })
export type FlagKindWire = z.infer<typeof flagKind>

export const flagSeverity = z.enum(['low', 'medium', 'high'])
export const flagStatus = z.enum(['open', 'resolved'])

export const flag = z
  .object({
    id: idParam,
    kind: flagKind,
    severity: flagSeverity,
    subject_type: z.string().meta({ example: 'user' }),
    subject_id: z.string().describe('The id of what it is about.'),
    summary: z.string().describe('One sentence for the person who looks.'),
    evidence: z
      .record(z.string(), z.unknown())
      .describe('What led to it, and the latest of it while the flag is open; its fields depend on the kind.')
      .meta({ example: { self_purchases: 2, within_days: 30 } }),
    status: flagStatus,
    note: z.string().nullable().describe('Of the person who resolved it.'),
    created_at: wireTime,
    resolved_at: wireTime.nullable(),
  })
  .meta({ id: 'Flag' })
export type FlagWire = z.infer<typeof flag>

export const listFlaggedInput = z
  .strictObject({
    kind: flagKind.optional(),
    severity: flagSeverity.optional(),
    status: flagStatus.default('open'),
    ...pageInput,
  })
  .prefault({})
export const flagPage = pageOf(flag)

export const resolveFlagInput = z.strictObject({
  id: idParam,
  note: longText(1, 2000).describe('What was found and done.'),
})

const reason = longText(1, 2000).optional()

export const vetOfferInput = z.strictObject({
  id: idParam,
  decision: z.enum(['approve', 'reject']),
  reason,
  commission_rate: percent
    .optional()
    .describe('The rate that the decision is about: refused when the offer has another by now.'),
})

export const suspensionInput = z.strictObject({ id: idParam, reason })

export const requestCreditInput = z.strictObject({
  id: idParam,
  amount: moneyInput.refine((text) => /[1-9]/.test(text), 'must be more than nothing'),
  reason: longText(1, 2000),
})

export const creditRequest = z
  .object({
    flag_id: idParam.describe('The flag that an operator decides on.'),
    sale_id: idParam,
    amount: moneyText,
    currency,
    reason: z.string(),
    status: z.literal('pending').describe('An operator grants or declines it; no money has moved.'),
    created_at: wireTime,
  })
  .meta({ id: 'CreditRequest' })
