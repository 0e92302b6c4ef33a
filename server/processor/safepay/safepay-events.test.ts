// database: none
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type ProcessorEvent, readProcessorEvent } from '../events.rule.ts'
import { SAFEPAY_EVENT_TYPES, safepayEventRules } from './safepay-events.ts'

const RULES = safepayEventRules('rupees')
const event = (type: string, payment: Record<string, unknown> = {}) => ({
  identifier: 'txnlog_1',
  webhook_event_type: type,
  aggregator_id: 'agg_1',
  subject: { payment: { token: 'pm_1', type: 'RTP_LATER', amount: '125000', status: 'P_X', ...payment } },
})
const payout = { type: 'PAYOUT', amount: '1250' }

type Kind = ProcessorEvent['kind']
const ignored = (types: string[]) => types.map((type): [string, Kind, Kind] => [type, 'ignore', 'ignore'])

/** Every event of the catalog, for a payment request and for a payout. */
const TABLE: [type: string, request: Kind, payout: Kind][] = [
  ['payment.completed', 'billing_payment_confirmed', 'ignore'],
  ['payment.settled', 'billing_payment_confirmed', 'payout_confirmed'],
  ['payment.refunded', 'payment_reversed', 'payment_reversed'],
  ['payment.refund_partial', 'payment_reversed', 'payment_reversed'],
  ['payment.rejected', 'invoice_failed', 'payout_failed'],
  ['payment.failed', 'invoice_failed', 'payout_failed'],
  ['payment.reversed', 'payment_reversed', 'payment_reversed'],
  ['payment.voided', 'invoice_failed', 'payment_reversed'],
  ...ignored(['payment.created', 'payment.pending_authorization', 'payment.authorized']),
  ...ignored(['settlement.created', 'settlement.processing', 'settlement.completed', 'settlement.failed']),
  ...ignored(['settlement.on_hold', 'settlement.reversed']),
  ...ignored(['refund.created', 'refund.completed', 'refund.failed', 'refund.canceled']),
  ['payment.something_new', 'unmapped', 'unmapped'],
]

for (const [type, request, paid] of TABLE) {
  test(`${type}: ${request}, of a payout ${paid}`, () => {
    assert.is(readProcessorEvent(event(type), RULES).kind, request)
    assert.is(readProcessorEvent(event(type, payout), RULES).kind, paid)
    const isRead = request !== 'ignore' || paid !== 'ignore'
    assert.is(SAFEPAY_EVENT_TYPES.includes(type), isRead && request !== 'unmapped')
  })
}

test('the token is id and payment reference, and requests are in paisa', () => {
  assert.equal(readProcessorEvent(event('payment.completed'), RULES), {
    kind: 'billing_payment_confirmed',
    type: 'payment.completed',
    invoice_id: 'pm_1',
    payment_reference: 'pm_1',
    amount: 125_000,
    currency: 'PKR',
  })
  const fraction = event('payment.completed', { amount: '12.50' })
  assert.throws(() => readProcessorEvent(fraction, RULES), /not an exact number of paisa/)
})

test('a payout has its token only, and the unit of the setting', () => {
  const money = { amount: 125_000, currency: 'PKR' }
  const about = { type: 'payment.settled', payout_id: 'pm_1', reference: null }
  const expected = { kind: 'payout_confirmed', ...about, ...money }
  assert.equal(readProcessorEvent(event('payment.settled', payout), RULES), expected)
  const inPaisa = event('payment.settled', { ...payout, amount: 125_000 })
  assert.equal(readProcessorEvent(inPaisa, safepayEventRules('paisa')), expected)
})

test.run()
