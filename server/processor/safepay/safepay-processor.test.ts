// database: none
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  AGGREGATOR_ID,
  type Instead,
  MERCHANT_ID,
  SafepayDouble,
  SECRET_KEY,
} from '../../test/safepay/safepay-double.ts'
import { pluck } from '../../test/testkit/pluck.ts'
import type { CallOutcome, Processor } from '../processor.ts'
import { createSafepayProcessor, type SafepayProcessorOptions } from './safepay-processor.ts'

const IBAN = 'PK36SCBL0000001123456702'
const merchant = { customer: { id: 'm', email: 'm@example.com', name: 'M' }, billingAccount: { iban: IBAN } }
const INVOICE = { attemptId: 'attempt-1', reference: 'cycle-1', amount: 125_050, ...merchant }
const destination = { iban: IBAN, account_title: 'A CREATOR' }
const PAYOUT = { attemptId: 'attempt-2', reference: 'payout-1', amount: 120_000, destination }
const keys = { reference: 'payout-1', attemptIds: ['attempt-2'] }

interface Context {
  double: SafepayDouble
  processor: Required<Processor> & { close(): Promise<void> }
}

const it = suite<Context>('Safepay Raast')
const open = (double: SafepayDouble, changes: Partial<SafepayProcessorOptions> = {}) =>
  createSafepayProcessor({
    ...{ url: double.url, aggregatorId: AGGREGATOR_ID, merchantId: MERCHANT_ID, secretKey: SECRET_KEY },
    ...{ payoutEventUnit: 'rupees', timeoutMs: 60_000 },
    ...changes,
  }) as Context['processor']

it.before.each(async (context) => {
  context.double = await SafepayDouble.open()
  context.processor = open(context.double)
})
it.after.each(async ({ double, processor }) => {
  await processor.close()
  await double.close()
  assert.equal(double.complaints, [])
})

it('requests invoices in paisa from the account, pays whole rupees out', async ({ double, processor }) => {
  const invoice = await processor.createInvoice(INVOICE)
  const payout = await processor.createPayout(PAYOUT)
  const raast = { ...INVOICE, attemptId: 'attempt-3', billingAccount: { raastId: '03001234567' } }
  await processor.createInvoice(raast)
  const [first, second] = double.payments
  assert.equal(invoice, { kind: 'created', id: first?.token, hostedUrl: null })
  assert.equal(payout, { kind: 'created', id: second?.token, hostedUrl: null })
  const request = { order_id: 'cycle-1', type: 'RTP_LATER', expiry_in_days: 30 }
  const common = { aggregator_merchant_identifier: MERCHANT_ID, ...request }
  assert.equal(pluck(double.payments, 'body'), [
    { request_id: 'attempt-1', amount: 125_050, ...common, debitor_iban: IBAN },
    { request_id: 'attempt-2', amount: '1200', creditor_iban: IBAN },
    { request_id: 'attempt-3', amount: 125_050, ...common, debitor_raast_id: '03001234567' },
  ])
})

it('sends nothing without an account, or with a fraction of a rupee', async ({ double, processor }) => {
  const { billingAccount: _none, ...bare } = INVOICE
  assert.is((await processor.createInvoice(bare)).kind, 'refused')
  assert.is((await processor.createPayout({ ...PAYOUT, amount: 120_050 })).kind, 'refused')
  assert.equal(double.requests, [])
})

it('reads the status of a 200', async ({ double, processor }) => {
  const outcomes: Record<string, CallOutcome['kind']> = {
    P_INITIATED: 'created',
    P_SETTLED: 'created',
    P_REJECTED: 'refused',
    P_REVERSED: 'unknown',
    P_SOMETHING_NEW: 'unknown',
  }
  for (const [status, kind] of Object.entries(outcomes)) {
    double.switches.status = status
    for (const create of [
      () => processor.createInvoice({ ...INVOICE, attemptId: `i-${status}` }),
      () => processor.createPayout({ ...PAYOUT, attemptId: `p-${status}` }),
    ]) {
      const outcome = await create()
      assert.is(outcome.kind, kind, status)
      if (outcome.kind !== 'refused') continue
      const refused = { kind, status: 200, detail: 'answered 200: P_REJECTED' }
      assert.equal(outcome, { ...refused, id: double.payments.at(-1)?.token })
    }
  }
})

