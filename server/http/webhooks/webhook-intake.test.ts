import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { signShopifyBody } from '../../shopify/signature.ts'
import { addMerchant } from '../../test/testkit/listings.ts'
import { pluckAll } from '../../test/testkit/pluck.ts'
import { proofDialects } from '../../test/testkit/proof-size.ts'
import { columnsOf } from '../../test/testkit/rows.ts'
import { openWebTestbed, type WebTestbed } from '../../test/testkit/web.ts'

interface Context {
  bed: WebTestbed
  merchantId: string
}

const MIB = 1024 * 1024

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

for (const dialect of proofDialects()) {
  const it = suite<Context>(`taking webhooks in on ${dialect}`)
  it.after.each(async (context) => {
    await context.bed?.close()
  })

  const open = async (context: Context, settings: Record<string, string> = {}) => {
    context.bed = await openWebTestbed(dialect, settings)
    context.merchantId = (await addMerchant(context.bed.platform)).userId
  }
  const headersOf = ({ merchantId }: Context, body: Buffer, deliveryId: string = randomUUID()) => ({
    'content-type': 'application/json',
    'x-shopify-topic': 'orders/paid',
    'x-shopify-shop-domain': `s${merchantId}.myshopify.com`,
    'x-shopify-webhook-id': deliveryId,
    'x-shopify-hmac-sha256': signShopifyBody(body, `secret-${merchantId}`),
  })
  const deliver = async (context: Context, body: Buffer<ArrayBuffer>, deliveryId?: string) => {
    const headers = headersOf(context, body, deliveryId)
    const answer = await fetch(`${context.bed.base}/webhooks/store-sales`, { method: 'POST', headers, body })
    await answer.arrayBuffer()
    return answer
  }
  const stored = async ({ bed }: Context) =>
    (await bed.platform.database.reader.selectFrom('inbound_events').select('id').execute()).length

  it('refuses a new delivery past the quota of events, and no redelivery', async (context) => {
    await open(context, { WEBHOOK_EVENTS_PER_MINUTE: '3' })
    const body = Buffer.from('{"id":1}')
    const statuses: number[] = []
    // Nine deliveries of two events count as two.
    for (const id of ['a', 'b', 'a', 'a', 'b', 'a', 'b', 'a', 'b'])
      statuses.push((await deliver(context, body, id)).status)
    statuses.push((await deliver(context, body, 'c')).status)
    assert.equal([...new Set(statuses)], [200])
    const refused = await deliver(context, body, 'd')
    const retryAfter = Number(refused.headers.get('retry-after'))
    assert.is(refused.status, 429)
    assert.ok(retryAfter >= 1 && retryAfter <= 60, String(retryAfter))
    // What is stored already is answered as ever; another body under its id is new.
    assert.is((await deliver(context, body, 'a')).status, 200)
    assert.is((await deliver(context, Buffer.from('{"id":2}'), 'a')).status, 429)
    assert.is(await stored(context), 3)
    const other = { ...context, merchantId: (await addMerchant(context.bed.platform)).userId }
    assert.is((await deliver(other, body, 'd')).status, 200)
  })

  it('refuses a new delivery past the quota of bytes, and takes smaller ones', async (context) => {
    await open(context, { WEBHOOK_BYTES_PER_MINUTE: '1000' })
    assert.is((await deliver(context, Buffer.alloc(600, 'a'), 'a')).status, 200)
    assert.is((await deliver(context, Buffer.alloc(600, 'a'), 'a')).status, 200)
    assert.is((await deliver(context, Buffer.alloc(600, 'a'), 'b')).status, 429)
    assert.is((await deliver(context, Buffer.alloc(300, 'a'), 'c')).status, 200)
    assert.is(await stored(context), 2)
  })

  it('counts nothing that is not validly signed', async (context) => {
    await open(context, { WEBHOOK_EVENTS_PER_MINUTE: '1' })
    const body = Buffer.from('{"id":1}')
    const forged = {
      ...headersOf(context, body),
      'x-shopify-hmac-sha256': Buffer.alloc(32).toString('base64'),
    }
    const url = `${context.bed.base}/webhooks/store-sales`
    for (let times = 0; times < 3; times += 1)
      assert.is((await fetch(url, { method: 'POST', headers: forged, body })).status, 401)
    assert.is((await deliver(context, body)).status, 200)
  })

  it('accepts both forms of header names, and reads the one without x- first', async (context) => {
    await open(context)
    const body = Buffer.from('{"id":1}')
    const shop = `s${context.merchantId}.myshopify.com`
    const right = signShopifyBody(body, `secret-${context.merchantId}`)
    const wrong = Buffer.alloc(32).toString('base64')
    const named = (prefix: string, values: Record<string, string>) =>
      Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, value]))
    const values = { 'shop-domain': shop, 'hmac-sha256': right, topic: 'orders/paid' }
    const event = { ...values, 'event-id': 'e-1', 'triggered-at': '2026-11-01T10:00:00Z' }
    const noted = named('x-shopify-', { ...values, 'webhook-id': 'w-1', 'event-id': 'e-1' })
    const deliveries: [headers: Record<string, string>, status: number, events: number][] = [
      [named('shopify-', event), 200, 1],
      [named('shopify-', event), 200, 1],
      [named('Shopify-', { ...event, topic: 'Orders/Paid' }), 200, 1],
      [named('shopify-', { ...event, topic: 'orders/create' }), 200, 2],
      [named('x-shopify-', event), 200, 2],
      [noted, 200, 3],
      // Mixed: each header by itself.
      [{ ...noted, 'shopify-topic': 'orders/paid', 'shopify-event-id': 'e-1' }, 200, 3],
      [
        {
          ...named('shopify-', { 'shop-domain': shop }),
          ...noted,
          'x-shopify-shop-domain': 'other.myshopify.com',
        },
        200,
        3,
      ],
      [{ ...noted, 'shopify-hmac-sha256': right, 'x-shopify-hmac-sha256': wrong }, 200, 3],
      [{ ...noted, 'shopify-hmac-sha256': wrong }, 401, 3],
      [{ ...noted, 'shopify-shop-domain': 'other.myshopify.com' }, 401, 3],
      // An empty value is absent.
      [{ ...noted, 'shopify-hmac-sha256': '', 'shopify-shop-domain': '', 'shopify-topic': '' }, 200, 3],
      [named('shopify-', { ...event, 'hmac-sha256': '' }), 401, 3],
      // Without any id, the body's hash.
      [named('shopify-', values), 200, 4],
      [named('x-shopify-', values), 200, 4],
    ]
    const url = `${context.bed.base}/webhooks/store-sales`
    for (const [headers, status, events] of deliveries) {
      const answer = await fetch(url, { method: 'POST', headers, body })
      await answer.arrayBuffer()
      assert.equal([answer.status, await stored(context)], [status, events], JSON.stringify(headers))
    }
    const rows = await columnsOf(context.bed.platform, 'inbound_events', ['topic', 'triggered_at'])
    const at = Date.UTC(2026, 10, 1, 10)
    assert.equal(pluckAll(rows, 'topic', 'triggered_at'), [
      ['orders/paid', at],
      ['orders/create', at],
      ['orders/paid', null],
      ['orders/paid', null],
    ])
  })

  /** A request that announces 2 MiB, or chunks, and sends `sent` of it. */
  const halfSend = async (
    { bed }: Context,
    path: string,
    headers: Record<string, string>,
    sent: Buffer,
  ): Promise<{ socket: Socket; answer: () => string }> => {
    const socket = connect(Number(new URL(bed.base).port), '127.0.0.1')
    let text = ''
    socket.setEncoding('utf8').on('data', (part) => {
      text += part
    })
    socket.on('error', () => {})
    await once(socket, 'connect')
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    if (!('transfer-encoding' in headers)) lines.push(`content-length: ${2 * MIB}`)
    const head = [`POST ${path} HTTP/1.1`, 'host: x', ...lines]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    socket.write(sent)
    return { socket, answer: () => text }
  }

  it('answers what cannot be valid before its body comes', async (context) => {
    await open(context)
    const nothing = Buffer.alloc(0)
    const good = headersOf(context, nothing)
    const { 'x-shopify-hmac-sha256': _, ...unsigned } = good
    const cases: [path: string, headers: Record<string, string>][] = [
      ['/webhooks/store-sales', { ...good, 'x-shopify-shop-domain': 'unknown.myshopify.com' }],
      ['/webhooks/store-sales', unsigned],
      ['/webhooks/store-sales', { ...good, 'x-shopify-hmac-sha256': 'none' }],
      ['/webhooks/processor', {}],
    ]
    for (const [path, headers] of cases) {
      const { socket, answer } = await halfSend(context, path, headers, nothing)
      await once(socket, 'close')
      assert.match(answer(), /^HTTP\/1\.1 401 /)
      assert.match(answer(), /"code":"invalid_signature"/)
    }
  })

  it('answers once to a body in pieces, to one that grows too large, and to one that breaks off', async (context) => {
    await open(context)
    const warnings: unknown[] = []
    const { server } = context.bed
    const requests: IncomingMessage[] = []
    server.server.on('request', (request) => requests.push(request))
    Object.assign(server.log, { warn: (warning: unknown) => warnings.push(warning) })
    const chunk = (piece: Buffer | string) =>
      Buffer.concat([
        Buffer.from(`${piece.length.toString(16)}\r\n`),
        Buffer.from(piece),
        Buffer.from('\r\n'),
      ])
    const send = (body: Buffer, sent: Buffer) => {
      const headers = { ...headersOf(context, body), 'transfer-encoding': 'chunked' }
      return halfSend(context, '/webhooks/store-sales', headers, sent)
    }
    const body = Buffer.from('{"id":1}')
    const pieces = ['{"id"', ':', '1}', ''].map(chunk)
    const whole = await send(body, Buffer.concat(pieces))
    await once(whole.socket, 'data')
    whole.socket.destroy()
    const tooLarge = await send(
      body,
      Buffer.concat(Array.from({ length: 3 }, () => chunk(Buffer.alloc(MIB)))),
    )
    await once(tooLarge.socket, 'close')
    const { socket } = await send(body, Buffer.concat(pieces.slice(0, 2)))
    await once(socket.resetAndDestroy(), 'close')
    const statuses = [whole, tooLarge].map(({ answer }) => answer().match(/HTTP\/1\.1 \d+/g))
    assert.equal(statuses, [['HTTP/1.1 200'], ['HTTP/1.1 413']])
    for (const request of requests) request.destroy(new Error('reset after the answer'))
    assert.is((await deliver(context, Buffer.from('{"id":2}'))).status, 200)
    assert.is(await stored(context), 2)
    assert.equal(warnings, [], 'no second answer is tried')
  })

  // Not the database's matter.
  if (dialect === 'sqlite')
    it('keeps its memory and its senders while 150 bodies stay half-sent', async (context) => {
      await open(context)
      const half = Buffer.alloc(1.5 * MIB, 'x')
      const headers = headersOf(context, half)
      const held = () => {
        collectGarbage()
        return process.memoryUsage().arrayBuffers
      }
      const before = held()
      const sockets: Socket[] = []
      let most = 0
      for (let count = 0; count < 150; count += 1) {
        sockets.push((await halfSend(context, '/webhooks/store-sales', headers, half)).socket)
        if (count % 15 !== 0) continue
        assert.is((await deliver(context, Buffer.from(`{"id":${count + 1}}`))).status, 200)
        most = Math.max(most, held() - before)
      }
      assert.is((await deliver(context, Buffer.from('{"id":0}'))).status, 200)
      most = Math.max(most, held() - before)
      // Of 225 MB that were sent.
      assert.ok(most < 100 * MIB, `${Math.round(most / MIB)} MiB are held`)
      assert.is((await deliver(context, Buffer.alloc(2 * MIB, 'y'))).status, 200)
      for (const socket of sockets) socket.destroy()
    })

  it.run()
}
