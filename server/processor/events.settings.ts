import { z } from 'zod'

const path = z.string().regex(/^[^.\s]+(\.[^.\s]+)*$/, 'not a dotted path')
const fieldValue = z.union([z.string(), z.number(), z.boolean(), z.null()])

/**
 * A condition on one field of the body (a dotted path). For an absent field `equals` and `one_of` are false, and `not_equals` is true.
 */
const predicateSchema = z.union([
  z.strictObject({ field: path, equals: fieldValue }),
  z.strictObject({ field: path, not_equals: fieldValue }),
  z.strictObject({ field: path, one_of: z.array(fieldValue).min(1) }),
  z.strictObject({ field: path, present: z.boolean() }),
])

/** The place of each fact in the body, as a dotted path (`data.invoice_id`, `items.0.id`). */
const fieldsSchema = z.strictObject({
  invoice_id: path.default('data.invoice_id'),
  payment_reference: path.default('data.payment_reference'),
  payout_id: path.default('data.payout_id'),
  /** Our payout's id; `null` for a processor that knows a payout by its own id only. */
  reference: path.nullable().default('data.reference'),
  reason: path.default('data.reason'),
  amount: path.default('data.amount'),
  currency: path.default('data.currency'),
})

const ruleSchema = z.strictObject({
  /** The event types that the rule applies to. */
  types: z.array(z.string().min(1).max(200)).min(1),
  /** All must be true. */
  when: z.array(predicateSchema).default([]),
  /**
   * `invoice_failed`: the request for the money was rejected or has expired. `payment_reversed`: money that had been paid came back, for the
   * invoice or payout whose id stands in `invoice_id`.
   */
  meaning: z.enum([
    'billing_payment_confirmed',
    'invoice_failed',
    'payout_confirmed',
    'payout_failed',
    'payment_reversed',
    'ignore',
  ]),
  fields: fieldsSchema.prefault({}),
  /** `rupees`: decimal rupees as text or number (`"1250.00"`); `paisa`: a whole number of paisa. */
  amount_unit: z.enum(['rupees', 'paisa']).default('rupees'),
  /** Used when the body names no currency. */
  assumed_currency: z
    .string()
    .regex(/^[A-Z]{3}$/)
    .nullable()
    .default(null),
})

/**
 * The `PROCESSOR_EVENTS` setting after its JSON is parsed; `{}` means the generic event names. For a processor without a separate payment
 * reference or payout id, several fields can have the same place in the body.
 */
export const processorEventsSchema = z.strictObject({
  /** The place of the event's type in the body. */
  type_field: path.default('type'),
  /** The first rule that matches by type and conditions decides; without one the event is `unmapped`. */
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
})

export type FieldPredicate = z.infer<typeof predicateSchema>
export type EventRule = z.infer<typeof ruleSchema>
export type ProcessorEventRules = z.infer<typeof processorEventsSchema>

export const GENERIC_PROCESSOR_EVENTS: ProcessorEventRules = processorEventsSchema.parse({})