it('finds what it holds by the ids of all attempts, in either unit', async ({ double, processor }) => {
  for (const nothing of ['empty', 'null', 'absent'] as const) {
    double.switches.nothing = nothing
    assert.equal(await processor.findPayouts(keys), { kind: 'found', items: [] }, nothing)
  }
  await processor.createPayout(PAYOUT)
  await processor.createPayout({ ...PAYOUT, attemptId: 'attempt-9' })
  const [first, second] = double.payments
  if (!first || !second) throw new Error('no payments')
  first.status = 'P_REJECTED'
  second.status = 'P_REVERSED'
  const item = { reference: 'payout-1', amount: 120_000, currency: 'PKR' }
  const failed = { ...item, id: first.token, status: 'failed' }
  const items = [failed, { ...item, id: second.token, status: 'P_REVERSED' }]
  const both = { ...keys, attemptIds: ['attempt-2', 'attempt-9'] }
  for (const amounts of ['text', 'number'] as const) {
    double.switches.amounts = amounts
    assert.equal(await processor.findPayouts(both), { kind: 'found', items })
  }
  double.switches.payoutUnit = 'paisa'
  const inPaisa = open(double, { payoutEventUnit: 'paisa' })
  assert.equal(await inPaisa.findPayouts(both), { kind: 'found', items })
  await inPaisa.close()
  await processor.createInvoice(INVOICE)
  const found = await processor.findInvoices({ reference: 'cycle-1', attemptIds: ['attempt-1'] })
  assert.equal(found.kind === 'found' && found.items[0]?.amount, 125_050)
})

it('takes a known request id for an unknown outcome, until the look-up', async ({ double, processor }) => {
  await processor.createPayout(PAYOUT)
  const detail = 'answered 409: error.conflict Resource already exists'
  assert.equal(await processor.createPayout(PAYOUT), { kind: 'unknown', detail })
  double.switches.repeated = 'same'
  assert.is((await processor.createPayout(PAYOUT)).kind, 'created')
  assert.is(double.payments.length, 1)
})

const answer = (status: number, body: unknown, headers = {}): Instead => ({
  status,
  body: typeof body === 'string' ? body : JSON.stringify(body),
  headers,
})
const data = (value: unknown) => answer(200, { api_version: 'v1', data: value })
const error = (status: number, code: string, message?: string) =>
  answer(status, { error: { code: `error.${code}`, message } })
const flat = (status: number, code: string, message: string) =>
  answer(status, { code: `error.${code}`, message })
const CALLS: [what: string, instead: Instead, kind: CallOutcome['kind'], detail: RegExp][] = [
  ['a truncated body', answer(200, '{"data":{"tok'), 'unknown', /without a readable token/],
  ['no status', data({ token: 'pm_1' }), 'unknown', /without a readable token/],
  ['another request', data({ token: 'pm_1', status: 'P_INITIATED', request_id: 'x' }), 'unknown', /another/],
  ['500', error(500, 'internal_server_error'), 'unknown', /internal_server/],
  ['406 flat', flat(406, 'request_not_acceptable', 'KYC'), 'refused', /acceptable KYC/],
  ['400 flat', flat(400, 'bad_request', IBAN), 'refused', /error\.bad_request \[redacted\]$/],
  ['401', error(401, 'unauthorized_access', SECRET_KEY), 'refused', /access \[redacted\]$/],
]

for (const [what, instead, kind, detail] of CALLS) {
  it(`a payout answered with ${what} is ${kind}`, async ({ double, processor }) => {
    double.instead.set('POST payout', [instead])
    const outcome = await processor.createPayout(PAYOUT)
    assert.is(outcome.kind, kind)
    assert.match('detail' in outcome ? outcome.detail : '', detail)
  })
}

const payment = { token: 'pm_1', request_id: 'attempt-2', amount: '1200', status: 'P_INITIATED' }
const LOOKUPS: [what: string, instead: Instead, detail: RegExp][] = [
  ['no count', data({ payments: [] }), /malformed \(data\.count\)/],
  ['fewer payments than it counts', data({ count: '2', payments: [payment] }), /another number/],
  ['another request id', data({ count: '1', payments: [{ ...payment, request_id: 'x' }] }), /other request/],
  ['no amount', data({ count: '1', payments: [{ ...payment, amount: '12,00' }] }), /unreadable amount/],
  ['404', flat(404, 'not_found', 'no'), /answered 404: error\.not_found no/],
]

for (const [what, instead, detail] of LOOKUPS) {
  it(`a look-up answered with ${what} says nothing`, async ({ double, processor }) => {
    double.instead.set('GET payments', [instead])
    const outcome = await processor.findPayouts(keys)
    assert.match(outcome.kind === 'unavailable' ? outcome.detail : 'found', detail)
  })
}

it('names a wrong key and a wrong aggregator, in either shape of errors', async ({ double }) => {
  for (const errors of ['envelope', 'flat'] as const) {
    double.switches.errors = errors
    const wrongKey = open(double, { secretKey: 'sk_wrong' })
    const unauthorized = 'answered 401: error.unauthorized_access invalid access key'
    assert.equal(await wrongKey.balance(), { kind: 'unavailable', detail: unauthorized })
    const wrongAggregator = open(double, { aggregatorId: 'agg_other' })
    const detail = 'answered 404: error.not_found aggregator not found'
    assert.equal(await wrongAggregator.createPayout(PAYOUT), { kind: 'refused', status: 404, detail })
    await Promise.all([wrongKey.close(), wrongAggregator.close()])
  }
})

