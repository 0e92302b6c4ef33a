import { readdirSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { formatMoney } from '../../shared/money.ts'
import { fc } from '../test/testkit/property.ts'
import { MalformedEvent, readProcessorEvent } from './events.rule.ts'
import { GENERIC_PROCESSOR_EVENTS, processorEventsSchema } from './events.settings.ts'

const PAYMENT = {
  type: 'billing.payment_confirmed',
  data: { invoice_id: 'inv_1', payment_reference: 'pay_1', amount: '1250.00', currency: 'PKR' },
}
const FAILED = {
  type: 'payout.failed',
  data: { payout_id: 'po_1', reference: 'ours', amount: '99.05', currency: 'PKR', reason: 'account closed' },
}

const read = (body: unknown) => readProcessorEvent(body, GENERIC_PROCESSOR_EVENTS)
const failedWith = (changes: object) => read({ ...FAILED, data: { ...FAILED.data, ...changes } })
const paidWith = (changes: object) => read({ ...PAYMENT, data: { ...PAYMENT.data, ...changes } })

function malformed(body: unknown, reason: RegExp, rules = GENERIC_PROCESSOR_EVENTS) {
  assert.throws(
    () => readProcessorEvent(body, rules),
    (error: unknown) => error instanceof MalformedEvent && reason.test(error.message),
    JSON.stringify(body),
  )
}

const generic = suite('generic event names')
generic('a payment confirmation', () => {
  assert.equal(read(PAYMENT), {
    kind: 'billing_payment_confirmed',
    type: 'billing.payment_confirmed',
    invoice_id: 'inv_1',
    payment_reference: 'pay_1',
    amount: 125_000,
    currency: 'PKR',
  })
})

generic('payout events', () => {
  assert.equal(read(FAILED), {
    kind: 'payout_failed',
    type: 'payout.failed',
    payout_id: 'po_1',
    reference: 'ours',
    reason: 'account closed',
    amount: 9905,
    currency: 'PKR',
  })
  const confirmed = read({ ...FAILED, type: 'payout.confirmed' })
  assert.is(confirmed.kind, 'payout_confirmed')
  assert.not('reason' in confirmed)
})

generic('an invoice that failed, and money that came back', () => {
  const fields = { invoice_id: 'request.id', reason: 'request.why' }
  const rules = processorEventsSchema.parse({
    rules: [
      { types: ['request.expired'], meaning: 'invoice_failed', fields },
      { types: ['request.refunded'], meaning: 'payment_reversed', fields },
    ],
  })
  const body = { request: { id: 'inv_1', why: 'expired' } }
  const [expired, refunded] = ['request.expired', 'request.refunded']
  const failed = { kind: 'invoice_failed', type: expired, invoice_id: 'inv_1', reason: 'expired' }
  assert.equal(readProcessorEvent({ type: expired, ...body }, rules), failed)
  const reversed = { kind: 'payment_reversed', type: refunded, processor_id: 'inv_1' }
  assert.equal(readProcessorEvent({ type: refunded, ...body }, rules), reversed)
  malformed({ type: 'request.expired', request: {} }, /invoice id is missing/, rules)
  malformed({ type: 'request.refunded', request: {} }, /id is missing/, rules)
})

generic('a payout event of a processor that does not repeat our reference, with paisa as text', () => {
  const rule = { types: ['payout.failed'], meaning: 'payout_failed', amount_unit: 'paisa' }
  const rules = processorEventsSchema.parse({ rules: [{ ...rule, fields: { reference: null } }] })
  const event = readProcessorEvent({ ...FAILED, data: { ...FAILED.data, amount: '9905' } }, rules)
  assert.is('reference' in event && event.reference, null)
  assert.is('amount' in event && event.amount, 9905)
  malformed({ ...FAILED, data: { ...FAILED.data, amount: '99.05' } }, /not an exact number of paisa/, rules)
})

generic('a type without a rule is unmapped, and one that is mapped to ignore is ignored', () => {
  const body = { type: 'invoice.viewed', data: 5 }
  assert.equal(read(body), { kind: 'unmapped', type: 'invoice.viewed' })
  const rules = processorEventsSchema.parse({ rules: [{ types: ['invoice.viewed'], meaning: 'ignore' }] })
  assert.equal(readProcessorEvent(body, rules), { kind: 'ignore', type: 'invoice.viewed' })
})

generic("the specification's own event names mean the same as the dotted ones", () => {
  for (const [body, type] of [
    [PAYMENT, 'billing-payment-confirmed'],
    [FAILED, 'payout-failed'],
    [{ ...FAILED, type: 'payout.confirmed' }, 'payout-confirmed'],
  ] as const) {
    assert.equal(read({ ...body, type }), { ...read(body), type })
  }
})

generic('a failure without a readable reason is still a failure', () => {
  for (const reason of [undefined, null, 7, '', '\u0000\n']) {
    const event = failedWith({ reason })
    assert.is(event.kind === 'payout_failed' && event.reason, 'no reason given')
  }
  const event = failedWith({ reason: `bad\u0000\r\nIBAN ${'x'.repeat(900)}` })
  assert.ok(event.kind === 'payout_failed' && event.reason.startsWith('bad IBAN x'))
  assert.is(event.kind === 'payout_failed' && event.reason.length, 500)
})

generic('malformed bodies say what is wrong', () => {
  for (const body of [null, 5, 'text', [], undefined]) malformed(body, /not a JSON object/)
  malformed({}, /event type is missing \(type\)/)
  malformed({ type: {} }, /event type is not plain text/)
  malformed({ type: 'payout.failed' }, /amount is missing \(data.amount\)/)
  const cases: [Record<string, unknown>, RegExp][] = [
    [{ invoice_id: undefined }, /invoice id is missing \(data.invoice_id\)/],
    [{ invoice_id: '' }, /invoice id is not plain text/],
    [{ invoice_id: 'a\u0000b' }, /invoice id is not plain text/],
    [{ invoice_id: 2 ** 53 }, /invoice id is not plain text/],
    [{ invoice_id: 'x'.repeat(201) }, /invoice id is not plain text/],
    [{ payment_reference: [] }, /payment reference is not plain text/],
    [{ amount: '1250.005' }, /amount is not an exact number of rupees/],
    [{ amount: 0.125 }, /amount is not an exact number of rupees/],
    [{ amount: 1e300 }, /amount is not an exact number of rupees/],
    [{ amount: '1,250.00' }, /amount is not an exact number of rupees/],
    [{ amount: '0.00' }, /amount is not above zero/],
    [{ amount: '-5.00' }, /amount is not above zero/],
    [{ currency: undefined }, /currency is missing/],
    [{ currency: 'rupees' }, /currency is not a three-letter code/],
  ]
  for (const [change, reason] of cases)
    malformed({ ...PAYMENT, data: { ...PAYMENT.data, ...change } }, reason)
})

generic('a currency is read as it is spelled, not judged', () => {
  for (const currency of ['USD', 'pkr', 'Pkr', ' PKR', 'PKR ']) {
    const event = paidWith({ currency })
    assert.is('currency' in event && event.currency, currency)
  }
})

generic('any amount comes through to the paisa', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10 ** 15 - 1 }), (amount) => {
      const event = paidWith({ amount: formatMoney(amount) })
      assert.is('amount' in event && event.amount, amount)
    }),
    { numRuns: 300 },
  )
})

