import { CURRENCY } from '../../../shared/money.ts'
import { type ProcessorEventRules, processorEventsSchema } from '../events.settings.ts'

const TOKEN = 'subject.payment.token'
const TYPE = 'subject.payment.type'
const isPayout = [{ field: TYPE, equals: 'PAYOUT' }]
const isPayment = [{ field: TYPE, not_equals: 'PAYOUT' }]

/**
 * What Safepay's events mean. Its guides disagree whether `payment.completed` or `payment.settled` says that a request is paid: the first of
 * them counts, and the second has the same token, so it changes nothing. Its records carry no currency.
 */
export function safepayEventRules(payoutUnit: 'rupees' | 'paisa'): ProcessorEventRules {
  const amount = { amount: 'subject.payment.amount', currency: 'subject.payment.currency' }
  const payment = { invoice_id: TOKEN, payment_reference: TOKEN, reason: 'subject.payment.status', ...amount }
  // The payout is found by its token: the event carries no id of ours but the attempt's.
  const payout = { payout_id: TOKEN, reference: null, reason: 'subject.payment.status', ...amount }
  const about = { assumed_currency: CURRENCY, amount_unit: 'paisa', fields: payment }
  const ofPayout = { assumed_currency: CURRENCY, amount_unit: payoutUnit, fields: payout, when: isPayout }
  return processorEventsSchema.parse({
    type_field: 'webhook_event_type',
    rules: [
      { ...ofPayout, types: ['payment.settled'], meaning: 'payout_confirmed' },
      { ...ofPayout, types: ['payment.failed', 'payment.rejected'], meaning: 'payout_failed' },
      { ...about, types: ['payment.completed'], when: isPayout, meaning: 'ignore' },
      {
        ...about,
        types: ['payment.completed', 'payment.settled'],
        when: isPayment,
        meaning: 'billing_payment_confirmed',
      },
      {
        ...about,
        types: ['payment.rejected', 'payment.failed', 'payment.voided'],
        when: isPayment,
        meaning: 'invoice_failed',
      },
      {
        ...about,
        types: ['payment.reversed', 'payment.refunded', 'payment.refund_partial', 'payment.voided'],
        meaning: 'payment_reversed',
      },
      { types: IGNORED, meaning: 'ignore' },
    ],
  })
}

/** Events on the way to a result, and about settlements and refunds, which `payment.refunded` announces too. */
const IGNORED = [
  ...['created', 'pending_authorization', 'authorized'].map((word) => `payment.${word}`),
  ...['created', 'processing', 'completed', 'failed', 'on_hold', 'reversed'].map(
    (word) => `settlement.${word}`,
  ),
  ...['created', 'completed', 'failed', 'canceled'].map((word) => `refund.${word}`),
]

/** The event types that the webhook endpoint must be registered for. */
export const SAFEPAY_EVENT_TYPES = [
  ...new Set(
    safepayEventRules('rupees').rules.flatMap(({ types, meaning }) => (meaning === 'ignore' ? [] : types)),
  ),
]
