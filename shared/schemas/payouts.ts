import { z } from 'zod'
import { currency, idParam, moneyText, pageInput, pageOf, wireTime } from './common.ts'

export const payoutState = z
  .enum(['pending', 'submitted', 'paid', 'failed'])
  .describe(
    '`submitted` to the processor, which confirms `paid` or `failed`; a failed one returns to the balance.',
  )

export const payout = z
  .object({
    id: idParam,
    state: payoutState,
    amount: moneyText.describe("For a merchant: the part that came from the merchant's own billing cycles."),
    currency,
    creator: z
      .object({ id: idParam, display_name: z.string().describe('The name that others see.') })
      .optional()
      .describe('For the merchant only.'),
    processor_payout_id: z.string().nullable().optional().describe('For the creator only.'),
    failure_reason: z.string().nullable().optional().describe('For the creator only.'),
    created_at: wireTime,
    settled_at: wireTime.nullable().describe('When the processor confirmed it, paid or failed.'),
  })
  .meta({ id: 'Payout' })
export type PayoutWire = z.infer<typeof payout>

export const listPayoutsInput = z.strictObject({ state: payoutState.optional(), ...pageInput }).prefault({})
export const payoutPage = pageOf(payout)