it('reads the account title, the balance and given-up deliveries', async ({ double, processor }) => {
  assert.equal(await processor.accountTitle(IBAN), { kind: 'found', title: 'A CREATOR' })
  double.title = ''
  assert.is((await processor.accountTitle(IBAN)).kind, 'unavailable')
  for (const ledger of ['account', 'list'] as const) {
    double.switches.ledger = ledger
    assert.equal(await processor.balance(), { kind: 'found', amount: 1_000_000_000 })
  }
  const since = Date.parse('2026-11-01T00:00:00Z')
  assert.equal(await processor.undelivered(since), { kind: 'found', events: [] })
  const type = 'payment.settled'
  const [earlier, at] = ['2026-10-01T00:00:00Z', '2026-11-02T00:00:00Z']
  double.dead.push({ event_id: 'e1', type, created_at: at }, { event_id: 'old', type, created_at: earlier })
  double.endpoints.push({ token: 'wh_1', url: 'https://x', enabled: true, event_types: [], secret: '' })
  assert.equal(await processor.undelivered(since), { kind: 'found', events: [{ id: 'e1', type, at }] })
})

it('lists what Safepay made in a period, in pages, in the unit of each', async ({ double, processor }) => {
  const at = Date.parse('2026-11-02T00:00:00.000Z')
  const period = { from: at, to: at + 1000 }
  const page = (number = 0) => processor.listRecords(period, number)
  for (const nothing of ['empty', 'null', 'absent'] as const) {
    double.switches.nothing = nothing
    assert.equal(await page(), { kind: 'found', records: [], isLast: true })
  }
  double.now = () => at
  await processor.createInvoice(INVOICE)
  await processor.createPayout(PAYOUT)
  double.now = () => at + 60_000
  await processor.createPayout({ ...PAYOUT, attemptId: 'later' })
  const [invoice, payout] = double.payments
  const common = { status: 'P_INITIATED', at: '2026-11-02T00:00:00.000Z' }
  const records = [
    { id: payout?.token, attemptId: 'attempt-2', type: 'PAYOUT', amount: 120_000, ...common },
    { id: invoice?.token, attemptId: 'attempt-1', type: 'RTP_LATER', amount: 125_050, ...common },
  ]
  for (const amounts of ['text', 'number'] as const) {
    double.switches.amounts = amounts
    assert.equal(await page(), { kind: 'found', records, isLast: true })
  }
  for (let more = 0; more < 100; more += 1) {
    double.payments.push({ ...(payout as (typeof double.payments)[number]), requestId: `more-${more}` })
  }
  const sizeOf = async (number: number) => {
    const found = await page(number)
    return found.kind === 'found' && [found.records.length, found.isLast]
  }
  assert.equal(await sizeOf(0), [100, false])
  assert.equal(await sizeOf(1), [2, true])
})

const RECORD = {
  ...{ token: 'pm_1', amount: '2.5', type: 'PAYOUT', status: 'P_X', created_at: '2026-11-02T00:00:00Z' },
}

it('reads a full page of records with long logs', async ({ double, processor }) => {
  const payments = Array.from({ length: 100 }, (_, number) => ({
    ...{ ...RECORD, token: `pm_${number}`, request_id: `attempt-${number}` },
    txn_logs: [{ txn_desc: 'x'.repeat(5000) }],
  }))
  double.instead.set('GET payments', [data({ count: '100', payments })])
  const found = await processor.listRecords({ from: 1.6e12, to: 1.7e12 }, 0)
  assert.is(found.kind === 'found' && found.records.length, 100)
})

it('takes a record with missing parts, concludes nothing without a list', async ({ double, processor }) => {
  const listed = async (payment: object) => {
    double.instead.set('GET payments', [data({ count: 1, payments: [payment] })])
    return processor.listRecords({ from: 1.6e12, to: 1.7e12 }, 0)
  }
  const record = { id: 'pm_1', attemptId: null, amount: 250, status: 'P_X', at: '2026-11-02T00:00:00Z' }
  const found = (changes: object) => ({ kind: 'found', records: [{ ...record, ...changes }], isLast: true })
  assert.equal(await listed(RECORD), found({ type: 'PAYOUT' }))
  const untyped = await listed({ ...RECORD, type: null, request_id: '' })
  assert.equal(untyped, found({ type: 'unknown', amount: null }))
  for (const broken of [{ created_at: 'yesterday' }, { token: '' }, { amount: null }])
    assert.is((await listed({ ...RECORD, ...broken })).kind, 'unavailable')
})

it.run()