generic('arbitrary JSON is read or refused as malformed, never anything else', () => {
  const types = fc.constantFrom('billing.payment_confirmed', 'payout.confirmed', 'payout.failed', 'other')
  const fields = fc.constantFrom(...Object.keys(FAILED.data))
  const bodies = fc.oneof(
    fc.jsonValue(),
    fc.record({ type: types, data: fc.jsonValue() }),
    fc.record({ type: types, data: fc.dictionary(fields, fc.jsonValue()) }),
  )
  fc.assert(
    fc.property(bodies, (body) => {
      try {
        read(body)
      } catch (error) {
        assert.instance(error, MalformedEvent)
      }
    }),
    { numRuns: 1000 },
  )
})
generic.run()

const mapped = suite('another processor by settings alone')
const SAFEPAY = processorEventsSchema.parse({
  type_field: 'webhook_event_type',
  rules: [
    {
      types: ['payment.completed'],
      when: [{ field: 'subject.payment.type', not_equals: 'PAYOUT' }],
      meaning: 'billing_payment_confirmed',
      fields: {
        invoice_id: 'subject.payment.token',
        payment_reference: 'identifier',
        amount: 'subject.payment.amount',
        currency: 'subject.payment.currency',
      },
      amount_unit: 'paisa',
      assumed_currency: 'PKR',
    },
    {
      types: ['payment.failed', 'payment.rejected'],
      when: [
        { field: 'subject.payment.type', one_of: ['PAYOUT'] },
        { field: 'subject.payment.request_id', present: true },
      ],
      meaning: 'payout_failed',
      fields: {
        payout_id: 'subject.payment.token',
        reference: 'subject.payment.request_id',
        reason: 'subject.payment.failures.0.message',
        amount: 'subject.payment.amount',
      },
      assumed_currency: 'PKR',
    },
  ],
})

