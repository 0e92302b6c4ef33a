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
  role,
  unshownLine,
  wireTime,
} from './common.ts'
import { user } from './users.ts'

export const flagSeverity = z.enum(['low', 'medium', 'high']).describe('How soon to look: `high` first.')
export type FlagSeverity = z.infer<typeof flagSeverity>

/** Every kind of thing that is put before a person, with its severity. */
export const FLAG_KINDS = {
  event_set_aside: 'high',
  event_body_conflict: 'high',
  processor_event_unmapped: 'high',
  payment_amount_mismatch: 'high',
  second_payment_reference: 'high',
  payout_amount_mismatch: 'high',
  payout_contradiction: 'high',
  processor_refusal: 'high',
  invoice_failed: 'medium',
  payment_reversed: 'high',
  account_title_differs: 'high',
  processor_balance_low: 'high',
  events_undelivered: 'high',
  processor_disagrees: 'high',
  reconciliation_difference: 'high',
  bank_statement_difference: 'high',
  payout_failed_repeatedly: 'medium',
  payout_destination_replaced: 'medium',
  billing_account_replaced: 'medium',
  billing_account_missing: 'medium',
  click_velocity: 'medium',
  conversion_unusual: 'medium',
  self_purchase: 'medium',
  integrity_violation: 'high',
  shared_iban: 'high',
  shared_mailbox: 'high',
  rejected_sales_burst: 'medium',
  order_changed: 'medium',
  order_date_suspicious: 'medium',
  order_unclear: 'medium',
  click_reused: 'high',
  coupon_leak: 'medium',
  tracking_source_shift: 'medium',
  store_silent: 'medium',
  store_rejecting: 'medium',
  conversion_dropped: 'medium',
  offer_paused_in_traffic: 'medium',
  orders_in_pauses: 'medium',
  cycle_unpaid: 'medium',
  offer_vetting: 'low',
  credit_request: 'medium',
  domain_shared: 'high',
  product_host_unverified: 'medium',
  run_failed: 'high',
} as const satisfies Record<string, FlagSeverity>
export type FlagKind = keyof typeof FLAG_KINDS

export const flagKind = z
  .enum(Object.keys(FLAG_KINDS) as FlagKind[])
  .meta({ description: 'What was found.', example: 'self_purchase' })
export const flagStatus = z.enum(['open', 'resolved']).describe('Open until a person resolves it.')

export const flag = z
  .object({
    id: idParam,
    kind: flagKind,
    severity: flagSeverity,
    subject_type: z.string().meta({ description: 'What it is about.', example: 'user' }),
    subject_id: z.string().describe('The id of what it is about.'),
    summary: z.string().describe('One sentence for the person who looks.'),
    evidence: z
      .record(z.string(), z.unknown())
      .describe('What led to it, and the latest of it while the flag is open; its fields depend on the kind.')
      .meta({ example: { self_purchases: 2, within_days: 30 } }),
    status: flagStatus,
    note: z.string().nullable().describe('Of the person who resolved it.'),
    created_at: wireTime,
    resolved_at: wireTime.nullable().describe('Null while it is open.'),
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

const reason = longText(1, 2000).optional().describe('For the account concerned and the audit trail.')

export const vetOfferInput = z.strictObject({
  id: idParam,
  decision: z.enum(['approve', 'reject']).describe('Whether the offer may have its commission rate.'),
  reason,
  commission_rate: percent
    .optional()
    .describe('The rate that the decision is about: refused when the offer has another by now.'),
})

export const listUsersInput = z
  .strictObject({
    q: unshownLine(1, 200).optional().describe('A part of the e-mail address or the name, in any case.'),
    role: role.optional(),
    suspended: z.boolean().optional().describe('Suspended accounts only, or active ones only.'),
    ...pageInput,
  })
  .prefault({})
export const userPage = pageOf(user)

export const suspensionInput = z.strictObject({ id: idParam, reason })

const howMany = (description: string) => z.int().min(0).describe(description)
const sumOf = (description: string) =>
  z.object({ count: howMany('How many.'), amount: moneyText.describe('Together.') }).describe(description)
const pendingApplications = howMany('Applications that stay pending.')

export const suspensionPreview = z
  .object({
    sessions: howMany('Open sessions, which end.'),
    api_keys: howMany('API keys, which end.'),
    creator: z
      .object({
        links: howMany('Links that go on leading to the shop and earn nothing more.'),
        pending_applications: pendingApplications,
        payouts_pending: sumOf('Payouts not sent yet, which wait.'),
        payouts_submitted: sumOf('Payouts already sent, which run on.'),
        balance_pending: moneyText.describe('Stays: earned in billing cycles that are not charged yet.'),
        balance_released: moneyText.describe('Stays: payable.'),
      })
      .nullable()
      .describe('Null unless the account is a creator.'),
    merchant: z
      .object({
        stores: howMany('Stores whose orders are rejected.'),
        live_offers: howMany('Offers that leave the catalogue.'),
        links: howMany('Links that answer 410.'),
        pending_applications: pendingApplications,
        open_cycles: sumOf('Open billing cycles, which still close and are invoiced.'),
        unpaid_cycles: sumOf('Closed billing cycles, which stay to be paid.'),
      })
      .nullable()
      .describe('Null unless the account is a merchant.'),
  })
  .meta({ id: 'SuspensionPreview' })
export type SuspensionWire = z.infer<typeof suspensionPreview>

export const requestCreditInput = z.strictObject({
  id: idParam,
  amount: moneyInput
    .describe('At most what the sale was billed with; rupees with at most two places.')
    .refine((text) => /[1-9]/.test(text), 'must be more than nothing'),
  reason: longText(1, 2000).describe('For the operator.'),
})

export const creditRequest = z
  .object({
    flag_id: idParam.describe('The flag that an operator decides on.'),
    sale_id: idParam,
    amount: moneyText,
    currency,
    reason: z.string().describe('Of the merchant.'),
    status: z
      .enum(['pending', 'granted', 'declined'])
      .describe('An operator grants it as a billing credit, or declines it.'),
    granted_amount: moneyText.nullable().describe('Of the credit; null unless granted.'),
    created_at: wireTime,
    decided_at: wireTime.nullable().describe('Null while it is pending.'),
  })
  .meta({ id: 'CreditRequest' })
export type CreditRequest = z.infer<typeof creditRequest>
