import type { ServerResponse } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { publicLookup } from '../../../platform/network/public-address.ts'
import {
  openWebhookReceiver,
  type ReceivedWebhook,
  type WebhookReceiver,
} from '../../../test/testkit/webhook-receiver.ts'
import { createWebhookSender, type WebhookSender } from './send-webhook.ts'

const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`
const FORMER = `whsec_${Buffer.alloc(32, 4).toString('base64')}`
const BODY = '{"type":"sale.accepted","timestamp":"2026-11-01T07:00:00.000Z","data":{"note":"زعفران"}}'

const it = suite<{ sender: WebhookSender; servers: { close(): unknown }[] }>('sending a webhook')

it.before.each((context) => {
  context.sender = createWebhookSender({ allowLoopback: true })
  context.servers = []
})
it.after.each(async ({ sender, servers }) => {
  await sender.close()
  for (const server of servers) server.close()
})

/** A receiver that answers with `answer`. */
async function receiver(
  servers: { close(): unknown }[],
  answer: (response: ServerResponse) => void,
): Promise<WebhookReceiver & { port: string }> {
  const opened = await openWebhookReceiver()
  opened.answer = answer
  servers.push(opened)
  return Object.assign(opened, { port: new URL(opened.url).port })
}

/** A receiver below HTTP. */
async function rawReceiver(
  servers: { close(): unknown }[],
  answer: (socket: Socket) => void,
): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  servers.push({
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`
}

const send = (sender: WebhookSender, url: string, secrets = [SECRET]) =>
  sender.send({ url, eventId: '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e', body: BODY, secrets, now: Date.now() })

it('is verified by the Standard Webhooks library, under both secrets', async ({ sender, servers }) => {
  const { url, received } = await receiver(servers, (response) => response.writeHead(204).end())
  const answered = { status: 204, retryAfter: null, body: '', error: null }
  assert.equal(await send(sender, url, [SECRET, FORMER]), answered)
  const [{ text, headers: sent }] = received as [ReceivedWebhook]
  const headers = sent as Record<string, string>
  assert.is(headers['content-type'], 'application/json')
  for (const secret of [SECRET, FORMER])
    assert.equal(new Webhook(secret).verify(text, headers), JSON.parse(BODY))
  const other = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
  assert.throws(() => new Webhook(other).verify(text, headers))
  assert.throws(() => new Webhook(SECRET).verify(text.replace('sale', 'sail'), headers))
})

it('follows no redirect', async ({ sender, servers }) => {
  const target = await receiver(servers, (response) => response.end())
  const redirect = (response: ServerResponse) => response.writeHead(302, { location: target.url }).end()
  const { status, error } = await send(sender, (await receiver(servers, redirect)).url)
  assert.equal([status, error], [302, 'The endpoint answered 302; redirects are not followed.'])
  assert.is(target.received.length, 0)
})

it("reports Retry-After and the response's start in one printable line", async ({ sender, servers }) => {
  const { url } = await receiver(servers, (response) =>
    response.writeHead(503, { 'retry-after': '120' }).end('busy\r\n\u001b[31mred\u0000 نیم'),
  )
  assert.equal(await send(sender, url), {
    status: 503,
    retryAfter: '120',
    body: 'busy \ufffd[31mred\ufffd نیم',
    error: 'The endpoint answered 503.',
  })
})

it('reads 2 KiB of a response without an end', async ({ sender, servers }) => {
  let written = 0
  const { url } = await receiver(servers, (response) => {
    response.writeHead(200)
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536))) written += 65_536
      if (!response.destroyed) response.once('drain', more)
    }
    more()
  })
  const { status, body, error } = await send(sender, url)
  assert.equal([status, body?.length, error], [200, 2048, null])
  assert.ok(written < 20_000_000)
})

it('goes by the status when the body breaks off, or more than Content-Length follows', async ({
  sender,
  servers,
}) => {
  for (const [answer, status, body] of [
    ['HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nshort', 200, 'short'],
    ['HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno, and HTTP/1.1 200 OK\r\n\r\n', 500, 'no'],
  ] as const) {
    const url = await rawReceiver(servers, (socket) => socket.end(answer))
    const sent = await send(sender, url)
    assert.equal([sent.status, sent.body], [status, body], answer)
  }
})

