import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { publicLookup } from '../../../platform/network/public-address.ts'
import { createWebhookSender, type WebhookSender } from './send-webhook.ts'

const SECRET = `whsec_${Buffer.alloc(32, 3).toString('base64')}`
const FORMER = `whsec_${Buffer.alloc(32, 4).toString('base64')}`
const BODY = '{"type":"sale.accepted","timestamp":"2026-11-01T07:00:00.000Z","data":{"note":"زعفران"}}'

interface Received {
  headers: IncomingMessage['headers']
  body: string
}

const it = suite<{ sender: WebhookSender; servers: { close(): unknown }[] }>('sending a webhook')

it.before.each((context) => {
  context.sender = createWebhookSender({ allowLoopback: true })
  context.servers = []
})
it.after.each(async ({ sender, servers }) => {
  await sender.close()
  for (const server of servers) server.close()
})

function urlOf(server: { address(): unknown }): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`
}

/** A receiver that answers with `answer`. */
async function receiver(
  servers: { close(): unknown }[],
  answer: (response: ServerResponse, request: IncomingMessage) => void,
): Promise<{ url: string; received: Received[]; server: Server }> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks).toString('utf8') })
      answer(response, request)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  servers.push({
    close() {
      server.close()
      server.closeAllConnections()
    },
  })
  return { url: urlOf(server), received, server }
}

/** A receiver below HTTP. */
async function rawReceiver(
  servers: { close(): unknown }[],
  answer: (socket: Socket) => void,
): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createTcpServer((socket) => {
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
  return urlOf(server)
}

const send = (sender: WebhookSender, url: string, secrets = [SECRET]) =>
  sender.send({ url, eventId: '019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e', body: BODY, secrets, now: Date.now() })

it('is verified by the Standard Webhooks library, under both secrets', async ({ sender, servers }) => {
  const { url, received } = await receiver(servers, (response) => response.writeHead(204).end())
  assert.equal(await send(sender, url, [SECRET, FORMER]), {
    status: 204,
    retryAfter: null,
    body: '',
    error: null,
  })
  const [request] = received as [Received]
  const headers = request.headers as Record<string, string>
  assert.is(headers['content-type'], 'application/json')
  for (const secret of [SECRET, FORMER])
    assert.equal(new Webhook(secret).verify(request.body, headers), JSON.parse(BODY))
  const other = `whsec_${Buffer.alloc(32, 5).toString('base64')}`
  assert.throws(() => new Webhook(other).verify(request.body, headers))
  assert.throws(() => new Webhook(SECRET).verify(request.body.replace('sale', 'sail'), headers))
})

it('follows no redirect', async ({ sender, servers }) => {
  const target = await receiver(servers, (response) => response.end())
  const { url } = await receiver(servers, (response) =>
    response.writeHead(302, { location: target.url }).end(),
  )
  const { status, error } = await send(sender, url)
  assert.is(status, 302)
  assert.is(error, 'The endpoint answered 302; redirects are not followed.')
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

it('goes by the status when the body breaks off', async ({ sender, servers }) => {
  const url = await rawReceiver(servers, (socket) => {
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nshort')
  })
  const { status, body, error } = await send(sender, url)
  assert.equal([status, body, error], [200, 'short', null])
})

it('goes by the status when more than Content-Length follows', async ({ sender, servers }) => {
  const url = await rawReceiver(servers, (socket) => {
    socket.end('HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno, and HTTP/1.1 200 OK\r\n\r\n')
  })
  const { status, body } = await send(sender, url)
  assert.equal([status, body], [500, 'no'])
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
  await new Promise((resolve) => gone.server.close(resolve))
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
  const { received, server } = await receiver(servers, (response) => response.end())
  const { port } = server.address() as AddressInfo
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
  const { received, server } = await receiver(servers, (response) =>
    response.writeHead(204, { connection: 'close' }).end(),
  )
  const { port } = server.address() as AddressInfo
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
  const [none, { status, body, error }] = await Promise.all([
    send(sender, silent.url),
    send(sender, slow.url),
  ])
  assert.equal(none, {
    status: null,
    retryAfter: null,
    body: null,
    error: `No response within ${15} seconds.`,
  })
  assert.equal([status, body, error], [202, 'begun', null])
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
