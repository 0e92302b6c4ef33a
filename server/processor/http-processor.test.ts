import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MAX_ANSWER_BYTES } from './http-exchange.ts'
import { createHttpProcessor } from './http-processor.ts'

type Behaviour = (answer: ServerResponse) => void
type Asked = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & { body: string }

const IBAN = 'PK36SCBL0000001123456702'
const INVOICE = {
  attemptId: 'attempt-1',
  reference: 'cycle-1',
  amount: 125_000,
  customer: { id: 'm1', email: 'm@example.pk', name: 'Merchant' },
}
const PAYOUT = {
  attemptId: 'attempt-2',
  reference: 'payout-1',
  amount: 5,
  destination: { iban: IBAN, account_title: 'Creator' },
}
const KEYS = { reference: 'a b&c', attemptIds: [] }

/** A hundred times what a connection usually takes: it is the answer that is missing. */
const SHORT_TIMEOUT_MS = 500

/** Runs against a server with this behavior, and returns the requests that it received. */
async function against(
  behaviour: Behaviour,
  run: (processor: ReturnType<typeof createHttpProcessor>, asked: Asked[]) => Promise<void>,
  timeoutMs = 60_000,
): Promise<void> {
  const asked: Asked[] = []
  const server = createServer(async (incoming, answer) => {
    const { method, url, headers } = incoming
    asked.push({ method, url, headers, body: await text(incoming) })
    behaviour(answer)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const processor = createHttpProcessor({
    url: `http://127.0.0.1:${port}/base`,
    apiKey: 'sk_secret',
    timeoutMs,
    now: () => Date.parse('2026-11-20T00:00:00Z'),
  })
  try {
    await run(processor, asked)
  } finally {
    await processor.close()
    server.closeAllConnections()
    server.close()
  }
}

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Behaviour =>
  (answer) =>
    answer.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

const calls = suite('calls')
calls('an invoice goes out by the contract and comes back created', async () => {
  const hostedUrl = 'https://pay.example/inv_1'
  await against(json(201, { id: 'inv_1', hosted_url: hostedUrl, more: 1 }), async (processor, asked) => {
    assert.equal(await processor.createInvoice(INVOICE), { kind: 'created', id: 'inv_1', hostedUrl })
    assert.is(`${asked[0]?.method} ${asked[0]?.url}`, 'POST /base/invoices')
    assert.is(asked[0]?.headers.authorization, 'Bearer sk_secret')
    assert.is(asked[0]?.headers['idempotency-key'], 'attempt-1')
    const { customer } = INVOICE
    const sent = { reference: 'cycle-1', amount: '1250.00', currency: 'PKR', customer }
    assert.equal(JSON.parse(asked[0]?.body ?? ''), sent)
  })
})

calls('a payout goes out by the contract; a replayed 200 counts as created', async () => {
  await against(json(200, { id: 'po_1' }), async (processor, asked) => {
    assert.equal(await processor.createPayout(PAYOUT), { kind: 'created', id: 'po_1', hostedUrl: null })
    assert.is(asked[0]?.url, '/base/payouts')
    const { destination } = PAYOUT
    const sent = { reference: 'payout-1', amount: '0.05', currency: 'PKR', destination }
    assert.equal(JSON.parse(asked[0]?.body ?? ''), sent)
  })
})

calls('a hosted page that is no web address is left out', async () => {
  for (const hosted_url of ['javascript:alert(1)', 'nonsense', 7, null]) {
    await against(json(201, { id: 'inv_1', hosted_url }), async (processor) => {
      assert.equal(await processor.createInvoice(INVOICE), { kind: 'created', id: 'inv_1', hostedUrl: null })
    })
  }
})

calls('4xx is final, with the processor’s message and without our secrets', async () => {
  for (const status of [400, 401, 402, 403, 404, 410, 422]) {
    await against(json(status, { detail: `no ${IBAN} by sk_secret\u0007` }), async (processor) => {
      const detail = `answered ${status}: no [redacted] by [redacted] `
      assert.equal(await processor.createPayout(PAYOUT), { kind: 'refused', status, detail })
    })
  }
})

calls('425 and 429 are retried after what Retry-After says', async () => {
  const cases: [string, number | undefined][] = [
    ['7', 7000],
    ['Fri, 20 Nov 2026 00:01:00 GMT', 60_000],
    ['Thu, 19 Nov 2026 00:00:00 GMT', 0],
    ['999999999', 86_400_000],
    ['soon', undefined],
  ]
  for (const [header, expected] of cases) {
    await against(json(429, {}, { 'retry-after': header }), async (processor) => {
      const outcome = await processor.createInvoice(INVOICE)
      assert.is(outcome.kind, 'retry')
      assert.is(outcome.kind === 'retry' && outcome.retryAfterMs, expected)
    })
  }
  await against(json(425, {}), async (processor) => {
    assert.equal(await processor.createInvoice(INVOICE), { kind: 'retry', detail: 'answered 425' })
  })
})

calls('a call that may have taken effect is unknown', async () => {
  for (const status of [202, 204, 302, 408, 409, 500, 502, 503, 504]) {
    const headers: Record<string, string> = status === 302 ? { location: '/base/elsewhere' } : {}
    await against(json(status, { id: 'inv_1' }, headers), async (processor, asked) => {
      assert.is((await processor.createInvoice(INVOICE)).kind, 'unknown', String(status))
      assert.is(asked.length, 1, 'no redirect is followed and nothing repeated')
    })
  }
})

calls('an unreadable answer is unknown', async () => {
  const detail = 'answered 201 without a readable id'
  for (const body of ['{"id":', '', '[]', '{}', '{"id":7}', '{"id":""}', '{"id":"a\\u0000"}']) {
    const send: Behaviour = (answer) => answer.writeHead(201).end(body)
    await against(send, async (processor) => {
      assert.equal(await processor.createInvoice(INVOICE), { kind: 'unknown', detail }, body)
    })
  }
})

calls('an answer over the bound is cut off and unknown', async () => {
  await against(json(201, { id: 'inv_1', padding: 'x'.repeat(MAX_ANSWER_BYTES) }), async (processor) => {
    const outcome = await processor.createInvoice(INVOICE)
    assert.equal(outcome, { kind: 'unknown', detail: `the answer is over ${MAX_ANSWER_BYTES} bytes` })
  })
})

calls('a call without a connection did not happen', async () => {
  // Nothing listens on this port.
  const processor = createHttpProcessor({ url: 'http://127.0.0.1:1', apiKey: 'k', timeoutMs: 60_000 })
  const detail = 'no connection (ECONNREFUSED)'
  assert.equal(await processor.createInvoice(INVOICE), { kind: 'retry', detail })
  assert.equal(await processor.findInvoices(KEYS), { kind: 'unavailable', detail })
  await processor.close()
})
calls.run()

const ITEM = { id: 'po_1', reference: 'a b&c', amount: '1250.00', currency: 'PKR', status: 'processing' }
const lookups = suite('look-ups')
lookups('found items have paisa; an empty list means unknown to the processor', async () => {
  const there = { ...ITEM, hosted_url: 'http://h/' }
  await against(json(200, { items: [{ ...there, extra: 1 }] }), async (processor, asked) => {
    assert.equal(await processor.findPayouts(KEYS), { kind: 'found', items: [{ ...there, amount: 125_000 }] })
    assert.is(`${asked[0]?.method} ${asked[0]?.url}`, 'GET /base/payouts?reference=a+b%26c')
    assert.is(asked[0]?.headers['idempotency-key'], undefined)
  })
  await against(json(200, { items: [] }), async (processor) => {
    assert.equal(await processor.findInvoices(KEYS), { kind: 'found', items: [] })
  })
})

lookups('another amount or currency is returned as reported, for the caller to flag', async () => {
  await against(json(200, { items: [{ ...ITEM, amount: '1.00', currency: 'USD' }] }), async (processor) => {
    const outcome = await processor.findPayouts(KEYS)
    const [item] = outcome.kind === 'found' ? outcome.items : []
    assert.equal([item?.amount, item?.currency], [100, 'USD'])
  })
})

lookups('a malformed list is unavailable, never empty', async () => {
  const wrong = [
    { ...ITEM, amount: 1250 },
    { ...ITEM, amount: '12.505' },
    { ...ITEM, amount: '-1.00' },
    { ...ITEM, currency: 'rupees' },
    { ...ITEM, status: '' },
    { ...ITEM, id: undefined },
    { ...ITEM, reference: 'another' },
  ]
  for (const body of [...wrong.map((item) => ({ items: [item] })), [], {}, null]) {
    await against(json(200, body), async (processor) => {
      assert.is((await processor.findPayouts(KEYS)).kind, 'unavailable', JSON.stringify(body))
    })
  }
})

lookups('an error, a reset or silence is unavailable', async () => {
  const errors = [json(404, {}), json(500, { detail: 'x' })]
  const behaviours: Behaviour[] = [...errors, (answer) => answer.destroy(), () => {}]
  const run: Parameters<typeof against>[1] = async (processor) =>
    assert.is((await processor.findPayouts(KEYS)).kind, 'unavailable')
  await Promise.all(behaviours.map((behaviour) => against(behaviour, run, SHORT_TIMEOUT_MS)))
})
lookups.run()
