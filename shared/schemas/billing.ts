import { z } from 'zod'
import { currency, idParam, moneyText, pageInput, pageOf, wireTime } from './common.ts'

export const billingCycleState = z
  .enum(['open', 'closed', 'charged'])
  .describe('`open` collects sales, `closed` is invoiced, `charged` is paid.')

export const billingCycle = z
  .object({
    id: idParam,
    state: billingCycleState,
    period_start: wireTime,
    period_end: wireTime.describe('Exclusive.'),
    commission_total: moneyText.describe('Of the sales of the cycle.'),
    fee_total: moneyText.describe("The platform's fees on them."),
    credit_total: moneyText.describe(
      'The credit that the cycle used; of an open one, what it would use if it closed now.',
    ),
    amount_due: moneyText.describe('What is invoiced; of an open cycle, what it would be if it closed now.'),
    currency,
    processor_invoice_id: z.string().nullable().describe("The payment processor's id of the invoice."),
    processor_payment_reference: z.string().nullable().describe("The payment processor's, once it is paid."),
    payment_url: z
      .string()
      .nullable()
      .describe('Where the invoice can be paid, if the processor has a page for it.'),
    payment_instructions: z
      .string()
      .nullable()
      .describe(
        'How to pay a closed cycle by bank transfer, with `processor_invoice_id` as the reference; null with other processors.',
      ),
    closed_at: wireTime.nullable().describe('When it was invoiced.'),
    charged_at: wireTime.nullable().describe('When the payment was confirmed.'),
  })
  .meta({ id: 'BillingCycle' })
export type BillingCycleWire = z.infer<typeof billingCycle>

export const listCyclesInput = z
  .strictObject({ state: billingCycleState.optional(), ...pageInput })
  .prefault({})
export const cyclePage = pageOf(billingCycle)