mapped('fields, units and currency come from where the rules say', () => {
  const body = {
    webhook_event_type: 'payment.completed',
    identifier: 'evt_9',
    subject: { payment: { type: 'RTP_LATER', token: 42, amount: 125_000 } },
  }
  assert.equal(readProcessorEvent(body, SAFEPAY), {
    kind: 'billing_payment_confirmed',
    type: 'payment.completed',
    invoice_id: '42',
    payment_reference: 'evt_9',
    amount: 125_000,
    currency: 'PKR',
  })
  malformed(
    { ...body, subject: { payment: { ...body.subject.payment, amount: 1.5 } } },
    /not an exact number of paisa/,
    SAFEPAY,
  )
})

mapped('conditions decide, and a failure can be read through a list', () => {
  const about = { type: 'PAYOUT', token: 'p1', request_id: 'r1' }
  const payment = { ...about, amount: '200', failures: [{ message: 'no funds' }] }
  const readAs = (change: object, type = 'payment.rejected') =>
    readProcessorEvent({ webhook_event_type: type, subject: { payment: { ...payment, ...change } } }, SAFEPAY)
  const event = readAs({})
  assert.equal(event.kind === 'payout_failed' && [event.reason, event.amount], ['no funds', 20_000])
  assert.is(readAs({ type: 'RTP_LATER' }).kind, 'unmapped')
  assert.is(readAs({ request_id: undefined }).kind, 'unmapped')
  assert.is(readAs({}, 'payment.completed').kind, 'unmapped')
})

mapped('the first rule that fits wins', () => {
  const rules = processorEventsSchema.parse({
    rules: [
      { types: ['payout.failed'], when: [{ field: 'data.reason', equals: 'test' }], meaning: 'ignore' },
      { types: ['payout.failed'], meaning: 'payout_failed' },
    ],
  })
  const body = { ...FAILED, data: { ...FAILED.data, reason: 'test' } }
  assert.is(readProcessorEvent(body, rules).kind, 'ignore')
  assert.is(readProcessorEvent(FAILED, rules).kind, 'payout_failed')
})

mapped('settings that make no sense are refused', () => {
  const wrong = [
    { rules: [] },
    { rules: [{ types: [], meaning: 'ignore' }] },
    { rules: [{ types: ['a'], meaning: 'paid' }] },
    { rules: [{ types: ['a'], meaning: 'ignore', fields: { invoice: 'x' } }] },
    { rules: [{ types: ['a'], meaning: 'ignore', when: [{ field: 'a', equals: 1, present: true }] }] },
    { rules: [{ types: ['a'], meaning: 'ignore', when: [{ field: 'a..b', equals: 1 }] }] },
    { type_field: '' },
  ]
  for (const settings of wrong) {
    assert.not(processorEventsSchema.safeParse(settings).success, JSON.stringify(settings))
  }
})
mapped.run()

const FIXTURES = new URL('../../fixtures/', import.meta.url)
const VALUES = { invoice_id: 'inv_1', payout_id: 'po_1', reference: 'payout-1', payment_reference: 'pay_1' }
const manifest: { file: string; title: string; expect: { reading: string } }[] = JSON.parse(
  readFileSync(new URL('processor.manifest.json', FIXTURES), 'utf8'),
)
const fixtures = suite('the fixtures of the processor')
fixtures('are each in the manifest once', () => {
  const files = readdirSync(new URL('processor/', FIXTURES)).sort()
  assert.equal(manifest.map(({ file }) => file).sort(), files)
})

for (const { file, title, expect } of manifest) {
  fixtures(`${file}: ${title}`, () => {
    let text = readFileSync(new URL(`processor/${file}`, FIXTURES), 'utf8')
    for (const [name, value] of Object.entries({ ...VALUES, amount: '1250.00' }))
      text = text.replaceAll(`{{${name}}}`, value)
    assert.not.match(text, /\{\{/)
    const body: unknown = JSON.parse(text)
    if (expect.reading === 'malformed') malformed(body, /./)
    else assert.is(read(body).kind, expect.reading)
  })
}
fixtures.run()
