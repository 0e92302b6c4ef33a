import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MAX_ANSWER_BYTES } from './http-exchange.ts'
import { createHttpProcessor } from './http-processor.ts'

type Behaviour = (answer: ServerResponse) => void
type Asked = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & { body: string }

const IBAN = 'PK36SCBL0000001123456702'
const customer = { id: 'm1', email: 'm@example.pk', name: 'Merchant' }
const INVOICE = { attemptId: 'attempt-1', reference: 'cycle-1', amount: 125_000, customer }
const destination = { iban: IBAN, account_title: 'Creator' }
const PAYOUT = { attemptId: 'attempt-2', reference: 'payout-1', amount: 5, destination }
const KEYS = { reference: 'a b&c', attemptIds: [] }

/** A hundred times what a connection usually takes: it is the answer that is missing. */
const SHORT_TIMEOUT_MS = 500

interface World {
  server: Server
  /** How the server answers. */
  answer: Behaviour
  /** The requests that it received. */
  asked: Asked[]
  processor: ReturnType<typeof createHttpProcessor>
}

const it = suite<World>('the processor over HTTP')

const openProcessor = ({ server }: World, timeoutMs: number) =>
  createHttpProcessor({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base`,
    apiKey: 'sk_secret',
    timeoutMs,
    now: () => Date.parse('2026-11-20T00:00:00Z'),
  })

it.before.each(async (world) => {
  world.asked = []
  world.server = createServer(async (incoming, answer) => {
    const { method, url, headers } = incoming
    world.asked.push({ method, url, headers, body: await text(incoming) })
    world.answer(answer)
  })
  await once(world.server.listen(0, '127.0.0.1'), 'listening')
  world.processor = openProcessor(world, 60_000)
})
it.after.each(async ({ processor, server }) => {
  await processor.close()
  server.closeAllConnections()
  server.close()
})

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Behaviour =>
  (answer) =>
    answer.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

it('an invoice goes out by the contract and comes back created', async (world) => {
  const { processor, asked } = world
  const hostedUrl = 'https://pay.example/inv_1'
  world.answer = json(201, { id: 'inv_1', hosted_url: hostedUrl, more: 1 })
  assert.equal(await processor.createInvoice(INVOICE), { kind: 'created', id: 'inv_1', hostedUrl })
  assert.is(`${asked[0]?.method} ${asked[0]?.url}`, 'POST /base/invoices')
  assert.is(asked[0]?.headers.authorization, 'Bearer sk_secret')
  assert.is(asked[0]?.headers['idempotency-key'], 'attempt-1')
  const sent = { reference: 'cycle-1', amount: '1250.00', currency: 'PKR', customer }
  assert.equal(JSON.parse(asked[0]?.body ?? ''), sent)
})

it('a payout goes out by the contract; a replayed 200 counts as created', async (world) => {
  const { processor, asked } = world
  world.answer = json(200, { id: 'po_1' })
  assert.equal(await processor.createPayout(PAYOUT), { kind: 'created', id: 'po_1', hostedUrl: null })
  assert.is(asked[0]?.url, '/base/payouts')
  const sent = { reference: 'payout-1', amount: '0.05', currency: 'PKR', destination }
  assert.equal(JSON.parse(asked[0]?.body ?? ''), sent)
})

it('a hosted page that is no web address is left out', async (world) => {
  const created = { kind: 'created', id: 'inv_1', hostedUrl: null }
  for (const hosted_url of ['javascript:alert(1)', 'nonsense', 7, null]) {
    world.answer = json(201, { id: 'inv_1', hosted_url })
    assert.equal(await world.processor.createInvoice(INVOICE), created)
  }
})

it('4xx is final, with the processor’s message and without our secrets', async (world) => {
  for (const status of [400, 401, 402, 403, 404, 410, 422]) {
    world.answer = json(status, { detail: `no ${IBAN} by sk_secret\u0007` })
    const detail = `answered ${status}: no [redacted] by [redacted] `
    assert.equal(await world.processor.createPayout(PAYOUT), { kind: 'refused', status, detail })
  }
})

it('425 and 429 are retried after what Retry-After says', async (world) => {
  const cases: [string, number | undefined][] = [
    ['7', 7000],
    ['Fri, 20 Nov 2026 00:01:00 GMT', 60_000],
    ['Thu, 19 Nov 2026 00:00:00 GMT', 0],
    ['999999999', 86_400_000],
    ['soon', undefined],
  ]
  for (const [header, expected] of cases) {
    world.answer = json(429, {}, { 'retry-after': header })
    const outcome = await world.processor.createInvoice(INVOICE)
    assert.is(outcome.kind, 'retry')
    assert.is(outcome.kind === 'retry' && outcome.retryAfterMs, expected)
  }
  world.answer = json(425, {})
  assert.equal(await world.processor.createInvoice(INVOICE), { kind: 'retry', detail: 'answered 425' })
})

it('a call that may have taken effect is unknown; no redirect is followed and nothing repeated', async (world) => {
  const statuses = [202, 204, 302, 408, 409, 500, 502, 503, 504]
  for (const status of statuses) {
    world.answer = json(status, { id: 'inv_1' }, status === 302 ? { location: '/base/elsewhere' } : {})
    assert.is((await world.processor.createInvoice(INVOICE)).kind, 'unknown', String(status))
  }
  assert.is(world.asked.length, statuses.length)
})

it('an unreadable answer is unknown, and one over the bound is cut off', async (world) => {
  const unreadable = { kind: 'unknown', detail: 'answered 201 without a readable id' }
  for (const body of ['{"id":', '', '[]', '{}', '{"id":7}', '{"id":""}', '{"id":"a\\u0000"}']) {
    world.answer = (answer) => answer.writeHead(201).end(body)
    assert.equal(await world.processor.createInvoice(INVOICE), unreadable, body)
  }
  world.answer = json(201, { id: 'inv_1', padding: 'x'.repeat(MAX_ANSWER_BYTES) })
  const detail = `the answer is over ${MAX_ANSWER_BYTES} bytes`
  assert.equal(await world.processor.createInvoice(INVOICE), { kind: 'unknown', detail })
})

it('a call without a connection did not happen', async () => {
  // Nothing listens on this port.
  const processor = createHttpProcessor({ url: 'http://127.0.0.1:1', apiKey: 'k', timeoutMs: 60_000 })
  const detail = 'no connection (ECONNREFUSED)'
  assert.equal(await processor.createInvoice(INVOICE), { kind: 'retry', detail })
  assert.equal(await processor.findInvoices(KEYS), { kind: 'unavailable', detail })
  await processor.close()
})

const ITEM = { id: 'po_1', reference: 'a b&c', amount: '1250.00', currency: 'PKR', status: 'processing' }

it('found items have paisa; an empty list means unknown to the processor', async (world) => {
  const { processor, asked } = world
  const there = { ...ITEM, hosted_url: 'http://h/' }
  world.answer = json(200, { items: [{ ...there, extra: 1 }] })
  assert.equal(await processor.findPayouts(KEYS), { kind: 'found', items: [{ ...there, amount: 125_000 }] })
  assert.is(`${asked[0]?.method} ${asked[0]?.url}`, 'GET /base/payouts?reference=a+b%26c')
  assert.is(asked[0]?.headers['idempotency-key'], undefined)
  world.answer = json(200, { items: [] })
  assert.equal(await processor.findInvoices(KEYS), { kind: 'found', items: [] })
})

it('another amount or currency is returned as reported, for the caller to flag', async (world) => {
  world.answer = json(200, { items: [{ ...ITEM, amount: '1.00', currency: 'USD' }] })
  const items = [{ ...ITEM, amount: 100, currency: 'USD' }]
  assert.equal(await world.processor.findPayouts(KEYS), { kind: 'found', items })
})

it('a malformed list is unavailable, never empty', async (world) => {
  const wrong = [
    ...[{ amount: 1250 }, { amount: '12.505' }, { amount: '-1.00' }, { currency: 'rupees' }],
    ...[{ status: '' }, { id: undefined }, { reference: 'another' }],
  ].map((changes) => ({ items: [{ ...ITEM, ...changes }] }))
  for (const body of [...wrong, [], {}, null]) {
    world.answer = json(200, body)
    assert.is((await world.processor.findPayouts(KEYS)).kind, 'unavailable', JSON.stringify(body))
  }
})

it('an error, a reset or silence is unavailable to a look-up', async (world) => {
  const hasty = openProcessor(world, SHORT_TIMEOUT_MS)
  const errors = [json(404, {}), json(500, { detail: 'x' })]
  for (const behaviour of [...errors, (answer: ServerResponse) => answer.destroy(), () => {}]) {
    world.answer = behaviour
    assert.is((await hasty.findPayouts(KEYS)).kind, 'unavailable')
  }
  await hasty.close()
})

it.run()
