import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Actor } from '../../platform/api/procedure.ts'
import { signShopifyBody } from '../../shopify/signature.ts'
import { accessOf, addMerchant } from '../../test/testkit/listings.ts'
import { orderHeaders } from '../../test/testkit/orders.ts'
import { pluckAll } from '../../test/testkit/pluck.ts'
import { proofDialects } from '../../test/testkit/proof-size.ts'
import { rowsOf } from '../../test/testkit/rows.ts'
import { call } from '../../test/testkit/service-bed.ts'
import { openWebTestbed, type WebTestbed } from '../../test/testkit/web.ts'

const MIB = 1024 * 1024
/** A signature of something else. */
const WRONG = Buffer.alloc(32).toString('base64')

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

for (const dialect of proofDialects()) {
  const it = suite(`taking webhooks in on ${dialect}`)
  let bed: WebTestbed
  let merchant: Actor
  it.after.each(() => bed.close())

  const open = async (settings: Record<string, string> = {}) => {
    bed = await openWebTestbed(dialect, settings)
    merchant = await addMerchant(bed.platform)
  }
  const headersOf = (body: Buffer | string, deliveryId: string = randomUUID(), by = merchant) =>
    orderHeaders(accessOf(by), deliveryId, body)
  const send = (headers: Record<string, string>, raw: Buffer | string) =>
    call(bed.base, 'POST', '/webhooks/store-sales', { headers, raw })
  const deliver = (body: Buffer | string, deliveryId?: string, by?: Actor) =>
    send(headersOf(body, deliveryId, by), body)
  const stored = async () => (await rowsOf(bed.platform, 'inbound_events')).length

  it('refuses a new delivery past the quota of events, and no redelivery', async () => {
    await open({ WEBHOOK_EVENTS_PER_MINUTE: '3' })
    const body = '{"id":1}'
    // Ten deliveries of three events count as three.
    for (const id of 'abaabababc') assert.is((await deliver(body, id)).status, 200)
    const refused = await deliver(body, 'd')
    const retryAfter = Number(refused.headers.get('retry-after'))
    assert.is(refused.status, 429)
    assert.ok(retryAfter >= 1 && retryAfter <= 60, String(retryAfter))
    // What is stored already is answered as ever; another body under its id is new.
    assert.is((await deliver(body, 'a')).status, 200)
    assert.is((await deliver('{"id":2}', 'a')).status, 429)
    assert.is(await stored(), 3)
    const other = await addMerchant(bed.platform)
    assert.is((await deliver(body, 'd', other)).status, 200)
  })

  it('refuses a new delivery past the quota of bytes, and takes smaller ones', async () => {
    await open({ WEBHOOK_BYTES_PER_MINUTE: '1000' })
    for (const [length, id, status] of [
      [600, 'a', 200],
      [600, 'a', 200],
      [600, 'b', 429],
      [300, 'c', 200],
    ] as const)
      assert.is((await deliver('a'.repeat(length), id)).status, status, id)
    assert.is(await stored(), 2)
  })

  it('counts nothing that is not validly signed', async () => {
    await open({ WEBHOOK_EVENTS_PER_MINUTE: '1' })
    const body = '{"id":1}'
    const forged = { ...headersOf(body), 'x-shopify-hmac-sha256': WRONG }
    for (let times = 0; times < 3; times += 1) assert.is((await send(forged, body)).status, 401)
    assert.is((await deliver(body)).status, 200)
  })

  it('accepts both forms of header names, and reads the one without x- first', async () => {
    await open()
    const body = '{"id":1}'
    const { domain, secret } = accessOf(merchant)
    const right = signShopifyBody(Buffer.from(body), secret)
    const named = (prefix: string, values: Record<string, string>) =>
      Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, value]))
    const values = { 'shop-domain': domain, 'hmac-sha256': right, topic: 'orders/paid' }
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
      [{ ...noted, 'shopify-shop-domain': domain, 'x-shopify-shop-domain': 'other.myshopify.com' }, 200, 3],
      [{ ...noted, 'shopify-hmac-sha256': right, 'x-shopify-hmac-sha256': WRONG }, 200, 3],
      [{ ...noted, 'shopify-hmac-sha256': WRONG }, 401, 3],
      [{ ...noted, 'shopify-shop-domain': 'other.myshopify.com' }, 401, 3],
      // An empty value is absent.
      [{ ...noted, 'shopify-hmac-sha256': '', 'shopify-shop-domain': '', 'shopify-topic': '' }, 200, 3],
      [named('shopify-', { ...event, 'hmac-sha256': '' }), 401, 3],
      // Without any id, the body's hash.
      [named('shopify-', values), 200, 4],
      [named('x-shopify-', values), 200, 4],
    ]
    for (const [headers, status, events] of deliveries) {
      const answer = await send(headers, body)
      assert.equal([answer.status, await stored()], [status, events], JSON.stringify(headers))
    }
    const rows = await rowsOf(bed.platform, 'inbound_events')
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

  it('answers what cannot be valid before its body comes', async () => {
    await open()
    const good = headersOf('')
    const { 'x-shopify-hmac-sha256': _, ...unsigned } = good
    for (const [path, headers] of [
      ['/webhooks/store-sales', { ...good, 'x-shopify-shop-domain': 'unknown.myshopify.com' }],
      ['/webhooks/store-sales', unsigned],
      ['/webhooks/store-sales', { ...good, 'x-shopify-hmac-sha256': 'none' }],
      ['/webhooks/processor', {}],
    ] as [string, Record<string, string>][]) {
      const { socket, answer } = await halfSend(path, headers, Buffer.alloc(0))
      await once(socket, 'close')
      assert.match(answer(), /^HTTP\/1\.1 401 /)
      assert.match(answer(), /"code":"invalid_signature"/)
    }
  })

  it('answers once to a body in pieces, to one that grows too large, and to one that breaks off', async () => {
    await open()
    const warnings: unknown[] = []
    const { server } = bed
    const requests: IncomingMessage[] = []
    server.server.on('request', (request) => requests.push(request))
    Object.assign(server.log, { warn: (warning: unknown) => warnings.push(warning) })
    const chunk = (piece: string) => Buffer.from(`${piece.length.toString(16)}\r\n${piece}\r\n`)
    const sendPieces = (...pieces: string[]) => {
      const headers = { ...headersOf('{"id":1}'), 'transfer-encoding': 'chunked' }
      return halfSend('/webhooks/store-sales', headers, Buffer.concat(pieces.map(chunk)))
    }
    const whole = await sendPieces('{"id"', ':', '1}', '')
    await once(whole.socket, 'data')
    whole.socket.destroy()
    const tooLarge = await sendPieces(...Array(3).fill(' '.repeat(MIB)))
    await once(tooLarge.socket, 'close')
    const { socket } = await sendPieces('{"id"', ':')
    await once(socket.resetAndDestroy(), 'close')
    const statuses = [whole, tooLarge].map(({ answer }) => answer().match(/HTTP\/1\.1 \d+/g))
    assert.equal(statuses, [['HTTP/1.1 200'], ['HTTP/1.1 413']])
    for (const request of requests) request.destroy(new Error('reset after the answer'))
    assert.is((await deliver('{"id":2}')).status, 200)
    assert.is(await stored(), 2)
    assert.equal(warnings, [], 'no second answer is tried')
  })

  // Not the database's matter.
  if (dialect === 'sqlite')
    it('keeps its memory and its senders while 150 bodies stay half-sent', async () => {
      await open()
      const half = Buffer.alloc(1.5 * MIB, 'x')
      const headers = headersOf(half)
      const held = () => {
        collectGarbage()
        return process.memoryUsage().arrayBuffers
      }
      const before = held()
      const sockets: Socket[] = []
      let most = 0
      for (let count = 0; count < 150; count += 1) {
        sockets.push((await halfSend('/webhooks/store-sales', headers, half)).socket)
        if (count % 15 !== 0) continue
        assert.is((await deliver(`{"id":${count + 1}}`)).status, 200)
        most = Math.max(most, held() - before)
      }
      assert.is((await deliver('{"id":0}')).status, 200)
      most = Math.max(most, held() - before)
      // Of 225 MB that were sent.
      assert.ok(most < 100 * MIB, `${Math.round(most / MIB)} MiB are held`)
      assert.is((await deliver(Buffer.alloc(2 * MIB, 'y'))).status, 200)
      for (const socket of sockets) socket.destroy()
    })

  it.run()
}