it('reports a reset, a closed port, garbage and an empty answer', async ({ sender, servers }) => {
  const reset = await rawReceiver(servers, (socket) => socket.resetAndDestroy())
  assert.is((await send(sender, reset)).error, 'The connection was reset.')
  const empty = await rawReceiver(servers, (socket) => socket.end())
  assert.is((await send(sender, empty)).error, 'The connection was closed without a response.')
  const garbage = await rawReceiver(servers, (socket) => socket.end('SSH-2.0-OpenSSH\r\n'))
  const outcome = await send(sender, garbage)
  assert.is(outcome.status, null)
  assert.match(outcome.error ?? '', /^The request failed/)
  const gone = await receiver(servers, (response) => response.end())
  gone.close()
  assert.is((await send(sender, gone.url)).error, 'The connection was refused.')
})

it('refuses headers without an end', async ({ sender, servers }) => {
  const url = await rawReceiver(servers, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\n${`x-header: ${'y'.repeat(1000)}\r\n`.repeat(100)}`)
  })
  assert.is((await send(sender, url)).error, 'The headers of the response are too large.')
})

it('reaches this machine by its name, and reports a name without an address', async ({ sender, servers }) => {
  const { url } = await receiver(servers, (response) => response.writeHead(204).end())
  assert.is((await send(sender, url.replace('127.0.0.1', 'localhost'))).status, 204)
  const rule = { allowLoopback: true }
  const lookup = publicLookup(rule, (_name, _options, callback) =>
    callback(Object.assign(new Error('queryA ENOTFOUND 10.0.0.2'), { code: 'ENOTFOUND' }), '', 0),
  )
  const unresolved = createWebhookSender(rule, { lookup })
  const { status, error } = await send(unresolved, 'https://shop.example.com/')
  await unresolved.close()
  assert.equal([status, error], [null, 'The host name does not exist.'])
})

it('never connects to a private address, by number or by name', async ({ servers }) => {
  const { received, port } = await receiver(servers, (response) => response.end())
  const rule = { allowLoopback: false }
  const resolving = (address: string) =>
    publicLookup(rule, (_name, _options, callback) => callback(null, [{ address, family: 4 }]))
  for (const [url, lookup] of [
    [`http://127.0.0.1:${port}/`, undefined],
    [`http://[::1]:${port}/`, undefined],
    [`http://[::ffff:127.0.0.1]:${port}/`, undefined],
    ['http://169.254.169.254/', undefined],
    [`http://localhost:${port}/`, undefined],
    [`http://shop.example.com:${port}/`, resolving('127.0.0.1')],
    [`http://shop.example.com:${port}/`, resolving('10.0.0.1')],
  ] as const) {
    const sender = createWebhookSender(rule, lookup && { lookup })
    const outcome = await send(sender, url)
    await sender.close()
    assert.equal([outcome.status, outcome.error], [null, 'The host is not on the public internet.'], url)
  }
  assert.is(received.length, 0)
})

it('checks a name at each connection: it may resolve to another address by then', async ({ servers }) => {
  const { received, port } = await receiver(servers, (response) =>
    response.writeHead(204, { connection: 'close' }).end(),
  )
  let address = '127.0.0.1'
  const rule = { allowLoopback: true }
  const lookup = publicLookup(rule, (_name, _options, callback) => callback(null, [{ address, family: 4 }]))
  const sender = createWebhookSender(rule, { lookup })
  const url = `http://shop.example.com:${port}/`
  assert.is((await send(sender, url)).status, 204)
  address = '192.168.7.7'
  assert.is((await send(sender, url)).error, 'The host is not on the public internet.')
  assert.is(received.length, 1)
  await sender.close()
})

it('ends an attempt after its time, without a response or in the middle of one', async ({ servers }) => {
  // A hundred times what the beginning of a response usually takes.
  const sender = createWebhookSender({ allowLoopback: true }, { timeoutMs: 1000 })
  const silent = await receiver(servers, () => {})
  const slow = await receiver(servers, (response) => response.writeHead(202).write('begun'))
  const [none, begun] = await Promise.all([send(sender, silent.url), send(sender, slow.url)])
  const unanswered = { status: null, retryAfter: null, body: null }
  assert.equal(none, { ...unanswered, error: `No response within ${15} seconds.` })
  assert.equal(begun, { status: 202, retryAfter: null, body: 'begun', error: null })
  await sender.close()
})

it('ends attempts under way when it is closed', async ({ sender, servers }) => {
  const arrived = Promise.withResolvers<void>()
  const { url } = await receiver(servers, () => arrived.resolve())
  const outcome = send(sender, url)
  await arrived.promise
  await sender.close()
  assert.is((await outcome).status, null)
})

it.run()
