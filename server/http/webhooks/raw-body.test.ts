// database: sqlite
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Refusal } from '../../platform/api/refusal.ts'
import { signShopifyBody } from '../../shopify/signature.ts'
import { addMerchant } from '../../test/testkit/listings.ts'
import { openWebTestbed } from '../../test/testkit/web.ts'
import { BodiesInFlight, rawBodyUpTo } from './raw-body.ts'

interface Outcome {
  error: Error | null
  body: Buffer | undefined
}

const LIMIT = 10

/** What the parser says of a request that comes in these pieces, and the stream, for what happens later. */
function parse(headers: Record<string, string> = {}): {
  payload: IncomingMessage
  outcome: Promise<Outcome>
} {
  const payload = new IncomingMessage(new Socket())
  const request = { headers } as unknown as FastifyRequest
  const outcome = new Promise<Outcome>((resolve) => {
    rawBodyUpTo({ limit: LIMIT })(request, payload, (error, body) => resolve({ error, body }))
  })
  return { payload, outcome }
}

async function parsed(...pieces: string[]): Promise<Outcome> {
  const { payload, outcome } = parse()
  for (const piece of pieces) payload.push(Buffer.from(piece))
  payload.push(null)
  return outcome
}

function signedOrder(merchantId: string, body: Buffer): RequestInit {
  return {
    method: 'POST',
    body,
    headers: {
      'x-shopify-topic': 'orders/paid',
      'x-shopify-shop-domain': `s${merchantId}.myshopify.com`,
      'x-shopify-hmac-sha256': signShopifyBody(body, `secret-${merchantId}`),
    },
  }
}

const it = suite('raw bodies')

it('come as they were sent, in however many pieces', async () => {
  for (const pieces of [[], ['a'], ['0123456789'], ['01', '2', '3456789']]) {
    assert.equal(await parsed(...pieces), { error: null, body: Buffer.from(pieces.join('')) })
  }
})

it('are refused as soon as they are too large', async () => {
  const announced = await parse({ 'content-length': '11' }).outcome
  const unannounced = parse()
  unannounced.payload.push(Buffer.from('0123456789'))
  unannounced.payload.push(Buffer.from('x'))
  for (const { error } of [announced, await unannounced.outcome]) {
    assert.instance(error, Refusal)
    assert.is((error as Refusal).code, 'payload_too_large')
  }
  assert.is(unannounced.payload.listenerCount('data'), 0)
})

it('that break off are the sender’s fault, whatever comes behind', async () => {
  const { payload, outcome } = parse()
  payload.on('error', () => {})
  payload.push(Buffer.from('01'))
  payload.destroy(new Error('aborted'))
  assert.is(((await outcome).error as Refusal).code, 'validation_failed')
})

it('that stall, or take too much memory together, are given up, the oldest first', async () => {
  const start = (inFlight: BodiesInFlight, ...pieces: number[]) => {
    const payload = new IncomingMessage(new Socket())
    const request = { headers: {} } as unknown as FastifyRequest
    const outcome = new Promise<Outcome>((resolve) => {
      const parse = rawBodyUpTo({ limit: 10_000, inFlight })
      parse(request, payload, (error, body) => resolve({ error, body }))
    })
    for (const size of pieces) payload.push(Buffer.alloc(size))
    return { payload, outcome }
  }
  const little = new BodiesInFlight({ maxBytes: 6000, deadlineMs: 60_000 })
  const first = start(little, 2000)
  const second = start(little, 2000)
  await new Promise((resolve) => setImmediate(resolve))
  const third = start(little, 2000)
  const { error } = await first.outcome
  assert.is((error as Refusal).code, 'unavailable')
  assert.is(first.payload.listenerCount('data'), 0)
  for (const { payload, outcome } of [second, third]) {
    payload.push(null)
    assert.is((await outcome).body?.length, 2000)
  }
  // Bytes that come one by one take more than they are.
  const trickle = start(little, ...Array.from({ length: 100 }, () => 1))
  assert.is(((await trickle.outcome).error as Refusal).code, 'unavailable')

  const quick = new BodiesInFlight({ maxBytes: 6000, deadlineMs: 40 })
  const alive = setInterval(() => {}, 1000)
  const slow = await start(quick, 10).outcome
  clearInterval(alive)
  assert.is((slow.error as Refusal).code, 'validation_failed')
})

it('of a webhook may be larger than those of other routes', async () => {
  const bed = await openWebTestbed('sqlite')
  try {
    const { userId } = await addMerchant(bed.platform)
    const body = Buffer.alloc(1024 * 1024, 'a')
    const answer = await fetch(`${bed.base}/webhooks/store-sales`, signedOrder(userId, body))
    assert.is(answer.status, 200)
    const kept = await bed.platform.database.reader.selectFrom('inbound_bodies').select('body').execute()
    assert.equal(
      kept.map((row) => row.body === body.toString()),
      [true],
    )
  } finally {
    await bed.close()
  }
})

it.run()
