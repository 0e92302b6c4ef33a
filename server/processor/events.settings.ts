import { z } from 'zod'
import type { EventRule, FieldLocations, FieldPredicate, ProcessorEventRules } from './events.rule.ts'

const path = z.string().regex(/^[^.\s]+(\.[^.\s]+)*$/, 'not a dotted path')
const fieldValue = z.union([z.string(), z.number(), z.boolean(), z.null()])

const predicateSchema: z.ZodType<FieldPredicate> = z.union([
  z.strictObject({ field: path, equals: fieldValue }),
  z.strictObject({ field: path, not_equals: fieldValue }),
  z.strictObject({ field: path, one_of: z.array(fieldValue).min(1) }),
  z.strictObject({ field: path, present: z.boolean() }),
])

const fieldsSchema = z.strictObject({
  invoice_id: path.default('data.invoice_id'),
  payment_reference: path.default('data.payment_reference'),
  payout_id: path.default('data.payout_id'),
  reference: path.default('data.reference'),
  reason: path.default('data.reason'),
  amount: path.default('data.amount'),
  currency: path.default('data.currency'),
}) satisfies z.ZodType<FieldLocations>

const ruleSchema = z.strictObject({
  types: z.array(z.string().min(1).max(200)).min(1),
  when: z.array(predicateSchema).default([]),
  meaning: z.enum(['billing_payment_confirmed', 'payout_confirmed', 'payout_failed', 'ignore']),
  fields: fieldsSchema.prefault({}),
  amount_unit: z.enum(['rupees', 'paisa']).default('rupees'),
  assumed_currency: z
    .string()
    .regex(/^[A-Z]{3}$/)
    .nullable()
    .default(null),
}) satisfies z.ZodType<EventRule>

/**
 * The `PROCESSOR_EVENTS` setting after its JSON is parsed; `{}` means the generic event names. For a processor without a separate payment
 * reference or payout id, several fields can have the same place in the body.
 */
export const processorEventsSchema = z.strictObject({
  type_field: path.default('type'),
  rules: z
    .array(ruleSchema)
    .min(1)
    .prefault([
      {
        types: ['billing.payment_confirmed', 'billing-payment-confirmed'],
        meaning: 'billing_payment_confirmed',
      },
      { types: ['payout.confirmed', 'payout-confirmed'], meaning: 'payout_confirmed' },
      { types: ['payout.failed', 'payout-failed'], meaning: 'payout_failed' },
    ]),
}) satisfies z.ZodType<ProcessorEventRules>

export const GENERIC_PROCESSOR_EVENTS: ProcessorEventRules = processorEventsSchema.parse({})
